// Package testdb gives tests real PostgreSQL and MariaDB databases.
//
// A test requests a database and gets the URL of a fresh, empty one, which is dropped when
// the test ends:
//
//	func TestMain(m *testing.M) { testdb.Main(m) }
//
//	func TestClaim(t *testing.T) {
//		url := testdb.Postgres(t)
//		…
//	}
//
// The servers are temporary. They are started on first use, at most one of a kind per
// process, on a free port of 127.0.0.1, with their data in a temporary directory. They end
// with the process, however it ends. The command in ./run starts them once for a whole `go
// test ./...`.
//
// These variables name servers to use instead, by URLs whose user may create databases:
// PERDURE_TEST_POSTGRES, PERDURE_TEST_MYSQL and, where fsync matters,
// PERDURE_TEST_POSTGRES_DURABLE and PERDURE_TEST_MYSQL_DURABLE.
//
// A test whose server is not available is skipped with a message. With
// PERDURE_REQUIRE_SERVERS=1, as in `make test`, it fails instead.
//
// With PERDURE_TEST_ONLY=postgres,mysql, or other names of Only, the tests on other databases
// are skipped.
//
// Only tests, ./run and internal/test/interleave may import this package.
package testdb

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/test/leaktest"
)

// Main runs the tests of a package, stops the servers that they started and exits. If all
// tests passed, it also checks that they left no goroutine running.
func Main(m *testing.M) {
	code := m.Run()
	if err := closeShared(); err != nil {
		fmt.Fprintln(os.Stderr, "testdb:", err)
		code = max(code, 1)
	}
	if code == 0 {
		if err := leaktest.Find(); err != nil {
			fmt.Fprintln(os.Stderr, "testdb:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// Postgres returns the URL of a separate, empty PostgreSQL database for the test.
func Postgres(t testing.TB) string {
	t.Helper()
	return sharedDatabase(t, Config{Engine: PostgreSQL})
}

// MySQL returns the URL of a separate, empty MariaDB database for the test, in the form
// mysql://user@host:port/name.
func MySQL(t testing.TB) string {
	t.Helper()
	return sharedDatabase(t, Config{Engine: MariaDB})
}

// DurablePostgres is like Postgres, on a server that syncs to disk at commit. The server is
// shared, so a test cannot stop it: see PrivatePostgres.
func DurablePostgres(t testing.TB) string {
	t.Helper()
	return sharedDatabase(t, Config{Engine: PostgreSQL, Durable: true})
}

// DurableMySQL is like MySQL, on a server that syncs to disk at commit. The server is
// shared, so a test cannot stop it: see PrivateMySQL.
func DurableMySQL(t testing.TB) string {
	t.Helper()
	return sharedDatabase(t, Config{Engine: MariaDB, Durable: true})
}

// PrivatePostgres starts a durable PostgreSQL server for this test only, which the test may
// stop, kill and restart. It never uses a server that a variable names.
func PrivatePostgres(t testing.TB) *Server {
	t.Helper()
	return private(t, Config{Engine: PostgreSQL, Durable: true})
}

// PrivateMySQL is like PrivatePostgres, for MariaDB.
func PrivateMySQL(t testing.TB) *Server {
	t.Helper()
	return private(t, Config{Engine: MariaDB, Durable: true})
}

func sharedDatabase(t testing.TB, c Config) string {
	t.Helper()
	return sharedServer(t, c).Database(t)
}

func sharedServer(t testing.TB, c Config) *Server {
	t.Helper()
	Only(t, string(c.Engine))
	s, err := sharedServers[c].get()
	require(t, err)
	return s
}

func private(t testing.TB, c Config) *Server {
	t.Helper()
	Only(t, string(c.Engine))
	s, err := Start(c)
	require(t, err)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close private server: %v", err)
		}
	})
	return s
}

// Only skips a test on a database, "sqlite", "postgres" or "mysql", if
// PERDURE_TEST_ONLY names only others.
func Only(t testing.TB, database string) {
	t.Helper()
	if only := os.Getenv("PERDURE_TEST_ONLY"); only != "" && !slices.Contains(strings.Split(only, ","), database) {
		t.Skipf("PERDURE_TEST_ONLY is %s, and this test runs on %s", only, database)
	}
}

// require ends the test if its server is not available. A test is skipped only if a program
// is not installed. A server that does not start is a failure.
func require(t testing.TB, err error) {
	t.Helper()
	var missing *MissingError
	switch {
	case err == nil:
	case errors.As(err, &missing) && os.Getenv("PERDURE_REQUIRE_SERVERS") != "1":
		t.Skipf("\n\n    *** SKIPPED, NOT TESTED ***\n    %v\n", missing)
	default:
		t.Fatal(err)
	}
}
