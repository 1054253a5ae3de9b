package unit

import (
	"context"

	"github.com/perdure/perdure/internal/sqldb"
)

// maxTries is the maximum number of attempts of a transaction that fails with a transient
// error.
const maxTries = 5

// Transact runs fn in a transaction, and runs it again from the start after a transient
// error, such as a deadlock.
func Transact(ctx context.Context, db sqldb.DB, access sqldb.Access, fn func(sqldb.Tx) error) error {
	for attempt := 1; ; attempt++ {
		err := Once(ctx, db, access, fn)
		if !sqldb.IsTransient(err) || attempt == maxTries || ctx.Err() != nil {
			return err
		}
		Pause(ctx, attempt)
	}
}

// Once runs fn in a transaction.
func Once(ctx context.Context, db sqldb.DB, access sqldb.Access, fn func(sqldb.Tx) error) error {
	tx, err := db.Begin(ctx, access)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := fn(tx); err != nil {
		return err
	}
	return tx.Commit(ctx)
}
