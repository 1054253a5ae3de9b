package sqlite

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/perdure/perdure/internal/sqldb"
)

// observe watches a database and returns the channel of its reports.
func observe(t *testing.T, db *DB) <-chan struct{} {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	changes, ended := make(chan struct{}, 1000), make(chan error, 1)
	go func() { ended <- db.Watch(ctx, func() { changes <- struct{}{} }) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("watching ended with %v", err)
		}
	})
	return changes
}

func commit(t *testing.T, db *DB, query string) {
	t.Helper()
	tx, err := db.Begin(t.Context(), sqldb.Write)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if err := tx.Commit(t.Context(), sqldb.Stmt{SQL: query}); err != nil {
		t.Fatal(err)
	}
}

func heard(t *testing.T, changes <-chan struct{}) {
	t.Helper()
	select {
	case <-changes:
	case <-time.After(time.Minute):
		t.Fatal("no report came")
	}
}

func openAt(t testing.TB, dsn string) *DB {
	t.Helper()
	db, err := Open(t.Context(), dsn)
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

func TestWatchReportsCommitsOfOthers(t *testing.T) {
	t.Parallel()
	dsn := "sqlite:" + filepath.Join(t.TempDir(), "x.db")
	here, there := openAt(t, dsn), openAt(t, dsn)
	changes := observe(t, here)
	heard(t, changes) // when it starts
	commit(t, there, "create table x (n integer)")
	heard(t, changes)
	commit(t, there, "insert into x (n) values (1)")
	heard(t, changes)
}

// Otherwise a process would wake itself whenever it has done something.
func TestTheVersionChangesWithCommitsOfOthersOnly(t *testing.T) {
	t.Parallel()
	dsn := "sqlite:" + filepath.Join(t.TempDir(), "x.db")
	here, there := openAt(t, dsn), openAt(t, dsn)
	commit(t, there, "create table x (n integer)")
	version := func() int64 {
		v, err := here.writer.version(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	before := version()
	commit(t, here, "insert into x (n) values (1)")
	commit(t, there, "update x set n = 2 where n = 3") // changes nothing, as a claim that finds nothing
	if version() != before {
		t.Fatal("its own commit, or one that changes nothing, changes the version")
	}
	commit(t, there, "insert into x (n) values (2)")
	commit(t, here, "insert into x (n) values (3)") // does not hide the other
	if version() == before {
		t.Fatal("the commit of another connection does not change the version")
	}
}

func TestWatchOfAPrivateDatabaseReportsNothing(t *testing.T) {
	t.Parallel()
	db := openAt(t, "sqlite::memory:")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := db.Watch(ctx, func() { t.Error("a change was reported") })
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("watching ended with %v", err)
	}
}

// BenchmarkVersion measures what a process does ten times a second while it has
// nothing to do.
func BenchmarkVersion(b *testing.B) {
	db := openAt(b, "sqlite:"+filepath.Join(b.TempDir(), "x.db"))
	for b.Loop() {
		if _, err := db.writer.version(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
