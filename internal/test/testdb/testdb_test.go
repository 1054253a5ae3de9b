package testdb_test

import (
	"context"
	"database/sql"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/perdure/perdure/internal/test/testdb"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// open returns connections to url that are closed before its database is
// dropped.
func open(t testing.TB, url string) *sql.DB {
	t.Helper()
	db, err := testdb.Open(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func exec(t testing.TB, db *sql.DB, statement string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func text(t testing.TB, db *sql.DB, query string) (s string) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), query).Scan(&s); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return s
}

func TestEachTestHasADatabaseOfItsOwn(t *testing.T) {
	t.Parallel()
	for name, database := range map[string]func(testing.TB) string{
		"Postgres":        testdb.Postgres,
		"MySQL":           testdb.MySQL,
		"DurablePostgres": testdb.DurablePostgres,
		"DurableMySQL":    testdb.DurableMySQL,
	} {
		for i := range 2 {
			t.Run(fmt.Sprint(name, i), func(t *testing.T) {
				t.Parallel()
				db := open(t, database(t))
				exec(t, db, `CREATE TABLE same_name (id int PRIMARY KEY)`)
				exec(t, db, `INSERT INTO same_name VALUES (1)`)
			})
		}
	}
}

func TestADatabaseIsDroppedWithItsTestEvenIfAConnectionIsOpen(t *testing.T) {
	t.Parallel()
	for name, database := range map[string]func(testing.TB) string{
		"Postgres": testdb.Postgres, "MySQL": testdb.MySQL,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var inner *sql.DB
			t.Run("Inner", func(t *testing.T) {
				db, err := testdb.Open(database(t))
				if err != nil {
					t.Fatal(err)
				}
				inner = db
				exec(t, db, `CREATE TABLE x (id int)`)
			})
			defer inner.Close()
			if _, err := inner.ExecContext(t.Context(), `INSERT INTO x VALUES (1)`); err == nil {
				t.Error("the table of the inner test is still there")
			}
		})
	}
}

func TestTextIsUnicode(t *testing.T) {
	t.Parallel()
	const want = "Grüße, 世界 🎈"
	for name, url := range map[string]string{"Postgres": testdb.Postgres(t), "MySQL": testdb.MySQL(t)} {
		db := open(t, url)
		exec(t, db, `CREATE TABLE greeting (words varchar(100))`)
		exec(t, db, `INSERT INTO greeting VALUES ('`+want+`')`)
		if got := text(t, db, `SELECT words FROM greeting`); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

func TestATemplateIsPreparedOnceAndCopiedForEachTest(t *testing.T) {
	t.Parallel()
	var prepared atomic.Int32
	name := fmt.Sprintf("once-%p", &prepared) // another one in each run of -count
	prepare := func(url string) error {
		prepared.Add(1)
		db, err := testdb.Open(url)
		if err != nil {
			return err
		}
		defer db.Close()
		_, err = db.ExecContext(context.Background(), `CREATE TABLE copied AS SELECT 7 AS n`)
		return err
	}
	t.Run("Copies", func(t *testing.T) {
		for i := range 4 {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				db := open(t, testdb.PostgresTemplate(t, name, prepare))
				exec(t, db, `UPDATE copied SET n = n + 1`)
				if got := text(t, db, `SELECT n::text FROM copied`); got != "8" {
					t.Errorf("n = %s: the copy is not the test's own", got)
				}
			})
		}
	})
	if n := prepared.Load(); n != 1 {
		t.Errorf("prepared %d times, want once", n)
	}
}

func TestAPrivateServerSyncsAndKeepsRowsOverKillAndRestart(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name        string
		start       func(testing.TB) *testdb.Server
		query, want string
	}{
		{
			"Postgres", testdb.PrivatePostgres,
			`SELECT concat_ws(' ', current_setting('fsync'), current_setting('synchronous_commit'), current_setting('full_page_writes'))`,
			"on on on",
		},
		{
			"MySQL", testdb.PrivateMySQL,
			`SELECT @@innodb_flush_log_at_trx_commit`,
			"1",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			server := c.start(t)
			db := open(t, server.Database(t))
			db.SetMaxIdleConns(0) // a connection to the killed server is no use
			if got := text(t, db, c.query); got != c.want {
				t.Errorf("settings %q, want %q", got, c.want)
			}
			exec(t, db, `CREATE TABLE kept (n int)`)
			for already, end := range []func() error{server.Kill, server.Stop} {
				exec(t, db, `INSERT INTO kept VALUES (1)`)
				endAndRestart(t, server, end, db)
				if got := text(t, db, `SELECT COUNT(*) FROM kept`); got != fmt.Sprint(already+1) {
					t.Errorf("%s rows after the restart, want %d", got, already+1)
				}
			}
		})
	}
}

func endAndRestart(t *testing.T, server *testdb.Server, end func() error, db *sql.DB) {
	t.Helper()
	if err := end(); err != nil {
		t.Fatal(err)
	}
	if err := db.PingContext(t.Context()); err == nil {
		t.Fatal("the server still answers")
	}
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
}

func BenchmarkDatabase(b *testing.B) {
	for name, database := range map[string]func(testing.TB) string{
		"Postgres": testdb.Postgres, "MySQL": testdb.MySQL,
		"DurablePostgres": testdb.DurablePostgres, "DurableMySQL": testdb.DurableMySQL,
	} {
		b.Run(name, func(b *testing.B) {
			database(b) // start the server
			for b.Loop() {
				database(b)
			}
		})
	}
}

func BenchmarkStart(b *testing.B) {
	for name, config := range map[string]testdb.Config{
		"Postgres":        {Engine: testdb.PostgreSQL},
		"MySQL":           {Engine: testdb.MariaDB},
		"DurablePostgres": {Engine: testdb.PostgreSQL, Durable: true},
		"DurableMySQL":    {Engine: testdb.MariaDB, Durable: true},
	} {
		b.Run(name, func(b *testing.B) {
			var closing time.Duration
			for b.Loop() {
				server, err := testdb.Start(config)
				if err != nil {
					b.Fatal(err)
				}
				begun := time.Now()
				if err := server.Close(); err != nil {
					b.Fatal(err)
				}
				closing += time.Since(begun)
			}
			b.ReportMetric(float64(closing.Milliseconds())/float64(b.N), "close-ms/op")
		})
	}
}

// Not parallel: the variable is that of all tests.
func TestOnlySomeDatabasesAreTested(t *testing.T) {
	t.Setenv("PERDURE_TEST_ONLY", "postgres,mysql")
	for database, want := range map[string]bool{"sqlite": true, "postgres": false, "mysql": false} {
		var sub *testing.T
		t.Run(database, func(t *testing.T) {
			sub = t
			testdb.Only(t, database)
		})
		if sub.Skipped() != want {
			t.Errorf("a test on %s is skipped: %v, want %v", database, sub.Skipped(), want)
		}
	}
}
