package enginetest

import (
	"fmt"
	"testing"
)

// Beginningless and Endless are times that no Go program would store: PostgreSQL's
// infinities, the limits of SQLite's integers, and MariaDB's zero date.
const (
	Beginningless = "-infinity"
	Endless       = "infinity"
)

// SetTime stores a time that no Go program would store in a column of Perdure's own tables.
// Such a row can be older than the column's constraint, or come from a restored backup.
func (db Database) SetTime(t testing.TB, schema, table, column, to, where string, args ...any) {
	t.Helper()
	if db.Name == Postgres {
		db.Exec(t, fmt.Sprintf("alter table %s drop constraint if exists %s_%s_range", db.Table(schema, table), table, column))
	}
	value := map[string]map[string]string{
		Postgres: {Beginningless: "'-infinity'::timestamptz", Endless: "'infinity'::timestamptz"},
		SQLite:   {Beginningless: "-9223372036854775808", Endless: "9223372036854775807"},
		MySQL:    {Beginningless: "'0000-00-00'", Endless: "'9999-12-31 23:59:59.999999'"},
	}[db.Name][to]
	db.Exec(t, fmt.Sprintf("update %s set %s = %s where %s", db.Table(schema, table), column, value, where), args...)
}
