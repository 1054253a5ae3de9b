package enginetest

import (
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/driver/sqlite"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/test/testdb"
)

// SQL returns connections to the database that bypass the engine.
func (db Database) SQL(t testing.TB) *sql.DB {
	t.Helper()
	raw, err := db.open()
	NoError(t, err)
	t.Cleanup(func() { raw.Close() })
	return raw
}

// Raw is SQL for a process without a test.
func (db Database) Raw() (*sql.DB, error) { return db.open() }

func (db Database) open() (*sql.DB, error) {
	if db.Name != SQLite {
		return testdb.Open(db.DSN)
	}
	path := strings.TrimPrefix(db.DSN, "sqlite:")
	return sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)&_pragma=foreign_keys(1)")
}

// Dialect returns the SQL dialect of the database.
func (db Database) Dialect() sqldb.Dialect {
	if db.Name == SQLite {
		return sqlite.Dialect()
	}
	return sqldb.Dialect{Name: db.Name}
}

// Table returns the name of a table in SQL: Table("blog", "posts").
func (db Database) Table(schema, table string) string { return db.Dialect().Qualify(schema, table) }

// Exec runs a statement without the engine. It uses ? for values.
func (db Database) Exec(t testing.TB, query string, args ...any) {
	t.Helper()
	raw, err := db.open()
	NoError(t, err)
	defer raw.Close()
	if _, err := raw.ExecContext(Context(t), db.Dialect().Rebind(query), args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// Int reads a number without the engine.
func (db Database) Int(t testing.TB, query string, args ...any) int64 {
	t.Helper()
	return scan[int64](t, db, query, args...)
}

// Text reads a text without the engine.
func (db Database) Text(t testing.TB, query string, args ...any) string {
	t.Helper()
	return scan[string](t, db, query, args...)
}

func scan[T any](t testing.TB, db Database, query string, args ...any) (v T) {
	t.Helper()
	raw, err := db.open()
	NoError(t, err)
	defer raw.Close()
	if err := raw.QueryRowContext(Context(t), db.Dialect().Rebind(query), args...).Scan(&v); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return v
}

// Rows returns the number of rows of a table.
func (db Database) Rows(t testing.TB, schema, table string) int64 {
	t.Helper()
	return db.Int(t, "select count(*) from "+db.Table(schema, table))
}

// Counter returns the outbox counter.
func (db Database) Counter(t testing.TB) int64 {
	t.Helper()
	return db.Int(t, "select counter from "+db.Table("perdure", "outbox_clock"))
}

// Footprint returns the traces that a unit could leave: the number of rows of every table,
// and the outbox counter.
func (db Database) Footprint(t testing.TB) map[string]int64 {
	t.Helper()
	raw, err := db.open()
	NoError(t, err)
	defer raw.Close()
	found := map[string]int64{}
	for _, table := range db.tables(t, raw) {
		var n int64
		NoError(t, raw.QueryRowContext(Context(t), "select count(*) from "+table).Scan(&n))
		found[table] = n
	}
	found["counter"] = db.Counter(t)
	return found
}

// Contents returns the contents of every table, in a comparable form. It leaves out
// perdure_wakes on MySQL: its counters are notifications, written after commits by any
// process, at a time that no caller can choose.
func (db Database) Contents(t testing.TB) map[string]string {
	t.Helper()
	raw, err := db.open()
	NoError(t, err)
	defer raw.Close()
	found := map[string]string{}
	for _, table := range db.tables(t, raw) {
		if table != "`perdure_wakes`" {
			found[table] = contents(t, raw, table)
		}
	}
	return found
}

// contents returns the rows of a table in the order of their text.
func contents(t testing.TB, raw *sql.DB, table string) string {
	t.Helper()
	rows, err := raw.QueryContext(Context(t), "select * from "+table)
	NoError(t, err)
	defer rows.Close()
	columns, err := rows.Columns()
	NoError(t, err)
	values, dest := make([]any, len(columns)), make([]any, len(columns))
	for i := range values {
		dest[i] = &values[i]
	}
	var all []string
	for rows.Next() {
		NoError(t, rows.Scan(dest...))
		all = append(all, fmt.Sprint(values...))
	}
	NoError(t, rows.Err())
	slices.Sort(all)
	return strings.Join(all, "\n")
}

var tableQueries = map[string]string{
	SQLite:   `select '"' || name || '"' from sqlite_master where type = 'table' and name not like 'sqlite_%'`,
	Postgres: `select quote_ident(table_schema) || '.' || quote_ident(table_name) from information_schema.tables where table_schema not in ('pg_catalog', 'information_schema')`,
	MySQL:    "select concat('`', table_name, '`') from information_schema.tables where table_schema = database()",
}

func (db Database) tables(t testing.TB, raw *sql.DB) []string {
	t.Helper()
	rows, err := raw.QueryContext(Context(t), tableQueries[db.Name])
	NoError(t, err)
	defer rows.Close()
	var names []string
	for rows.Next() {
		var name string
		NoError(t, rows.Scan(&name))
		names = append(names, name)
	}
	NoError(t, rows.Err())
	return names
}

// Unchanged runs fn and ends the test if fn changed the footprint.
func (db Database) Unchanged(t testing.TB, fn func()) {
	t.Helper()
	before := db.Footprint(t)
	fn()
	if after := db.Footprint(t); !maps.Equal(before, after) {
		t.Fatalf("something was written: %s", difference(before, after))
	}
}

func difference(before, after map[string]int64) string {
	var parts []string
	for name, n := range after {
		if before[name] != n {
			parts = append(parts, fmt.Sprintf("%s was %d, is %d", name, before[name], n))
		}
	}
	return strings.Join(parts, "; ")
}
