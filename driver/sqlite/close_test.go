package sqlite

import (
	"database/sql"
	"errors"
	"path/filepath"
	"testing"

	"github.com/perdure/perdure/internal/sqldb"
)

// A process that closes its database while a worker still writes must not use the
// worker's connection.
func TestCloseWaitsForTheTransactionThatWrites(t *testing.T) {
	t.Parallel()
	db := openFile(t, filepath.Join(t.TempDir(), "a.db"), "")
	tx, err := db.Begin(t.Context(), sqldb.Write)
	if err != nil {
		t.Fatal(err)
	}
	closed := make(chan error, 1)
	go func() { closed <- db.Close() }()
	for _, access := range []sqldb.Access{sqldb.Write, sqldb.Claim} { // they wait for the writer, then fail
		if _, err := db.Begin(t.Context(), access); !errors.Is(err, sql.ErrConnDone) {
			t.Errorf("a transaction that begins while the database is closed: %v", err)
		}
	}
	if err := tx.Commit(t.Context(), sqldb.Exec("create table kept (n integer)")); err != nil {
		t.Errorf("commit while the database is closed: %v", err)
	}
	if err := <-closed; err != nil {
		t.Errorf("close: %v", err)
	}
	if err := db.Close(); err != nil {
		t.Errorf("close again: %v", err)
	}
}

func TestNothingBeginsOnAClosedDatabase(t *testing.T) {
	t.Parallel()
	db := openFile(t, filepath.Join(t.TempDir(), "a.db"), "")
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	for _, access := range []sqldb.Access{sqldb.Write, sqldb.Claim, sqldb.Urgent, sqldb.Read} {
		if _, err := db.Begin(t.Context(), access); !errors.Is(err, sql.ErrConnDone) {
			t.Errorf("access %v: %v", access, err)
		}
	}
}
