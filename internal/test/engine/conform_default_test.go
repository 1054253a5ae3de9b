package engine_test

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/schema"
)

// moment is a clock that stands still, finer than what is stored.
var moment = time.Date(2026, 7, 21, 12, 30, 0, 123456789, time.UTC)

// DefaultsAreInTheRowAndInTheOutbox: what the row has is what the outbox tells,
// so that a consumer need not know the defaults.
func (Conformance) DefaultsAreInTheRowAndInTheOutbox(t *testing.T, db enginetest.Database) {
	calls := 0
	table := schema.NewTable("items",
		schema.String("string").Default("it's \\ 🙂"),
		schema.Text("text").Default("long"),
		schema.Int("int").Default(math.MaxInt64),
		schema.Float("float").Default(2.5),
		schema.Bool("bool").Default(true),
		schema.Time("time").Default(time.Date(2020, 1, 2, 3, 4, 5, 678901234, time.UTC)),
		schema.JSON("json").Default(map[string]any{"a": []int{1, 2}}),
		schema.Bytes("bytes").Default([]byte{0, 1, 2}),
		schema.Int("null").Optional().Default(nil),
		schema.Time("created").DefaultNow(),
		schema.String("made").DefaultFunc(func() any { calls++; return fmt.Sprint("made ", calls) }),
		schema.String("absent").Optional(),
	)
	eng := db.Open(t, &perdure.Options{
		Schemas: []*schema.Schema{schema.New("shop", table)}, Outbox: true, Clock: standing{moment},
	})
	update(t, eng, func(tx *perdure.Tx) error {
		_, _ = tx.Create(table, schema.Values{"id": "a"})
		_, err := tx.Create(table, schema.Values{"id": "b", "made": "by hand", "int": 1})
		return err
	})
	want := schema.Values{
		"string": "it's \\ 🙂", "text": "long", "int": int64(math.MaxInt64), "float": 2.5, "bool": true,
		"time":  time.Date(2020, 1, 2, 3, 4, 5, 678901000, time.UTC),
		"bytes": []byte{0, 1, 2}, "null": nil, "created": moment.Truncate(time.Microsecond), "made": "made 1", "absent": nil,
	}
	row := get(t, eng, table, "a").Values()
	told := entries(t, eng)[0].Payload.Mutations[0].Values
	for name, v := range want {
		if !reflect.DeepEqual(row[name], v) || !reflect.DeepEqual(told[name], v) {
			t.Errorf("%s: the row has %v, the outbox %v, want %v", name, row[name], told[name], v)
		}
	}
	if !sameJSON(t, string(row["json"].(json.RawMessage)), `{"a":[1,2]}`) || !sameJSON(t, string(told["json"].(json.RawMessage)), `{"a":[1,2]}`) {
		t.Errorf("json: the row has %s, the outbox %s", row["json"], told["json"])
	}
	if len(told) != len(table.Columns()) {
		t.Errorf("the outbox shows %d columns of %d", len(told), len(table.Columns()))
	}
	if b := get(t, eng, table, "b"); b.String("made") != "by hand" || b.Int("int") != 1 || calls != 1 {
		t.Errorf("given values: %v after %d calls", b.Values(), calls)
	}
	if created := entries(t, eng)[0].Created; !created.Equal(moment.Truncate(time.Microsecond)) {
		t.Errorf("the entry was created at %v", created)
	}
	sound(t, eng)
}
