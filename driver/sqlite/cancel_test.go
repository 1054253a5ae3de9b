package sqlite

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/perdure/perdure/internal/sqldb"
)

// A context that ends while SQLite begins a transaction must not leave it
// open: it would hold the write lock for ever.
func TestACancelledBeginLeavesNoTransactionBehind(t *testing.T) {
	t.Parallel()
	file := "sqlite:" + t.TempDir() + "/cancel.db"
	db, err := Open(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, access := range []sqldb.Access{sqldb.Write, sqldb.Read} {
		for range 1000 {
			cancelledBegin(t.Context(), db, access)
			tx, err := db.Begin(t.Context(), access)
			if err != nil {
				t.Fatalf("the next transaction does not begin: %v", err)
			}
			tx.Rollback()
		}
	}
}

// cancelledBegin begins a transaction while its context is being cancelled.
func cancelledBegin(ctx context.Context, db *DB, access sqldb.Access) {
	ctx, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	group.Go(func() {
		<-time.After(rand.N(60 * time.Microsecond))
		cancel()
	})
	defer group.Wait()
	if tx, err := db.Begin(ctx, access); err == nil {
		tx.Rollback()
	}
}
