package schema_test

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/schema"
)

func parse(t *testing.T, schemas ...*schema.Schema) []*schema.Schema {
	t.Helper()
	var recorded [][]byte
	for _, s := range schemas {
		raw, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		recorded = append(recorded, raw)
	}
	parsed, err := schema.Parse(recorded...)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func TestADescriptionComesBackFromItsRecord(t *testing.T) {
	t.Parallel()
	targets := schema.NewTable("targets", schema.String("name"))
	first := schema.New("first", targets)
	things := schema.NewTable("things",
		schema.String("string").Max(30).Default("it's 🙂").Unique(),
		schema.Text("text").Max(5).Optional().Default(nil),
		schema.Int("int").Default(int64(math.MaxInt64)),
		schema.Int("small").Default(int64(math.MinInt64)),
		schema.Float("float").Default(0.1),
		schema.Float("whole").Default(3.0),
		schema.Bool("bool").Default(true),
		schema.Time("time").Default(time.Date(2026, 7, 21, 12, 0, 0, 123456789, time.UTC)),
		schema.JSON("json").Default(map[string]any{"n": json.Number("9007199254740993")}),
		schema.Bytes("bytes").Default([]byte{0, 255}),
		schema.Ref("ref", targets).Optional(),
		schema.Time("now").DefaultNow(),
		schema.String("made").DefaultFunc(func() any { return "x" }),
	).Index("int", "ref").Unique("string", "bool")
	second := schema.New("second", things)
	for _, order := range [][]*schema.Schema{{first, second}, {second, first}} {
		var parsed *schema.Table
		for _, s := range parse(t, order...) {
			if err := s.Validate(); err != nil {
				t.Errorf("the parsed schema %s: %v", s.Name(), err)
			}
			if s.Name() == "second" {
				parsed = s.Table("things")
			}
		}
		if !reflect.DeepEqual(parsed.Indexes(), things.Indexes()) {
			t.Errorf("the indexes are %v, want %v", parsed.Indexes(), things.Indexes())
		}
		for i, want := range things.Columns() {
			got := parsed.Columns()[i]
			if got.Name() != want.Name() || got.Type() != want.Type() || got.IsOptional() != want.IsOptional() || got.MaxLen() != want.MaxLen() {
				t.Errorf("column %s is %+v, want %+v", want.Name(), got, want)
			}
			gotDefault, gotHas := got.StaticDefault()
			wantDefault, wantHas := want.StaticDefault()
			if gotHas != wantHas || !reflect.DeepEqual(gotDefault, wantDefault) {
				t.Errorf("the default of %s is %#v (%v), want %#v (%v)", want.Name(), gotDefault, gotHas, wantDefault, wantHas)
			}
			if (got.Table() == nil) != (want.Table() == nil) || got.Table() != nil && (got.Table().Name() != "targets" || got.Table().Schema().Name() != "first") {
				t.Errorf("%s refers to %v", want.Name(), got.Table())
			}
		}
	}
}

func TestParseRefusesWhatIsNoDescription(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		``, `[]`, `{"name":1}`, `{"name":"a","tables":{}}`,
		`{"name":"a","tables":[{"name":"t","columns":[{"name":"r","type":"ref","refs":"b.u"}]}]}`,
		`{"name":"a","tables":[{"name":"t","columns":[{"name":"r","type":"ref","refs":"a.u"}]}]}`,
		`{"name":"a","tables":[{"name":"t","columns":[{"name":"r","type":"ref","refs":"u"}]}]}`,
	} {
		if _, err := schema.Parse([]byte(raw)); err == nil {
			t.Errorf("%s was parsed", raw)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"name":"a","tables":[{"name":"t","columns":[{"name":"r","type":"ref","refs":"a.t"},{"name":"i","type":"int","default":1}],"indexes":[{"columns":["i"]}]}]}`))
	f.Add([]byte(`{"name":"a","tables":[null,{"columns":[{"type":"time","default":"x"}]}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		schemas, err := schema.Parse(raw)
		if err != nil {
			return
		}
		for _, s := range schemas {
			if s.Validate() != nil {
				continue
			}
			if _, err := json.Marshal(s); err != nil {
				t.Errorf("a valid schema has no record: %v", err)
			}
		}
	})
}

func TestARowFailsItsReaderOnAWrongAccess(t *testing.T) {
	t.Parallel()
	table := schema.NewTable("t", schema.Int("n"), schema.String("s").Optional())
	schema.New("app", table)
	var failed error
	row := schema.NewRow(table, 1, "x", 2, schema.Values{"n": int64(7), "s": nil}, func(err error) { failed = err })
	if row.Int("n") != 7 || row.String("s") != "" || !row.IsNull("s") || row.Internal() != 1 || row.Table() != table || failed != nil {
		t.Errorf("the row reads as %+v (%v)", row, failed)
	}
	values := row.Values()
	values["n"] = int64(8)
	if row.Int("n") != 7 {
		t.Error("the copy of the values is the row's own")
	}
	for name, access := range map[string]func(){
		"a wrong type":   func() { _ = row.String("n") },
		"a wrong name":   func() { _ = row.Int("m") },
		"is a wrong one": func() { _ = row.IsNull("m") },
	} {
		failed = nil
		access()
		var invalid *fault.Invalid
		if !errors.As(failed, &invalid) || !strings.HasPrefix(invalid.Field, "t.") {
			t.Errorf("%s: %v", name, failed)
		}
	}
}

func TestColumnsAreCopies(t *testing.T) {
	t.Parallel()
	base := schema.String("name")
	_ = base.Optional().Unique().Max(3).Default("x")
	if _, has := base.StaticDefault(); base.IsOptional() || base.MaxLen() != schema.DefaultMaxString || has {
		t.Error("a method changed the column that it was called on")
	}
}
