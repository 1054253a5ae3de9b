package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/test/testdb"
)

func openFile(t *testing.T, path, params string) *DB {
	t.Helper()
	db, err := Open(t.Context(), "sqlite:"+path+params)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func exec(t *testing.T, db *DB, stmts ...sqldb.Stmt) error {
	t.Helper()
	tx, err := db.Begin(t.Context(), sqldb.Write)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	return tx.Commit(t.Context(), stmts...)
}

func TestParse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ dsn, path, sync string }{
		{"sqlite:app.db", "app.db", "full"},
		{"sqlite:/var/app.db", "/var/app.db", "full"},
		{"sqlite:///var/app.db", "/var/app.db", "full"},
		{"sqlite://app.db", "app.db", "full"},
		{"sqlite::memory:", ":memory:", "full"},
		{"sqlite:a.db?synchronous=normal", "a.db", "normal"},
		{"sqlite:a.db?synchronous=OFF", "a.db", "off"},
		{"sqlite:a b#c%20.db", "a b#c%20.db", "full"},
	} {
		path, sync, err := parse(c.dsn)
		if err != nil || path != c.path || sync != c.sync {
			t.Errorf("%s is %q with %q (%v), want %q with %q", c.dsn, path, sync, err, c.path, c.sync)
		}
	}
	for _, dsn := range []string{"", "sqlite", "postgres:a", "sqlite:", "sqlite://", "sqlite:a?b=c", "sqlite:a?synchronous=", "sqlite:a?synchronous=2"} {
		var invalid *fault.Invalid
		if _, _, err := parse(dsn); !errors.As(err, &invalid) {
			t.Errorf("%q: %v", dsn, err)
		}
	}
}

func TestVersionsBelowTheFloorAreRefused(t *testing.T) {
	t.Parallel()
	for version, ok := range map[string]bool{
		"3.51.3": true, "3.51.4": true, "3.52.0": true, "4.0.0": true, "3.100.0": true,
		"3.51.2": false, "3.51.0": false, "3.50.99": false, "3.7.17": false, "2.99.99": false, "nonsense": false, "": false,
	} {
		if err := supported(version); (err == nil) != ok {
			t.Errorf("version %q: %v", version, err)
		}
	}
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var version string
	if err := db.QueryRowContext(t.Context(), "select sqlite_version()").Scan(&version); err != nil {
		t.Fatal(err)
	}
	if err := supported(version); err != nil {
		t.Errorf("the bundled version: %v", err)
	}
}

func TestEveryConnectionHasItsPragmas(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ params, sync, relaxed string }{
		{"", "2", ""},
		{"?synchronous=full", "2", ""},
		{"?synchronous=normal", "1", "normal"},
		{"?synchronous=off", "0", "off"},
	} {
		db := openFile(t, filepath.Join(t.TempDir(), "a.db"), c.params)
		for _, access := range []sqldb.Access{sqldb.Write, sqldb.Read} {
			tx, err := db.Begin(t.Context(), access)
			if err != nil {
				t.Fatal(err)
			}
			for pragma, want := range map[string]string{"synchronous": c.sync, "journal_mode": "wal", "foreign_keys": "1"} {
				var got string
				read := sqldb.Stmt{SQL: "pragma " + pragma, Row: func(scan sqldb.Scan) error { return scan(&got) }}
				if err := tx.Run(t.Context(), read); err != nil || got != want {
					t.Errorf("%q: %s is %s (%v), want %s", c.params, pragma, got, err, want)
				}
			}
			tx.Rollback()
		}
		if relaxed := db.Dialect().Relaxed; !strings.Contains(relaxed, c.relaxed) || (relaxed == "") != (c.relaxed == "") {
			t.Errorf("%q: relaxed is %q", c.params, relaxed)
		}
	}
}

// TestHandlesThatWriteAtOnceGetNoErrors: several handles on one file, as several
// processes have them, write 2,000 rows.
func TestHandlesThatWriteAtOnceGetNoErrors(t *testing.T) {
	t.Parallel()
	path := filepath.Join(memoryDir(t), "a.db")
	const handles, each = 4, 500
	if err := exec(t, openFile(t, path, ""), sqldb.Exec("create table n (handle int, n int, primary key (handle, n))")); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for h := range handles {
		db := openFile(t, path, "")
		all.Go(func() {
			for i := range each {
				if err := exec(t, db, sqldb.Exec("insert into n values (?, ?)", h, i)); err != nil {
					t.Errorf("handle %d, row %d: %v", h, i, err)
				}
			}
		})
	}
	all.Wait()
	var n int
	read := func(scan sqldb.Scan) error { return scan(&n) }
	if err := sqldb.Each(t.Context(), openFile(t, path, ""), read, "select count(*) from n"); err != nil || n != handles*each {
		t.Errorf("there are %d rows (%v)", n, err)
	}
}

func memoryDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "perdure-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// TestWaitingForTheWriterEndsWithTheContext, whether this process holds the lock
// or another.
func TestWaitingForTheWriterEndsWithTheContext(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.db")
	first, second := openFile(t, path, ""), openFile(t, path, "")
	tx, err := first.Begin(t.Context(), sqldb.Write)
	if err != nil {
		t.Fatal(err)
	}
	for _, db := range []*DB{first, second} {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		began := time.Now()
		_, err := db.Begin(ctx, sqldb.Write)
		cancel()
		if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took > testdb.Patience {
			t.Errorf("after %v: %v", took, err)
		}
	}
	tx.Rollback()
	for _, db := range []*DB{first, second} {
		tx, err := db.Begin(t.Context(), sqldb.Write)
		if err != nil {
			t.Fatalf("the lock is free: %v", err)
		}
		tx.Rollback()
	}
}

func TestAMemoryDatabaseLeavesNoFiles(t *testing.T) {
	t.Parallel()
	db, err := Open(t.Context(), "sqlite::memory:")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(db.scratch); err != nil {
		t.Errorf("it lives nowhere: %v", err)
	}
	if db.Dialect().Relaxed != "" {
		t.Errorf("a memory database is relaxed: %s", db.Dialect().Relaxed)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(db.scratch); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is left", db.scratch)
	}
}

func TestManyDifferentStatementsDoNotPileUp(t *testing.T) {
	t.Parallel()
	db := openFile(t, filepath.Join(t.TempDir(), "a.db"), "")
	for i := range 3 * maxStatements / 100 {
		tx, err := db.Begin(t.Context(), sqldb.Write)
		if err != nil {
			t.Fatal(err)
		}
		for j := range 100 {
			read := sqldb.Stmt{SQL: fmt.Sprintf("select %d", 100*i+j), Row: func(sqldb.Scan) error { return nil }}
			if err := tx.Run(t.Context(), read); err != nil {
				t.Fatal(err)
			}
		}
		tx.Rollback()
	}
	if n := len(db.writer.stmts); n > maxStatements {
		t.Errorf("%d statements are kept", n)
	}
}

func TestTheConstraintOfADuplicateIsNamed(t *testing.T) {
	t.Parallel()
	db := openFile(t, filepath.Join(t.TempDir(), "a.db"), "")
	err := exec(t, db, sqldb.Exec("create table a (b text unique)"),
		sqldb.Exec("insert into a (b) values ('x')"), sqldb.Exec("insert into a (b) values ('x')"))
	var duplicate *fault.Duplicate
	if !errors.As(err, &duplicate) || duplicate.Constraint != "a.b" {
		t.Errorf("the error is %v of %+v", err, duplicate)
	}
}

// A claim may be lost with the power; what is written after it may not.
func TestOnlyClaimsAreNotSynced(t *testing.T) {
	t.Parallel()
	for params, want := range map[string][]string{
		"":                    {"2", "1", "1", "2", "1", "2"},
		"?synchronous=normal": {"1", "1", "1", "1", "1", "1"},
		"?synchronous=off":    {"0", "0", "0", "0", "0", "0"},
	} {
		db := openFile(t, filepath.Join(t.TempDir(), "a.db"), params)
		for i, access := range []sqldb.Access{sqldb.Write, sqldb.Claim, sqldb.Claim, sqldb.Urgent, sqldb.Claim, sqldb.Write} {
			tx, err := db.Begin(t.Context(), access)
			if err != nil {
				t.Fatal(err)
			}
			var got string
			read := sqldb.Stmt{SQL: "pragma synchronous", Row: func(scan sqldb.Scan) error { return scan(&got) }}
			if err := tx.Run(t.Context(), read); err != nil || got != want[i] {
				t.Errorf("%q: transaction %d has synchronous %s (%v), want %s", params, i, got, err, want[i])
			}
			tx.Rollback()
		}
	}
}
