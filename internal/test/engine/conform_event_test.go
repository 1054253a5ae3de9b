package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/outbox"
	"github.com/perdure/perdure/schema"
)

// records describes the mutations and events of an entry in their order.
func records(e outbox.Entry) (all []string) {
	for m, event := range e.Payload.All() {
		if m != nil {
			all = append(all, fmt.Sprintf("%d %s %s", m.Stamp.User(), m.Op, m.ExternalID))
		} else {
			all = append(all, fmt.Sprintf("%d event %s %s %s", event.Stamp.User(), event.Topic, event.Key, event.Payload))
		}
	}
	return all
}

func wantRecords(t testing.TB, e outbox.Entry, want ...string) {
	t.Helper()
	if got := records(e); !reflect.DeepEqual(got, want) {
		t.Errorf("entry %s has\n  %s\nwant\n  %s", e.Stamp, strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

// Mutations and events of a unit have one order, whichever way the unit takes.
func (Conformance) EventsAndMutationsHaveOneOrder(t *testing.T, db enginetest.Database) {
	eng := openBlog(t, db)
	createUser(t, eng, "ann")
	update(t, eng, func(tx *perdure.Tx) error {
		ann, err := tx.Get(users, "ann")
		if err != nil {
			return err
		}
		_ = tx.Emit("seen", "ann", nil)
		_, _ = tx.Create(posts, schema.Values{"id": "p1", "author": ann})
		_ = tx.Emit("posted", "", json.RawMessage(`{"a": [1.50, "<é>"]}`))
		return tx.UpdateRow(ann, schema.Values{"points": 1})
	})
	update(t, eng, func(tx *perdure.Tx) error { // an open transaction, and a placeholder after an event
		p1, err := tx.Get(posts, "p1")
		if err != nil {
			return err
		}
		_ = tx.Emit("first", "p2", 1)
		_, _ = tx.Create(posts, schema.Values{"id": "p2", "author": p1.Ref("author")})
		if _, err := tx.Get(posts, "p2"); err != nil {
			return err
		}
		return tx.Emit("last", "p2", "two")
	})
	update(t, eng, func(tx *perdure.Tx) error { return tx.Emit("only", "k", []int{1}) })
	all := entries(t, eng)
	if len(all) != 4 {
		t.Fatalf("there are %d entries", len(all))
	}
	wantRecords(t, all[1], "0 event seen ann null", "1 create p1", `2 event posted  {"a":[1.50,"<é>"]}`, "3 update ann")
	wantRecords(t, all[2], "0 event first p2 1", "1 create p2", `2 event last p2 "two"`)
	wantRecords(t, all[3], "0 event only k [1]")
	if author := all[2].Payload.Mutations[0].Values["author"]; author != "ann" {
		t.Errorf("the author is %v", author)
	}
	report, err := eng.Outbox().Verify(t.Context(), nil)
	enginetest.NoError(t, err)
	if len(report.Problems) > 0 || report.Mutations != 4 || report.Events != 5 || report.Rows != 3 {
		t.Errorf("the report is %+v", report)
	}
}

// Units of many callers share transactions, whether they have statements or only events.
func (Conformance) UnitsThatOnlyEmitAreGrouped(t *testing.T, db enginetest.Database) {
	eng := openBlog(t, db)
	const n = 60
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			err := eng.Update(enginetest.Context(t), func(tx *perdure.Tx) error {
				if i%2 == 0 {
					_, _ = tx.Create(users, schema.Values{"id": fmt.Sprint(i), "name": fmt.Sprint(i)})
				}
				return tx.Emit("counted", fmt.Sprint(i), i)
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	seen := map[string]bool{}
	for _, e := range entries(t, eng) {
		for _, event := range e.Payload.Events {
			seen[event.Key] = string(event.Payload) == event.Key
		}
	}
	for i := range n {
		if !seen[fmt.Sprint(i)] {
			t.Errorf("event %d is missing or wrong", i)
		}
	}
	sound(t, eng)
}

func (Conformance) AnEventCommitsWithTheCallersTransaction(t *testing.T, db enginetest.Database) {
	eng := openBlog(t, db)
	raw := db.SQL(t)
	type ending interface {
		Commit() error
		Rollback() error
	}
	join := func(end func(ending) error) {
		t.Helper()
		tx, err := raw.BeginTx(t.Context(), nil)
		enginetest.NoError(t, err)
		enginetest.NoError(t, eng.JoinSQL(t.Context(), tx, func(tx *perdure.Tx) error { return tx.Emit("joined", "j", 7) }))
		enginetest.NoError(t, end(tx))
	}
	db.Unchanged(t, func() { join(func(tx ending) error { return tx.Rollback() }) })
	join(func(tx ending) error { return tx.Commit() })
	all := entries(t, eng)
	if len(all) != 1 {
		t.Fatalf("there are %d entries", len(all))
	}
	wantRecords(t, all[0], "0 event joined j 7")
	sound(t, eng)
}

// An event that was emitted after a savepoint is gone if the unit is rolled back to it.
func (Conformance) AnEventIsGoneWithItsSavepoint(t *testing.T, db enginetest.Database) {
	eng := openBlog(t, db)
	update(t, eng, func(tx *perdure.Tx) error {
		_ = tx.Emit("first", "", 1)
		_, _ = tx.Exec("savepoint s")
		_ = tx.Emit("gone", "", 2)
		_, _ = tx.Create(users, schema.Values{"id": "gone", "name": "Gone"})
		_, _ = tx.Exec("rollback to savepoint s")
		_, _ = tx.Create(users, schema.Values{"id": "ann", "name": "Ann"})
		return tx.Emit("last", "", 3)
	})
	wantRecords(t, entries(t, eng)[0], "0 event first  1", "1 create ann", "2 event last  3")
	sound(t, eng)
}

func (Conformance) AnEventOfAFailedUnitIsNotWritten(t *testing.T, db enginetest.Database) {
	eng := openBlog(t, db)
	createUser(t, eng, "ann")
	failed := errors.New("no")
	db.Unchanged(t, func() {
		enginetest.Is(t, eng.Update(t.Context(), func(tx *perdure.Tx) error { _ = tx.Emit("lost", "", nil); return failed }), failed)
		err := eng.Update(t.Context(), func(tx *perdure.Tx) error {
			_ = tx.Emit("lost", "", nil)
			return tx.Update(users, "nobody", schema.Values{"points": 1})
		})
		enginetest.As[*fault.NotFound](t, err)
		enginetest.Is(t, eng.View(t.Context(), func(tx *perdure.Tx) error { _ = tx.Emit("lost", "", nil); return nil }), perdure.ErrReadOnly)
	})
}

func (Conformance) BadEventsAreRefused(t *testing.T, db enginetest.Database) {
	eng := openBlog(t, db)
	deep := strings.Repeat(`[`, 32) + strings.Repeat(`]`, 32)
	for name, c := range map[string]struct {
		topic, key string
		payload    any
	}{
		"no topic":        {"", "k", 1},
		"long topic":      {strings.Repeat("t", 129), "k", 1},
		"unprintable":     {"a\nb", "k", 1},
		"space":           {" a", "k", 1},
		"bad UTF-8":       {"a\xff", "k", 1},
		"long key":        {"t", strings.Repeat("k", 513), 1},
		"NUL in the key":  {"t", "a\x00b", 1},
		"no JSON":         {"t", "k", func() {}},
		"broken JSON":     {"t", "k", json.RawMessage(`{"a":`)},
		"deep JSON":       {"t", "k", json.RawMessage(deep)},
		"large":           {"t", "k", strings.Repeat("x", outbox.MaxEvent)},
		"lone surrogate":  {"t", "k", json.RawMessage(`"\ud800"`)},
		"duplicate key":   {"t", "k", json.RawMessage(`{"a":1,"a":2}`)},
		"NUL in the JSON": {"t", "k", "\x00"},
	} {
		db.Unchanged(t, func() {
			err := eng.Update(t.Context(), func(tx *perdure.Tx) error { _ = tx.Emit(c.topic, c.key, c.payload); return nil })
			if e := enginetest.As[*fault.Invalid](t, err); !strings.Contains(e.Field, "event") {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	update(t, eng, func(tx *perdure.Tx) error {
		return tx.Emit(strings.Repeat("t", 128), strings.Repeat("k", 512), strings.Repeat("x", outbox.MaxEvent-2))
	})
	sound(t, eng)
}

func (Conformance) EventsNeedTheOutbox(t *testing.T, db enginetest.Database) {
	eng := db.Open(t, &perdure.Options{Schemas: []*schema.Schema{blog}})
	db.Unchanged(t, func() {
		err := eng.Update(t.Context(), func(tx *perdure.Tx) error {
			_, _ = tx.Create(users, schema.Values{"name": "Ann"})
			_ = tx.Emit("lost", "", nil)
			return nil
		})
		if e := enginetest.As[*fault.Invalid](t, err); !strings.Contains(e.Error(), "Options.Outbox") {
			t.Errorf("the error is %v", err)
		}
	})
}

// A replay changes no table because of an event. With an outbox it emits the event again.
func (Conformance) ReplayKeepsEvents(t *testing.T, db enginetest.Database) {
	eng := openBlog(t, db)
	update(t, eng, func(tx *perdure.Tx) error {
		_ = tx.Emit("before", "a", 1)
		_, _ = tx.Create(users, schema.Values{"id": "ann", "name": "Ann"})
		return tx.Emit("after", "b", 2)
	})
	update(t, eng, func(tx *perdure.Tx) error { return tx.Emit("alone", "", nil) })
	all := entries(t, eng)
	for _, on := range []bool{false, true} {
		other := enginetest.New(t, db.Name)
		replica := other.Open(t, &perdure.Options{Schemas: []*schema.Schema{blog}, Outbox: on})
		for _, e := range all {
			enginetest.NoError(t, replica.Replay(t.Context(), e))
		}
		if n := other.Rows(t, "blog", "users"); n != 1 {
			t.Errorf("the replica has %d rows", n)
		}
		again := entries(t, replica)
		if !on {
			if len(again) != 0 {
				t.Errorf("the replica has %d entries", len(again))
			}
			continue
		}
		for i, e := range again {
			wantRecords(t, e, records(all[i])...)
		}
		sound(t, replica)
	}
}

// Readers are woken by a unit that only emits, and consumers get it.
func (Conformance) ConsumersGetEvents(t *testing.T, db enginetest.Database) {
	eng := openBlog(t, db)
	mail, err := eng.Outbox().Register(t.Context(), "mail", outbox.Stamp{})
	enginetest.NoError(t, err)
	ctx, cancel := context.WithCancel(enginetest.Context(t))
	defer cancel()
	got := make(chan outbox.Entry, 1)
	var reader sync.WaitGroup
	reader.Go(func() {
		_ = mail.Consume(ctx, nil, func(_ context.Context, e outbox.Entry) error { got <- e; return nil })
	})
	for i := range 3 {
		update(t, eng, func(tx *perdure.Tx) error { return tx.Emit("sent", fmt.Sprint(i), i) })
		wantRecords(t, <-got, fmt.Sprintf("0 event sent %d %d", i, i))
	}
	cancel()
	reader.Wait()
}
