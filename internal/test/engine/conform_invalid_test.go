package engine_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/outbox"
	"github.com/perdure/perdure/schema"
)

// create returns a unit that creates a thing with one column.
func create(column string, v any) func(*perdure.Tx) error {
	return func(tx *perdure.Tx) error {
		_, err := tx.Create(things, schema.Values{column: v})
		return err
	}
}

// strangers belong to no schema of the engine.
var (
	stranger  = schema.NewTable("strangers", schema.String("name"))
	_         = schema.New("elsewhere", stranger)
	homeless  = schema.NewTable("homeless", schema.String("name"))
	deep      = strings.Repeat("[", 32) + strings.Repeat("]", 32)
	tooLong   = strings.Repeat("x", 2<<20)
	unmarshal = make(chan int)
)

// invalid are units that are refused as a *fault.Invalid.
var invalid = map[string]func(*perdure.Tx) error{
	"a table of another schema": func(tx *perdure.Tx) error { _, err := tx.Create(stranger, schema.Values{"name": "x"}); return err },
	"a table of no schema":      func(tx *perdure.Tx) error { _, err := tx.Create(homeless, schema.Values{"name": "x"}); return err },
	"no table to create in":     func(tx *perdure.Tx) error { _, err := tx.Create(nil, schema.Values{"name": "x"}); return err },
	"no table to update":        func(tx *perdure.Tx) error { return tx.Update(nil, "x", schema.Values{"int": 1}) },
	"no table to delete from":   func(tx *perdure.Tx) error { return tx.Delete(nil, "x") },
	"no table to check":         func(tx *perdure.Tx) error { return tx.Check(nil, "x", 0) },
	"no table to read":          func(tx *perdure.Tx) error { _, err := tx.Get(nil, "x"); return err },
	"no table to search":        func(tx *perdure.Tx) error { _, err := tx.Find(nil, nil); return err },
	"no row to update":          func(tx *perdure.Tx) error { return tx.UpdateRow(nil, schema.Values{"int": 1}) },
	"no row to delete":          func(tx *perdure.Tx) error { return tx.DeleteRow(nil) },
	"no row to check":           func(tx *perdure.Tx) error { return tx.CheckRow(nil) },
	"an unknown column":         create("strnig", "x"),
	"a column of another table": create("author", "ann"),
	"an internal column":        create("_id", 7),
	"a version":                 create("_version", 7),
	"an unknown column to set":  func(tx *perdure.Tx) error { return tx.Update(things, "x", schema.Values{"strnig": "x"}) },
	"an unknown column to find": func(tx *perdure.Tx) error {
		_, err := tx.Find(things, &perdure.FindOptions{Where: schema.Values{"x": 1}})
		return err
	},
	"an unknown order": func(tx *perdure.Tx) error {
		_, err := tx.Find(things, &perdure.FindOptions{OrderBy: "int desc"})
		return err
	},
	"a wrong id to find": func(tx *perdure.Tx) error {
		_, err := tx.Find(things, &perdure.FindOptions{Where: schema.Values{"id": 7}})
		return err
	},
	"a null id to find": func(tx *perdure.Tx) error {
		_, err := tx.Find(things, &perdure.FindOptions{Where: schema.Values{"id": nil}})
		return err
	},
	"a wrong type to find": func(tx *perdure.Tx) error {
		_, err := tx.Find(things, &perdure.FindOptions{Where: schema.Values{"int": "1"}})
		return err
	},
	"a JSON document to find": func(tx *perdure.Tx) error {
		_, err := tx.Find(things, &perdure.FindOptions{Where: schema.Values{"json": 1}})
		return err
	},
	"a negative limit": func(tx *perdure.Tx) error { _, err := tx.Find(things, &perdure.FindOptions{Limit: -1}); return err },
	"a huge limit": func(tx *perdure.Tx) error {
		_, err := tx.Find(things, &perdure.FindOptions{Limit: perdure.MaxFind + 1})
		return err
	},
	"nothing to change":       func(tx *perdure.Tx) error { return tx.Update(things, "x", nil) },
	"another id":              func(tx *perdure.Tx) error { return tx.Update(things, "x", schema.Values{"id": "y"}) },
	"an empty id":             create("id", ""),
	"a long id":               create("id", strings.Repeat("x", schema.MaxID+1)),
	"an id of a wrong type":   create("id", 7),
	"a null id":               create("id", nil),
	"an id with NUL":          create("id", "a\x00b"),
	"an id that is not UTF-8": create("id", "a\xff"),
	"an empty id to read":     func(tx *perdure.Tx) error { _, err := tx.Get(things, ""); return err },
	"a long id to update": func(tx *perdure.Tx) error {
		return tx.Update(things, strings.Repeat("x", 129), schema.Values{"int": 1})
	},
	"an empty id to delete":      func(tx *perdure.Tx) error { return tx.Delete(things, "") },
	"an empty id to check":       func(tx *perdure.Tx) error { return tx.Check(things, "", 0) },
	"a number for a string":      create("string", 7),
	"bytes for a string":         create("string", []byte("x")),
	"a string of 256 characters": create("string", strings.Repeat("x", 256)),
	"a string with NUL":          create("string", "a\x00b"),
	"a string that is not UTF-8": create("string", "a\xc3("),
	"a surrogate in a string":    create("string", "a\xed\xa0\x80"),
	"a text of 2 MiB":            create("text", tooLong),
	"a text with NUL":            create("text", "\x00"),
	"a string for an int":        create("int", "7"),
	"a float for an int":         create("int", 7.0),
	"a huge int":                 create("int", uint64(math.MaxInt64)+1),
	"a fraction for an int":      create("int", json.Number("1.5")),
	"a bool for an int":          create("int", true),
	"a string for a float":       create("float", "1.5"),
	"a number for a bool":        create("bool", 1),
	"a string for a time":        create("time", "2026-01-01"),
	"the zero time":              create("time", time.Time{}),
	"a time in year 10000":       create("time", time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)),
	"a time before year 1":       create("time", time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC)),
	"a string for bytes":         create("bytes", "x"),
	"bytes of 2 MiB":             create("bytes", []byte(tooLong)),
	"JSON that is none":          create("json", json.RawMessage(`{"a":`)),
	"JSON with NUL":              create("json", json.RawMessage(`"\u0000"`)),
	"JSON with a lone surrogate": create("json", json.RawMessage(`"\ud800"`)),
	"JSON that is not UTF-8":     create("json", json.RawMessage("\"a\xff\"")),
	"JSON of depth 32":           create("json", json.RawMessage(deep)),
	"JSON of 2 MiB":              create("json", tooLong),
	"JSON with a key twice":      create("json", json.RawMessage(`{"a":1,"a":2}`)),
	"JSON with a huge number":    create("json", json.RawMessage(`1e400`)),
	"what JSON cannot hold":      create("json", unmarshal),
	"NaN in JSON":                create("json", math.NaN()),
	"a string with NUL in JSON":  create("json", map[string]string{"a": "\x00"}),
	"bad UTF-8 in JSON":          create("json", []string{"a\xff"}),
}

func (Conformance) InvalidInputIsRefusedAndWritesNothing(t *testing.T, db enginetest.Database) {
	eng := openThings(t, db)
	update(t, eng, func(tx *perdure.Tx) error { _, err := tx.Create(things, schema.Values{"id": "x"}); return err })
	before := db.Footprint(t)
	for name, unit := range invalid {
		runs := 0
		err := eng.Update(t.Context(), func(tx *perdure.Tx) error {
			runs++
			_, _ = tx.Create(things, schema.Values{"string": "beside"})
			_ = unit(tx) // that it is not returned makes no difference
			return nil
		})
		var e *fault.Invalid
		if !errors.As(err, &e) || e.Field == "" || e.Reason == "" || len(e.Error()) > 1000 {
			t.Errorf("%s: the error is %.2000v", name, err)
		}
		if runs != 1 {
			t.Errorf("%s: there were %d runs", name, runs)
		}
	}
	if after := db.Footprint(t); !maps.Equal(before, after) {
		t.Errorf("something was written: %v, before %v", after, before)
	}
}

func (Conformance) WrongCursorsAndLimitsAreRefused(t *testing.T, db enginetest.Database) {
	eng := openThings(t, db)
	for _, text := range []string{"0", "xyz", strings.Repeat("0", 23), strings.Repeat("0", 25), strings.Repeat("g", 24), " 0000000000000000000000"} {
		_, err := outbox.ParseStamp(text)
		enginetest.As[*fault.Invalid](t, err)
	}
	for _, limit := range []int{-1, outbox.MaxLimit + 1, math.MaxInt, math.MinInt} {
		_, err := eng.Outbox().List(t.Context(), outbox.Stamp{}, limit)
		enginetest.As[*fault.Invalid](t, err)
		for _, err := range eng.Outbox().Tail(t.Context(), outbox.Stamp{}, &outbox.TailOptions{Batch: limit}) {
			enginetest.As[*fault.Invalid](t, err)
		}
	}
	for _, err := range eng.Outbox().Tail(t.Context(), outbox.Stamp{}, &outbox.TailOptions{Poll: -1}) {
		enginetest.As[*fault.Invalid](t, err)
	}
	for _, name := range []string{"", " x", "x ", "a\x00", "a\nb", strings.Repeat("x", 129), "\xff"} {
		_, err := eng.Outbox().Register(t.Context(), name, outbox.Stamp{})
		enginetest.As[*fault.Invalid](t, err)
	}
	_, err := eng.Outbox().Purge(t.Context(), -time.Second)
	enginetest.As[*fault.Invalid](t, err)
	_, err = eng.Outbox().Restart(t.Context(), "a\x00b")
	enginetest.As[*fault.Invalid](t, err)
}

// IDsThatAreMadeAreCheckedLikeGivenOnes: NewID is the user's code.
func (Conformance) IDsThatAreMadeAreCheckedLikeGivenOnes(t *testing.T, db enginetest.Database) {
	next := "good"
	options := withOutbox()
	options.NewID = func() string { return next }
	eng := db.Open(t, options)
	for _, bad := range []string{"", strings.Repeat("x", 129), "a\x00b", "a\xff"} {
		next = bad
		db.Unchanged(t, func() {
			err := eng.Update(t.Context(), func(tx *perdure.Tx) error {
				_, err := tx.Create(users, schema.Values{"id": "ann", "name": "Ann"})
				return err
			})
			enginetest.As[*fault.Invalid](t, err)
			next = "good"
			err = eng.Update(t.Context(), func(tx *perdure.Tx) error {
				next = bad
				_, err := tx.Create(users, schema.Values{"name": "Ann"})
				return err
			})
			enginetest.As[*fault.Invalid](t, err)
		})
	}
}

// TestAUnitHasAtMost65536Mutations is not part of the conformance suite because
// it takes long.
func TestAUnitHasAtMost65536Mutations(t *testing.T) {
	t.Parallel()
	enginetest.Each(t, func(t *testing.T, db enginetest.Database) {
		table := schema.NewTable("n", schema.Int("n"))
		eng := db.Open(t, &perdure.Options{Schemas: []*schema.Schema{schema.New("big", table)}, Outbox: true, Timeout: 2 * time.Minute})
		unit := func(n int) func(*perdure.Tx) error {
			return func(tx *perdure.Tx) error {
				for i := range n {
					_, _ = tx.Create(table, schema.Values{"id": fmt.Sprint(i), "n": i})
				}
				return nil
			}
		}
		db.Unchanged(t, func() {
			enginetest.As[*fault.Invalid](t, eng.Update(t.Context(), unit(1<<16+1)))
		})
		update(t, eng, unit(1<<16))
		entry := entries(t, eng)[0]
		if last := entry.Payload.Mutations[1<<16-1]; last.Stamp.User() != math.MaxUint16 || last.ExternalID != "65535" {
			t.Errorf("the last mutation is %+v", last)
		}
		if n := db.Rows(t, "big", "n"); n != 1<<16 {
			t.Errorf("there are %d rows", n)
		}
	})
}
