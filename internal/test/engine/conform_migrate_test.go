package engine_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/schema"
)

// migrations returns how many steps the database has recorded, and how many
// different ones.
func migrations(t testing.TB, db enginetest.Database) (all, distinct int64) {
	t.Helper()
	from := " from " + db.Table("perdure", "migrations")
	return db.Int(t, "select count(*)"+from), db.Int(t, "select count(distinct version)"+from)
}

func steps(t testing.TB, db enginetest.Database) int64 {
	t.Helper()
	all, err := store.Migrations(sqldb.Dialect{Name: db.Name})
	enginetest.NoError(t, err)
	return int64(len(all))
}

func (Conformance) EightEnginesCanOpenAnEmptyDatabaseAtOnce(t *testing.T, db enginetest.Database) {
	db = enginetest.Empty(t, db.Name)
	var start, all sync.WaitGroup
	start.Add(8)
	errs := make([]error, 8)
	for i := range 8 {
		all.Go(func() {
			start.Done()
			start.Wait()
			errs[i] = openAndWrite(db.DSN, fmt.Sprint(i))
		})
	}
	all.Wait()
	for i, err := range errs {
		if err != nil {
			t.Errorf("engine %d: %v", i, err)
		}
	}
	checkEight(t, db)
}

// openAndWrite is what each of eight does: open, commit one unit, close.
func openAndWrite(dsn, id string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	eng, err := perdure.Open(ctx, dsn, withOutbox())
	if err != nil {
		return err
	}
	err = eng.Update(ctx, func(tx *perdure.Tx) error {
		_, err := tx.Create(users, schema.Values{"id": id, "name": id})
		return err
	})
	if err != nil {
		return err
	}
	return eng.Close()
}

func checkEight(t *testing.T, db enginetest.Database) {
	t.Helper()
	if all, distinct := migrations(t, db); all != steps(t, db) || distinct != all {
		t.Errorf("%d migrations are recorded, %d different ones, want %d", all, distinct, steps(t, db))
	}
	if n := db.Rows(t, "blog", "users"); n != 8 {
		t.Errorf("there are %d rows", n)
	}
	if n := db.Int(t, "select count(*) from "+db.Table("perdure", "schemas")); n != 1 {
		t.Errorf("the schema is recorded %d times", n)
	}
	sound(t, openBlog(t, db))
}

func (Conformance) OpeningAgainChangesNothing(t *testing.T, db enginetest.Database) {
	db = enginetest.Empty(t, db.Name)
	openBlog(t, db)
	db.Unchanged(t, func() { openBlog(t, db) })
}

func (Conformance) ANewerDatabaseIsRefused(t *testing.T, db enginetest.Database) {
	db = enginetest.Empty(t, db.Name)
	openBlog(t, db)
	insert := "insert into " + db.Table("perdure", "migrations") + " (version, name, checksum, applied_at) values (9999, 'future', 'x', ?)"
	now := any(time.Now().UTC())
	if db.Name == enginetest.SQLite {
		now = time.Now().UnixMicro()
	}
	db.Exec(t, insert, now)
	db.Unchanged(t, func() {
		for _, options := range []*perdure.Options{withOutbox(), {NoMigrate: true}} {
			_, err := perdure.Open(t.Context(), db.DSN, options)
			if err == nil || !strings.Contains(err.Error(), "9999") {
				t.Errorf("a newer database: %v", err)
			}
		}
	})
}

// A database from a build between two releases may lack a migration before its last one.
func (Conformance) AMigrationThatIsMissingInBetweenIsNamed(t *testing.T, db enginetest.Database) {
	db = enginetest.Empty(t, db.Name)
	openBlog(t, db)
	db.Exec(t, "delete from "+db.Table("perdure", "migrations")+" where version = 2")
	db.Unchanged(t, func() {
		_, err := perdure.Open(t.Context(), db.DSN, withOutbox())
		if err == nil || !strings.Contains(err.Error(), "but not 2, which comes before it") {
			t.Errorf("a migration is missing: %v", err)
		}
	})
}

func (Conformance) AChangedMigrationIsRefused(t *testing.T, db enginetest.Database) {
	db = enginetest.Empty(t, db.Name)
	openBlog(t, db)
	db.Exec(t, "update "+db.Table("perdure", "migrations")+" set checksum = 'x' where version = 1")
	_, err := perdure.Open(t.Context(), db.DSN, withOutbox())
	if err == nil || !strings.Contains(err.Error(), "migration 1") {
		t.Errorf("a changed migration: %v", err)
	}
}

func (Conformance) NoMigrateRefusesAnEmptyDatabase(t *testing.T, db enginetest.Database) {
	db = enginetest.Empty(t, db.Name)
	_, err := perdure.Open(t.Context(), db.DSN, &perdure.Options{NoMigrate: true, Schemas: []*schema.Schema{blog}})
	enginetest.Is(t, err, fault.ErrNotMigrated)
	if !strings.Contains(err.Error(), "migrat") {
		t.Errorf("the text does not tell what to do: %v", err)
	}
	if raw := db.SQL(t); db.Name == enginetest.SQLite {
		var n int
		enginetest.NoError(t, raw.QueryRowContext(t.Context(), "select count(*) from sqlite_master").Scan(&n))
		if n != 0 {
			t.Errorf("NoMigrate created %d objects", n)
		}
	}
	openBlog(t, db)
	eng := db.Open(t, &perdure.Options{NoMigrate: true, Schemas: []*schema.Schema{blog}})
	createUser(t, eng, "ann")
}

func (Conformance) TheMigrationScriptCanBeRunByHand(t *testing.T, db enginetest.Database) {
	db = enginetest.Empty(t, db.Name)
	dsn := db.DSN
	if db.Name == enginetest.MySQL {
		dsn = "mariadb" + strings.TrimPrefix(dsn, "mysql")
	}
	script, err := perdure.MigrationScript(dsn)
	enginetest.NoError(t, err)
	raw := db.SQL(t)
	statements := strings.Split(script, ";\n")
	if db.Name == enginetest.Postgres {
		statements = []string{script} // it has functions, with semicolons in them
	}
	for _, statement := range statements {
		if strings.TrimSpace(statement) == "" {
			continue
		}
		if _, err := raw.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	byHand := schemaOf(t, db)
	eng := db.Open(t, &perdure.Options{NoMigrate: true, Outbox: true})
	_, err = eng.Outbox().Status(t.Context())
	enginetest.NoError(t, err)
	openBlog(t, db)
	if all, _ := migrations(t, db); all != steps(t, db) {
		t.Errorf("%d migrations are recorded", all)
	}
	other := enginetest.Empty(t, db.Name)
	other.Open(t, nil)
	if byOpen := schemaOf(t, other); !maps.Equal(byHand, byOpen) {
		t.Errorf("the script makes other tables than Open:\n%v\n%v", byHand, byOpen)
	}
}

// schemaOf returns the columns of all tables.
func schemaOf(t testing.TB, db enginetest.Database) map[string]string {
	t.Helper()
	query := map[string]string{
		enginetest.SQLite:   "select name, sql from sqlite_master where sql is not null",
		enginetest.Postgres: "select table_schema || '.' || table_name || '.' || column_name, data_type || is_nullable from information_schema.columns where table_schema not in ('pg_catalog', 'information_schema')",
		enginetest.MySQL:    "select concat(table_name, '.', column_name), concat(column_type, is_nullable, coalesce(collation_name, '')) from information_schema.columns where table_schema = database()",
	}[db.Name]
	rows, err := db.SQL(t).QueryContext(t.Context(), query)
	enginetest.NoError(t, err)
	defer rows.Close()
	found := map[string]string{}
	for rows.Next() {
		var name, kind string
		enginetest.NoError(t, rows.Scan(&name, &kind))
		found[name] = kind
	}
	enginetest.NoError(t, rows.Err())
	return found
}

// shop describes a table in one of its versions.
func shop(columns ...schema.Column) (*schema.Table, *perdure.Options) {
	table := schema.NewTable("items", columns...)
	return table, &perdure.Options{Schemas: []*schema.Schema{schema.New("shop", table)}, Outbox: true}
}

func (Conformance) ColumnsAndIndexesCanBeAdded(t *testing.T, db enginetest.Database) {
	db = enginetest.Empty(t, db.Name)
	before, options := shop(schema.String("name"))
	old := db.Open(t, options)
	update(t, old, func(tx *perdure.Tx) error {
		_, err := tx.Create(before, schema.Values{"id": "old", "name": "Old"})
		return err
	})
	at := time.Date(2020, 1, 2, 3, 4, 5, 678901000, time.UTC)
	after, options := shop(
		schema.String("name").Unique(),
		schema.String("note").Optional(),
		schema.String("quoted").Default(`it's "so" \ 🙂`),
		schema.Text("long").Default(`it's long \`),
		schema.Int("stock").Default(-5),
		schema.Float("price").Default(1.5),
		schema.Bool("sold").Default(true),
		schema.Time("since").Default(at),
		schema.JSON("extra").Default(map[string]any{"a": `b\'c`}),
		schema.Bytes("raw").Default([]byte{0, 39, 92, 255}),
		schema.Int("none").Optional().Default(nil),
	)
	after.Index("stock", "name")
	eng := db.Open(t, options)
	row := get(t, eng, after, "old")
	if !row.IsNull("note") || row.String("quoted") != `it's "so" \ 🙂` || row.String("long") != `it's long \` || row.Int("stock") != -5 ||
		row.Float("price") != 1.5 || !row.Bool("sold") || !row.Time("since").Equal(at) || string(row.Bytes("raw")) != "\x00'\\\xff" ||
		!sameJSON(t, string(row.JSON("extra")), `{"a":"b\\'c"}`) || !row.IsNull("none") {
		t.Errorf("the existing row has %v", row.Values())
	}
	update(t, eng, func(tx *perdure.Tx) error {
		_, _ = tx.Create(after, schema.Values{"id": "new", "name": "New", "note": "x"})
		return tx.Update(after, "old", schema.Values{"stock": 1})
	})
	err := eng.Update(t.Context(), func(tx *perdure.Tx) error {
		_, err := tx.Create(after, schema.Values{"name": "New"})
		return err
	})
	enginetest.As[*fault.Duplicate](t, err)
	update(t, old, func(tx *perdure.Tx) error { // an old process still runs
		_, err := tx.Create(before, schema.Values{"id": "late", "name": "Late"})
		return err
	})
	if row := get(t, eng, after, "late"); row.Int("stock") != -5 {
		t.Errorf("the row of the old process has %v", row.Values())
	}
	sound(t, eng)
}

func (Conformance) AReferenceCanBeAdded(t *testing.T, db enginetest.Database) {
	db = enginetest.Empty(t, db.Name)
	makers := schema.NewTable("makers", schema.String("name"))
	items := schema.NewTable("items", schema.String("name"))
	eng := db.Open(t, &perdure.Options{Schemas: []*schema.Schema{schema.New("shop", makers, items)}, Outbox: true})
	update(t, eng, func(tx *perdure.Tx) error {
		_, err := tx.Create(items, schema.Values{"id": "old", "name": "Old"})
		return err
	})
	makers2 := schema.NewTable("makers", schema.String("name"))
	items2 := schema.NewTable("items", schema.String("name"), schema.Ref("maker", makers2).Optional()).Index("maker")
	eng = db.Open(t, &perdure.Options{Schemas: []*schema.Schema{schema.New("shop", items2, makers2)}, Outbox: true})
	update(t, eng, func(tx *perdure.Tx) error {
		_, _ = tx.Create(makers2, schema.Values{"id": "acme", "name": "Acme"})
		return tx.Update(items2, "old", schema.Values{"maker": "acme"})
	})
	err := eng.Update(t.Context(), func(tx *perdure.Tx) error { return tx.Delete(makers2, "acme") })
	enginetest.As[*fault.Restricted](t, err)
	sound(t, eng)
}

func (Conformance) ChangesThatWouldBreakRowsAreRefused(t *testing.T, db enginetest.Database) {
	db = enginetest.Empty(t, db.Name)
	_, options := shop(schema.String("name"), schema.Int("stock").Default(0))
	db.Open(t, options)
	for name, columns := range map[string][]schema.Column{
		"a required column":     {schema.String("name"), schema.Int("stock"), schema.Int("new")},
		"a required time":       {schema.String("name"), schema.Int("stock"), schema.Time("new").DefaultNow()},
		"another type":          {schema.String("name"), schema.Float("stock")},
		"a string for an int":   {schema.String("name"), schema.String("stock")},
		"a reference for a int": {schema.String("name"), schema.Bytes("stock")},
	} {
		db.Unchanged(t, func() {
			_, options := shop(columns...)
			_, err := perdure.Open(t.Context(), db.DSN, options)
			if e := enginetest.As[*fault.Invalid](t, err); !strings.HasPrefix(e.Field, "items.") {
				t.Errorf("%s: %v", name, e)
			}
		})
	}
	_, fewer := shop(schema.String("name")) // a column that is no longer described stays
	eng := db.Open(t, fewer)
	items := fewer.Schemas[0].Table("items")
	update(t, eng, func(tx *perdure.Tx) error { _, err := tx.Create(items, schema.Values{"name": "x"}); return err })
	if n := db.Int(t, "select count(stock) from "+db.Table("shop", "items")); n != 1 {
		t.Error("the column is gone")
	}
}

// TablesCanChangeWhileOthersWrite: engines of both versions write on.
func (Conformance) TablesCanChangeWhileOthersWrite(t *testing.T, db enginetest.Database) {
	db = enginetest.Empty(t, db.Name)
	before, options := shop(schema.String("name"))
	options.MaxAttempts = 10_000 // the writers fight for one row
	old := db.Open(t, options)
	ctx, stop := context.WithCancel(t.Context())
	var writers sync.WaitGroup
	var written, failed sync.Map
	for i := range 4 {
		writers.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				err := old.Update(context.Background(), func(tx *perdure.Tx) error {
					if rows, err := tx.Find(before, &perdure.FindOptions{Limit: 3}); err == nil && len(rows) > 0 {
						_ = tx.UpdateRow(rows[0], schema.Values{"name": fmt.Sprint("changed ", n)})
					}
					_, err := tx.Create(before, schema.Values{"name": fmt.Sprint(i, " ", n)})
					return err
				})
				if err != nil {
					failed.Store(err.Error(), true)
				}
				written.Store(i, n+1)
			}
		})
	}
	count := func() (n int) {
		written.Range(func(_, v any) bool { n += v.(int); return true })
		return n
	}
	columns := []schema.Column{schema.String("name")}
	for i := range 3 {
		seen := count()
		enginetest.Eventually(t, "units are committed", func() bool { return count() >= seen+8 })
		columns = append(columns, schema.Int(fmt.Sprint("extra", i)).Default(i))
		table, options := shop(columns...)
		table.Index(fmt.Sprint("extra", i))
		eng := db.Open(t, options)
		update(t, eng, func(tx *perdure.Tx) error { _, err := tx.Create(table, schema.Values{"name": "x"}); return err })
	}
	stop()
	writers.Wait()
	failed.Range(func(err, _ any) bool { t.Errorf("a unit failed: %v", err); return true })
	sound(t, old)
}
