package engine_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/big"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/schema"
)

// The table with a column of every type.
var (
	things = schema.NewTable("things",
		schema.String("string").Optional(),
		schema.Text("text").Optional(),
		schema.Int("int").Optional(),
		schema.Float("float").Optional(),
		schema.Decimal("decimal").Optional(),
		schema.Bool("bool").Optional(),
		schema.Time("time").Optional(),
		schema.JSON("json").Optional(),
		schema.Bytes("bytes").Optional(),
	)
	everything = schema.New("everything", things)
)

func openThings(t testing.TB, db enginetest.Database) *perdure.Engine {
	t.Helper()
	return db.Open(t, &perdure.Options{Schemas: []*schema.Schema{everything}, Outbox: true})
}

// exact are values that come back exactly as they were written.
func exact() map[string][]any {
	at := func(y int, m time.Month, d, h, mi, s, ns int) time.Time {
		return time.Date(y, m, d, h, mi, s, ns, time.UTC)
	}
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	return map[string][]any{
		"string": {"", "a", "trailing  ", " leading", "Ünïcödé", "🙂👨‍👩‍👧", "line\nbreak\ttab", `quote ' " \ %`, "\u2028\ufeff\uffff", strings.Repeat("🙂", 255), "\x01\x1f\x7f"},
		"text":   {"", strings.Repeat("x", 1<<20), strings.Repeat("🙂", 1<<18), "\r\n \\' \" ; -- /*"},
		"int":    {int64(0), int64(-1), int64(math.MaxInt64), int64(math.MinInt64), int64(1<<53 + 1), int64(-(1<<53 + 1))},
		"float": {
			0.0, 0.1, -1.5, 1.0 / 3, 3.0, 1e21, 1e22, 1e-7, math.MaxFloat64, -math.MaxFloat64, math.SmallestNonzeroFloat64,
			float64(1<<53 + 2), 123456789012345680.0,
		},
		"decimal": {
			"0", "1", "-1", "0.1", "-0.5", "12.5", "1000", strings.Repeat("9", 35) + "." + strings.Repeat("9", 30), "-" + strings.Repeat("9", 35) + "." + strings.Repeat("9", 30),
			"0." + strings.Repeat("0", 29) + "1", "9007199254740993", "0.30000000000000004", "123456789012345678901234567890.123456789",
		},
		"bool": {true, false},
		"time": {
			at(1970, 1, 1, 0, 0, 0, 0), at(2026, 7, 21, 12, 0, 0, 123456000), at(2026, 7, 21, 12, 0, 0, 1000),
			at(1, 1, 2, 0, 0, 0, 0), at(1, 12, 31, 23, 59, 59, 999999000), at(9999, 12, 30, 23, 59, 59, 999999000),
			at(1969, 12, 31, 23, 59, 59, 999999000), at(2024, 2, 29, 0, 0, 0, 0), at(1582, 10, 10, 0, 0, 0, 0),
		},
		"bytes": {[]byte{}, []byte{0}, []byte("a\x00b"), all, bytes.Repeat([]byte{0xff, 0x00, 0x27, 0x5c}, 1<<14)},
	}
}

func (Conformance) EveryValueComesBackExactly(t *testing.T, db enginetest.Database) {
	eng := openThings(t, db)
	for column, values := range exact() {
		var unit string
		update(t, eng, func(tx *perdure.Tx) error {
			unit = tx.ID()
			for i, value := range values {
				_, _ = tx.Create(things, schema.Values{"id": fmt.Sprintf("%s %d", column, i), column: value})
			}
			return nil
		})
		entry, err := eng.Outbox().Find(t.Context(), unit)
		enginetest.NoError(t, err)
		for i, want := range values {
			if got := get(t, eng, things, fmt.Sprintf("%s %d", column, i)).Values()[column]; !reflect.DeepEqual(got, want) {
				t.Errorf("%s: %#.80v came back as %#.80v", column, want, got)
			}
			if got := entry.Payload.Mutations[i].Values[column]; !reflect.DeepEqual(got, want) {
				t.Errorf("the outbox shows %s %#.80v as %#.80v", column, want, got)
			}
		}
	}
	sound(t, eng)
}

func (Conformance) EveryValueCanBeNullAndChanged(t *testing.T, db enginetest.Database) {
	eng := openThings(t, db)
	full := schema.Values{
		"string": "s", "text": "t", "int": 1, "float": 1.5, "decimal": "1.5", "bool": true, "time": time.Unix(1, 0),
		"json": map[string]any{"a": 1}, "bytes": []byte{1},
	}
	update(t, eng, func(tx *perdure.Tx) error { _, err := tx.Create(things, schema.Values{"id": "x"}); return err })
	null := schema.Values{}
	for name, v := range get(t, eng, things, "x").Values() {
		null[name] = nil
		if v != nil {
			t.Errorf("%s is %v, want null", name, v)
		}
	}
	update(t, eng, func(tx *perdure.Tx) error { return tx.Update(things, "x", full) })
	row := get(t, eng, things, "x")
	for name := range full {
		if row.IsNull(name) {
			t.Errorf("%s is null", name)
		}
	}
	update(t, eng, func(tx *perdure.Tx) error { return tx.Update(things, "x", null) })
	row = get(t, eng, things, "x")
	if row.String("string") != "" || row.Int("int") != 0 || row.Bool("bool") || !row.Time("time").IsZero() ||
		row.JSON("json") != nil || row.Bytes("bytes") != nil || row.Float("float") != 0 || row.Version != 2 {
		t.Errorf("null reads as %v", row.Values())
	}
	sound(t, eng)
}

func (Conformance) ValuesAreBroughtIntoOneForm(t *testing.T, db enginetest.Database) {
	eng := openThings(t, db)
	type small int8
	berlin := time.FixedZone("Berlin", 2*3600)
	for i, c := range []struct {
		column      string
		given, want any
	}{
		{"int", small(-3), int64(-3)},
		{"int", uint16(9), int64(9)},
		{"int", json.Number("9007199254740993"), int64(9007199254740993)},
		{"float", 7, 7.0},
		{"float", math.Copysign(0, -1), 0.0},
		{"float", float32(math.Copysign(0, -1)), 0.0},
		{"decimal", "-0.00", "0"},
		{"decimal", "+001.50", "1.5"},
		{"decimal", "-1.5E+3", "-1500"},
		{"decimal", small(-3), "-3"},
		{"decimal", uint64(math.MaxUint64), "18446744073709551615"},
		{"decimal", json.Number("1.10"), "1.1"},
		{"decimal", big.NewRat(-5, 4), "-1.25"},
		{"decimal", new(big.Int).Lsh(big.NewInt(1), 100), "1267650600228229401496703205376"},
		{"float", float32(0.5), 0.5},
		{"time", time.Date(2026, 1, 1, 1, 30, 0, 123456789, berlin), time.Date(2025, 12, 31, 23, 30, 0, 123456000, time.UTC)},
		{"time", time.Date(1960, 1, 1, 0, 0, 0, 999, time.UTC), time.Date(1960, 1, 1, 0, 0, 0, 0, time.UTC)},
	} {
		id := fmt.Sprint(i)
		update(t, eng, func(tx *perdure.Tx) error {
			_, err := tx.Create(things, schema.Values{"id": id, c.column: c.given})
			return err
		})
		if got := get(t, eng, things, id).Values()[c.column]; !identical(got, c.want) {
			t.Errorf("%s %v came back as %#v, want %#v", c.column, c.given, got, c.want)
		}
		last := entries(t, eng)[i]
		if got := last.Payload.Mutations[0].Values[c.column]; !identical(got, c.want) {
			t.Errorf("the outbox shows %s %v as %#v, want %#v", c.column, c.given, got, c.want)
		}
	}
	sound(t, eng)
}

// identical also distinguishes zeros by their sign.
func identical(a, b any) bool {
	x, ok1 := a.(float64)
	y, ok2 := b.(float64)
	if ok1 && ok2 {
		return math.Float64bits(x) == math.Float64bits(y)
	}
	return reflect.DeepEqual(a, b)
}

func (Conformance) JSONComesBackWithTheSameMeaning(t *testing.T, db enginetest.Database) {
	eng := openThings(t, db)
	nested := strings.Repeat(`[`, 31) + strings.Repeat(`]`, 31)
	for i, text := range []string{
		`null`, `true`, `1`, `"text"`, `""`, `[]`, `{}`, `[1,null,"x",{"a":[]}]`, `{"b":1,"a":{"c":2}}`,
		`9223372036854775807`, `123456789012345678901234567890`, `{"n":18446744073709551615}`, `0.1`, `1.10`,
		`"\ud83d\ude42 🙂"`, `{"ключ":"значение"}`, `{"__ref":"0.json"}`, nested, `"<>&\u2028"`, `{"":1}`, `-0.5`,
		`"` + strings.Repeat("x", 1<<20-2) + `"`,
	} {
		id := fmt.Sprint(i)
		update(t, eng, func(tx *perdure.Tx) error {
			_, err := tx.Create(things, schema.Values{"id": id, "json": json.RawMessage(text)})
			return err
		})
		row := get(t, eng, things, id)
		if row.IsNull("json") {
			t.Errorf("%.60s came back as null", text)
		}
		if !sameJSON(t, string(row.JSON("json")), text) {
			t.Errorf("%.60s came back as %.60s", text, row.JSON("json"))
		}
	}
	sound(t, eng)
}

// sameJSON compares documents with their numbers as they are written.
func sameJSON(t testing.TB, a, b string) bool {
	t.Helper()
	var values [2]any
	for i, text := range []string{a, b} {
		dec := json.NewDecoder(strings.NewReader(text))
		dec.UseNumber()
		enginetest.NoError(t, dec.Decode(&values[i]))
	}
	return reflect.DeepEqual(values[0], values[1])
}

func (Conformance) NumbersThatAreNotFinite(t *testing.T, db enginetest.Database) {
	eng := openThings(t, db)
	for i, f := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		id := fmt.Sprint(i)
		write := func() error {
			return eng.Update(t.Context(), func(tx *perdure.Tx) error {
				_, err := tx.Create(things, schema.Values{"id": id, "float": f})
				return err
			})
		}
		if db.Name == enginetest.MySQL {
			db.Unchanged(t, func() { enginetest.As[*fault.Invalid](t, write()) })
			continue
		}
		enginetest.NoError(t, write())
		row := get(t, eng, things, id)
		if got := row.Float("float"); math.Float64bits(got) != math.Float64bits(f) && !(math.IsNaN(got) && math.IsNaN(f)) {
			t.Errorf("%v came back as %v", f, got)
		}
		if rows := find(t, eng, things, &perdure.FindOptions{Where: schema.Values{"float": f}}); len(rows) != 1 || rows[0].ID != id {
			t.Errorf("%v is found in %d rows", f, len(rows))
		}
	}
	sound(t, eng)
}

// UniqueIsExact: case, trailing spaces, accents and normal forms make a
// difference, on every database the same.
func (Conformance) UniqueIsExact(t *testing.T, db enginetest.Database) {
	eng := openBlog(t, db)
	names := []string{"ann", "Ann", "ANN", "ann ", "ann  ", " ann", "änn", "a\u0308nn", "ｓ", "s", "ß", "ss", "", " ", "ı", "i", "\u200bann", "ann\t", "ann\n", "🙂", "🙃"}
	for _, name := range names {
		update(t, eng, func(tx *perdure.Tx) error {
			_, err := tx.Create(users, schema.Values{"id": "id " + name, "name": name})
			return err
		})
	}
	before := db.Footprint(t)
	for _, name := range names {
		rows := find(t, eng, users, &perdure.FindOptions{Where: schema.Values{"name": name}})
		if len(rows) != 1 || rows[0].String("name") != name || rows[0].ID != "id "+name {
			t.Errorf("%q is found in %d rows", name, len(rows))
		}
		if row := get(t, eng, users, "id "+name); row.String("name") != name {
			t.Errorf("%q is found as %q", name, row.String("name"))
		}
		err := eng.Update(t.Context(), func(tx *perdure.Tx) error {
			_, err := tx.Create(users, schema.Values{"name": name})
			return err
		})
		if e := enginetest.As[*fault.Duplicate](t, err); !strings.Contains(e.Constraint, "name") {
			t.Errorf("the constraint is %q", e.Constraint)
		}
	}
	if after := db.Footprint(t); !maps.Equal(before, after) {
		t.Errorf("duplicates left something behind: %v, before %v", after, before)
	}
	sound(t, eng)
}

func (Conformance) NullIsNeverADuplicate(t *testing.T, db enginetest.Database) {
	pairs := schema.NewTable("pairs", schema.Int("a").Optional(), schema.String("b")).Unique("a", "b")
	eng := db.Open(t, &perdure.Options{Schemas: []*schema.Schema{schema.New("pair", pairs)}})
	create := func(a any, b string) error {
		return eng.Update(t.Context(), func(tx *perdure.Tx) error {
			_, err := tx.Create(pairs, schema.Values{"a": a, "b": b})
			return err
		})
	}
	for range 2 {
		enginetest.NoError(t, create(nil, "x"))
	}
	enginetest.NoError(t, create(1, "x"))
	enginetest.NoError(t, create(1, "y"))
	enginetest.As[*fault.Duplicate](t, create(1, "x"))
}
