package sqldb_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/sqldb"
)

func TestRebind(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ query, want string }{
		{"", ""},
		{"select 1", "select 1"},
		{"?", "$1"},
		{"a = ? and b = ?", "a = $1 and b = $2"},
		{"'?' ?", "'?' $1"},
		{"'it''s ?' ?", "'it''s ?' $1"},
		{`"?" ?`, `"?" $1`},
		{`"a""?" ?`, `"a""?" $1`},
		{"-- why?\n?", "-- why?\n$1"},
		{"/* why? */ ?", "/* why? */ $1"},
		{"? -- the end?", "$1 -- the end?"},
		{"? /* without an end?", "$1 /* without an end?"},
		{"? 'without an end?", "$1 'without an end?"},
		{"a - ? / ? * ?", "a - $1 / $2 * $3"},
		{"'--' ? '/*' ?", "'--' $1 '/*' $2"},
		{"ü? 🙂?", "ü$1 🙂$2"},
		{strings.Repeat("?,", 11), "$1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11,"},
	} {
		if got := (sqldb.Dialect{Name: sqldb.Postgres}).Rebind(c.query); got != c.want {
			t.Errorf("%q becomes %q, want %q", c.query, got, c.want)
		}
		for _, name := range []string{sqldb.SQLite, sqldb.MySQL} {
			if got := (sqldb.Dialect{Name: name}).Rebind(c.query); got != c.query {
				t.Errorf("%s: %q becomes %q", name, c.query, got)
			}
		}
	}
}

var numbered = regexp.MustCompile(`\$[0-9]+`)

// FuzzRebind: nothing but question marks changes, and none of them twice.
func FuzzRebind(f *testing.F) {
	for _, seed := range []string{"select ? from a where b = '?' -- ?", "/*?*/?", `"`, "'", "--", "/*", "?'?", "\xff?"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, query string) {
		if strings.Contains(query, "$") {
			return // the inverse is ambiguous
		}
		got := sqldb.Dialect{Name: sqldb.Postgres}.Rebind(query)
		if back := numbered.ReplaceAllString(got, "?"); back != query {
			t.Errorf("%q becomes %q, which is %q", query, got, back)
		}
		if again := (sqldb.Dialect{Name: sqldb.Postgres}).Rebind(got); again != got {
			t.Errorf("%q becomes %q, and then %q", query, got, again)
		}
	})
}

func TestQuoteKeepsAnIdentifierTogether(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, ident, want string }{
		{sqldb.Postgres, `a"b`, `"a""b"`},
		{sqldb.SQLite, `a"b`, `"a""b"`},
		{sqldb.MySQL, "a`b", "`a``b`"},
	} {
		if got := (sqldb.Dialect{Name: c.name}).Quote(c.ident); got != c.want {
			t.Errorf("%s quotes %s as %s, want %s", c.name, c.ident, got, c.want)
		}
	}
}
