package mysql

import (
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/sqldb"
)

const (
	idA = "01a1eca9-9b46-78c2-92e5-4718a00960ea"
	idB = "01a1eca9-ab78-7e9d-b212-a9c43f556c2d"
)

// ran runs a statement under a guard and returns the number of guards that were written.
// found are the columns of the only row of the statement.
func ran(t *testing.T, g *guard, s sqldb.Stmt, found ...string) int {
	t.Helper()
	n := 0
	err := g.run(s, func(s sqldb.Stmt) error {
		if strings.HasPrefix(s.SQL, "insert into perdure_guards") {
			n += strings.Count(s.SQL, "(") - 1 // the list of columns
		}
		if s.Row == nil {
			return nil
		}
		return s.Row(func(dest ...any) error {
			for i := range dest {
				*dest[i].(*string) = found[i]
			}
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A transaction writes the guards of the rows that it locks, each once. The rows are known by
// the values of the statement, or by its result.
func TestRowsThatAreLockedAreGuarded(t *testing.T) {
	t.Parallel()
	row := func(scan sqldb.Scan) error { return scan(new(string), new(string)) }
	for name, c := range map[string]struct {
		stmt sqldb.Stmt
		want int
	}{
		"by id":                    {sqldb.Exec("select id from t where id = ? for update", idA), 1},
		"by a set":                 {sqldb.Exec("select id from t join json_table(?, …) for update", `[["`+idA+`"],["`+idB+`"]]`), 2},
		"by a name":                {sqldb.Exec("select name from t where name = ? lock in share mode", "daily"), 1},
		"by a search":              {sqldb.Stmt{SQL: "select id, x from t where queue = ? limit 1 for update skip locked", Args: []any{"q"}, Row: row}, 1},
		"a search that fails":      {sqldb.Exec("select id from t where queue = ? for update skip locked", "q"), 0},
		"not locked":               {sqldb.Exec("select id from t where id = ?", idA), 0},
		"changed":                  {sqldb.Exec("update perdure_t set a = 1 where id = ?", idA), 1},
		"a row of the application": {sqldb.Exec("update t set a = 1 where id = ?", idA), 0},
		"changed by a name":        {sqldb.Exec("update perdure_t set a = 1 where name = ?", "daily"), 0},
	} {
		g := &guard{written: map[uint32]bool{}}
		if n := ran(t, g, c.stmt, idB, "x"); n != c.want {
			t.Errorf("%s: %d guards, want %d", name, n, c.want)
		}
		if n := ran(t, g, c.stmt, idB, "x"); n != 0 {
			t.Errorf("%s: %d guards are written twice", name, n)
		}
	}
}
