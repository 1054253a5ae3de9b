// Package enginetest runs tests of engines on every database that Perdure supports, each
// time on a fresh database.
//
// A conformance suite is a value whose exported methods are its cases:
//
//	type Conformance struct{}
//
//	func (Conformance) UpdateCommits(t *testing.T, db enginetest.Database) { … }
//
//	func TestConformance(t *testing.T) { enginetest.Conform(t, Conformance{}) }
//
// It runs as TestConformance/postgres/UpdateCommits and so on: the same cases on all
// databases, in parallel.
//
// Only tests may import this package. It imports the root package, so the tests of packages
// below it are external (package outbox_test).
package enginetest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/test/testdb"
)

// The names of the databases.
const (
	SQLite   = "sqlite"
	Postgres = "postgres"
	MySQL    = "mysql"
)

// Names are the names of all databases.
var Names = []string{SQLite, Postgres, MySQL}

// Database is a separate database for one test.
type Database struct {
	// Name is the name of the database system.
	Name string
	// DSN is the URL that opens the database.
	DSN string
}

// New returns a database of that name without data, which is removed when the test ends. On
// PostgreSQL and SQLite it is a copy of a migrated database, which is much cheaper than a
// migration for each test. Only PostgreSQL's privileges on the database itself are not
// copied. On MariaDB it is a database that was emptied after another test.
func New(t testing.TB, name string) Database {
	t.Helper()
	switch name {
	case Postgres:
		return Database{Name: name, DSN: testdb.PostgresTemplate(t, "perdure", migrated)}
	case MySQL:
		return Database{Name: name, DSN: testdb.MySQLTemplate(t, "perdure", migrated)}
	case SQLite:
		testdb.Only(t, SQLite)
		file, err := migratedFile()
		NoError(t, err)
		path := filepath.Join(tempDir(t), "perdure.db")
		NoError(t, os.WriteFile(path, file, 0o600))
		return Database{Name: name, DSN: "sqlite:" + path}
	}
	return Empty(t, name)
}

// migratedFile returns the content of a migrated SQLite database.
var migratedFile = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "perdure-test-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "perdure.db")
	if err := migrated("sqlite:" + path); err != nil { // the database is closed, so all data is in the file
		return nil, err
	}
	return os.ReadFile(path)
})

func migrated(url string) error {
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	eng, err := perdure.Open(ctx, url, nil)
	if err != nil {
		return err
	}
	return eng.Close()
}

// Empty returns a database without any tables, for tests of the first access.
func Empty(t testing.TB, name string) Database {
	t.Helper()
	switch name {
	case Postgres:
		return Database{Name: name, DSN: testdb.Postgres(t)}
	case MySQL:
		return Database{Name: name, DSN: testdb.MySQL(t)}
	}
	testdb.Only(t, SQLite)
	return Database{Name: name, DSN: "sqlite:" + filepath.Join(tempDir(t), "perdure.db")}
}

// tempDir returns a directory that is removed when the test ends, in memory where the
// system supports that. A sync is free there, and only tests that cut the power would
// notice.
func tempDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "perdure-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// Each runs test once for each database, in parallel.
func Each(t *testing.T, test func(t *testing.T, db Database)) {
	t.Helper()
	for _, name := range Names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, New(t, name))
		})
	}
}

// Conform runs every exported method of suite once for each database, or for the named
// ones. A method takes a *testing.T and a Database.
func Conform(t *testing.T, suite any, names ...string) {
	t.Helper()
	t.Parallel()
	if len(names) == 0 {
		names = Names
	}
	v := reflect.ValueOf(suite)
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for i := range v.NumMethod() {
				test, ok := v.Method(i).Interface().(func(*testing.T, Database))
				if !ok {
					t.Fatalf("%s is not a test case", v.Type().Method(i).Name)
				}
				t.Run(v.Type().Method(i).Name, func(t *testing.T) {
					t.Parallel()
					test(t, New(t, name))
				})
			}
		})
	}
}

// Open opens an engine that is closed when the test ends.
func (db Database) Open(t testing.TB, options *perdure.Options) *perdure.Engine {
	t.Helper()
	if ownPool {
		return db.OpenPool(t, options)
	}
	eng, err := perdure.Open(Context(t), db.DSN, options)
	return opened(t, db, eng, err)
}

// Patience is the time limit for anything that a test waits for; see testdb.Patience.
const Patience = testdb.Patience

// Context returns a context with a time limit that a test reaches only if it hangs.
func Context(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	t.Cleanup(cancel)
	return ctx
}

// NoError ends the test if err is not nil.
func NoError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
}

// As ends the test unless err is an E, and returns the E.
func As[E error](t testing.TB, err error) E {
	t.Helper()
	var typed E
	if !errors.As(err, &typed) {
		t.Fatalf("error is a %T (%v), want a %T", err, err, typed)
	}
	return typed
}

// Is ends the test unless err is target.
func Is(t testing.TB, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Fatalf("error is %v, want %v", err, target)
	}
}

// Eventually waits until condition holds.
func Eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(Patience)
	for !condition() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%s: it did not happen", what)
		}
	}
}

// Soak returns the factor by which a test multiplies its usual amount of work:
// PERDURE_SOAK.
func Soak() int {
	n, err := strconv.Atoi(os.Getenv("PERDURE_SOAK"))
	if err != nil || n < 1 {
		return 1
	}
	return n
}
