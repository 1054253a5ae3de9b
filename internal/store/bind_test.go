package store

import (
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/sqldb"
)

func TestNumberedValuesBecomePlainOnes(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, text string
		args       []any
		want       string
		values     []any
	}{
		{"no values", "select 1", nil, "select 1", nil},
		{"none of the values", "select 1", []any{1, "a"}, "select 1", nil},
		{"no numbers", "select ?, ?", []any{1, "a"}, "select ?, ?", []any{1, "a"}},
		{"in order", "select ?1, ?2", []any{1, "a"}, "select ?, ?", []any{1, "a"}},
		{"out of order", "select ?2, ?1", []any{1, "a"}, "select ?, ?", []any{"a", 1}},
		{"repeated", "select ?1 + ?1, ?2, ?1", []any{1, "a"}, "select ? + ?, ?, ?", []any{1, 1, "a", 1}},
		{"unused", "select ?2", []any{1, "a"}, "select ?", []any{"a"}},
		{"two digits", "select ?11, ?1", []any{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, "select ?, ?", []any{11, 1}},
		{"at the end", "limit ?3", []any{1, 2, 3}, "limit ?", []any{3}},
		{"without a value", "select ?3, ?0", []any{1, 2}, "select ?, ?", []any{nil, nil}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			text, values := unnumbered(test.text, test.args)
			if text != test.want || !reflect.DeepEqual(values, test.values) {
				t.Errorf("%q with %v becomes %q with %v, want %q with %v", test.text, test.args, text, values, test.want, test.values)
			}
		})
	}
}

const lanes = "select ?1 from (\n{each ?2}\n(select ?2, ?1, ?20)\n{end}\n) limit ?3"

func TestLinesAreRepeatedForEveryRowOfASet(t *testing.T) {
	t.Parallel()
	s := &Store{dialect: sqldb.Dialect{Name: sqldb.MySQL}}
	for _, test := range []struct {
		name string
		set  tuples
		want string
		args []any
	}{
		{"one", one([]string{"a"}), "select ? from (\n(select ?, ?, ?)\n) limit ?", []any{7, "a", 7, nil, 9}},
		{"two", one([]string{"a", "b"}), "select ? from (\n(select ?, ?, ?)\nunion all\n(select ?, ?, ?)\n) limit ?", []any{7, "a", 7, nil, "b", 7, nil, 9}},
		{"none", one([]string{}), "select ? from (\n(select ?, ?, ?)\n) limit ?", []any{7, nil, 7, nil, 9}},
		{"first column", tuples{[]string{"a"}, []int{1}}, "select ? from (\n(select ?, ?, ?)\n) limit ?", []any{7, "a", 7, nil, 9}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got := s.bind(lanes, []any{7, test.set, 9})
			if got.SQL != test.want || !reflect.DeepEqual(got.Args, test.args) {
				t.Errorf("became %q with %v, want %q with %v", got.SQL, got.Args, test.want, test.args)
			}
		})
	}
}

func TestPartsOfAStatementShareTheirValues(t *testing.T) {
	t.Parallel()
	args := []any{1, one([]string{"a", "b"})}
	for dialect, want := range map[string][]sqldb.Stmt{
		sqldb.MySQL:    {{SQL: "insert ?", Args: []any{`[["a"],["b"]]`}}, {SQL: "select ?, ?", Args: []any{1, 1}}},
		sqldb.SQLite:   {{SQL: "insert ?2", Args: []any{1, `[["a"],["b"]]`}}, {SQL: "select ?1, ?1", Args: []any{1, `[["a"],["b"]]`}}},
		sqldb.Postgres: {{SQL: "insert ?2", Args: []any{1, `{"a","b"}`}}, {SQL: "select ?1, ?1", Args: []any{1, `{"a","b"}`}}},
	} {
		s := &Store{dialect: sqldb.Dialect{Name: dialect}}
		if got := s.bindAll("insert ?2\n;\nselect ?1, ?1", args); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, want %v", dialect, got, want)
		}
	}
}

// A statement that mixes numbers with ? would get the wrong values.
func TestStatementsOfMySQLNumberAllValuesOrNone(t *testing.T) {
	t.Parallel()
	loaded, err := load(sqldb.Dialect{Name: sqldb.MySQL, Collation: "utf8mb4_bin"})
	if err != nil {
		t.Fatal(err)
	}
	numbered, plain := regexp.MustCompile(`\?\d`), regexp.MustCompile(`\?(\D|$)`)
	several := 0
	for name, text := range loaded.plain {
		if numbered.MatchString(text) && plain.MatchString(text) {
			t.Errorf("%s has values with and without numbers:\n%s", name, text)
		}
		if strings.Contains(text, "\n;\n") {
			several++
			if plain.MatchString(text) {
				t.Errorf("%s is several statements, which do not number their values:\n%s", name, text)
			}
		}
	}
	if several == 0 {
		t.Error("no name has several statements")
	}
}
