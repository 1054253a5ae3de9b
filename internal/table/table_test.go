package table

import (
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/schema"
)

func TestTablesAreCreatedAfterThoseTheyReferTo(t *testing.T) {
	t.Parallel()
	a := schema.NewTable("a", schema.Int("n"))
	b := schema.NewTable("b", schema.Ref("a", a))
	c := schema.NewTable("c", schema.Ref("b", b), schema.Ref("a", a))
	outside := schema.NewTable("outside", schema.Int("n"))
	d := schema.NewTable("d", schema.Ref("outside", outside))
	for _, tables := range [][]*schema.Table{{a, b, c, d}, {d, c, b, a}, {c, a, d, b}} {
		got := order(tables)
		if len(got) != 4 || slices.Contains(got, outside) {
			t.Fatalf("there are %d tables", len(got))
		}
		if slices.Index(got, a) > slices.Index(got, b) || slices.Index(got, b) > slices.Index(got, c) {
			t.Errorf("the order is %v", names(got))
		}
	}
}

func names(tables []*schema.Table) (all []string) {
	for _, t := range tables {
		all = append(all, t.Name())
	}
	return all
}

func TestNamesAreShortenedWithoutBecomingEqual(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 60)
	short := map[string]bool{}
	for _, name := range []string{"a", long, long + "_a_idx", long + "_b_idx", long + "_a_key", strings.Repeat("y", 200)} {
		got := shorten(name)
		if len(got) > maxIdentifier || short[got] {
			t.Errorf("%s becomes %s", name, got)
		}
		short[got] = true
	}
	if shorten("users_name_key") != "users_name_key" {
		t.Error("a short name was changed")
	}
}

func TestTextIsQuotedForEachDatabase(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, want string }{
		{sqldb.Postgres, `it's \ "x"`, `'it''s \ "x"'`},
		{sqldb.SQLite, `it's \ "x"`, `'it''s \ "x"'`},
		{sqldb.MySQL, `it's \ "x"`, `'it''s \\ "x"'`},
		{sqldb.MySQL, `\'`, `'\\'''`},
	} {
		if got := (Builder{Dialect: sqldb.Dialect{Name: c.name}}).quoteText(c.text); got != c.want {
			t.Errorf("%s: %s is quoted as %s, want %s", c.name, c.text, got, c.want)
		}
	}
}

func TestTheSameQuestionHasTheSameText(t *testing.T) {
	t.Parallel()
	table := schema.NewTable("t", schema.Int("a"), schema.Int("b"), schema.String("c"))
	schema.New("app", table)
	b := Builder{Dialect: sqldb.Dialect{Name: sqldb.Postgres}}
	var first string
	for range 20 { // maps have no order
		find, err := b.Find(table, Query{Where: schema.Values{"c": "x", "a": 1, "b": 2, "id": "y"}}, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		update, err := b.Update(table, "x", schema.Values{"c": "x", "a": int64(1), "b": int64(2)}, nil)
		if err != nil {
			t.Fatal(err)
		}
		text := find.SQL + update[0].SQL
		if first == "" {
			first = text
		}
		if text != first {
			t.Fatalf("%s is not %s", text, first)
		}
	}
}
