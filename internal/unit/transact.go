package unit

import (
	"context"

	"github.com/perdure/perdure/internal/sqldb"
)

// maxTries is the maximum number of attempts of a transaction that fails with a transient
// error, maxOvertaken of a transaction that other nodes of a cluster overtake.
const maxTries, maxOvertaken = 5, 100

// Transact runs fn in a transaction, and runs it again from the start after a transient
// error, such as a deadlock.
func Transact(ctx context.Context, db sqldb.DB, access sqldb.Access, fn func(sqldb.Tx) error) error {
	for attempt := 1; ; attempt++ {
		err := Once(ctx, db, access, fn)
		most := maxTries
		if sqldb.IsCertification(err) {
			most = maxOvertaken
		}
		if !sqldb.IsTransient(err) || attempt >= most || ctx.Err() != nil {
			return err
		}
		Yield(ctx, db, attempt, err)
	}
}

// Overtakable runs fn, and runs it again while transactions of other nodes of a cluster
// overtake its transaction. Other errors are not retried. db is nil if the transaction must
// not take the turn: a claim that is overtaken finds other items.
func Overtakable(ctx context.Context, db sqldb.DB, fn func() error) error {
	for attempt := 1; ; attempt++ {
		err := fn()
		if !sqldb.IsCertification(err) || attempt >= maxOvertaken || ctx.Err() != nil {
			return err
		}
		Yield(ctx, db, attempt, err)
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
