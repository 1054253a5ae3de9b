package store

import (
	"testing"

	"github.com/perdure/perdure/internal/sqldb"
)

// A column that is encrypted but has no row in the table of places would not be
// encrypted again when the keys change.
func TestEveryEncryptedColumnIsListed(t *testing.T) {
	t.Parallel()
	for _, dialect := range []string{sqldb.SQLite, sqldb.Postgres} {
		all, err := load(sqldb.Dialect{Name: dialect})
		if err != nil {
			t.Fatal(err)
		}
		names := map[string]bool{}
		for p, column := range places {
			if column.name == "" || names[column.name] || len(column.rows) == 0 {
				t.Errorf("place %d is %+v", p, column)
			}
			names[column.name] = true
			for _, rows := range column.rows {
				if all.plain[rows.list] == "" || all.plain[rows.update] == "" {
					t.Errorf("%s of %s has no statements %s and %s", dialect, column.name, rows.list, rows.update)
				}
			}
		}
	}
}
