package effect

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/core"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/seal"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/unit"
)

const (
	// reapLimit is how many expired claims one claim returns at most.
	reapLimit = 100
	// sweepLimit is how many rows one sweep removes.
	sweepLimit = 5000
)

// claim returns expired claims and takes due rows, in one transaction.
func (r *Runner) claim(ctx context.Context, limit int, lease time.Duration) ([]*core.Claim, error) {
	var reaped []store.Reaped
	var rows []store.Hook
	var foreign bool
	token := newToken()
	err := r.transact(ctx, func(tx sqldb.Tx) (err error) {
		r.leave(rows) // admitted by an attempt that failed
		rows = nil
		now := r.rt.Now()
		reaped, err = r.rt.Store.ReapHooks(ctx, tx, store.Expiry{
			Namespace: r.options.Namespace, Sort: r.sort, Judge: r.judge, Message: "process was lost while the hook ran", Limit: reapLimit,
		}, now)
		if err != nil {
			return err
		}
		var claimed []store.Hook
		claimed, foreign, err = r.take(ctx, tx, store.Claim{
			Namespace: r.options.Namespace, Names: r.names(), Worker: r.id, Token: token, Lease: lease, Limit: limit, Least: r.least(),
		}, now)
		if err != nil {
			return err
		}
		var surplus []sqldb.Stmt
		rows, surplus = r.admit(claimed, token)
		return tx.Run(ctx, surplus...)
	})
	if err != nil {
		r.leave(rows)
		return core.Unanswered(claims(rows, token), err), err
	}
	for _, crashed := range reaped {
		r.tell(crashed)
	}
	if foreign {
		r.rt.Hub.Publish(r.options.Topic, time.Time{}) // for the processes that have the key
	}
	return claims(rows, token), nil
}

// take claims rows that can be decrypted. If it meets the first ones whose key this
// process does not have, it claims again, without such rows.
func (r *Runner) take(ctx context.Context, tx sqldb.Tx, c store.Claim, now store.Now) (taken []store.Hook, foreign bool, err error) {
	skipped := r.rt.Store.SkipsForeign()
	claimed, err := r.rt.Store.ClaimHooks(ctx, tx, c, now)
	if err != nil {
		return nil, false, err
	}
	taken, returned, foreign := r.openable(claimed, c.Token, skipped)
	if err := tx.Run(ctx, returned...); err != nil || !foreign {
		return taken, false, err
	}
	c.Limit -= len(taken)
	others, _, err := r.take(ctx, tx, c, now)
	return append(taken, others...), true, err
}

// sealedDelay is how long a row waits that cannot be decrypted although this process
// has its key.
const sealedDelay = time.Minute

// openable keeps the rows that can be decrypted, reports the others and returns the
// statements that give them back. A row whose key this process does not have is
// released as it was, and the following claims skip such rows; skipped reports whether
// this claim did, foreign whether a row was released.
func (r *Runner) openable(claimed []store.Hook, token string, skipped bool) (kept []store.Hook, returned []sqldb.Stmt, foreign bool) {
	st := r.rt.Store
	for _, row := range claimed {
		switch {
		case row.Sealed == nil:
			kept = append(kept, row)
			continue
		case seal.IsForeign(row.Sealed) && !skipped:
			foreign = true
			returned = append(returned, st.ReleaseHook(row.ID, token, new(bool)))
		default:
			returned = append(returned, st.PostponeHook(row.ID, token, nil, sealedDelay, r.rt.Now()))
		}
		r.options.OnError(fmt.Errorf("run %s %s: %w", r.options.Kind, row.ID, row.Sealed))
	}
	if foreign {
		st.SkipForeign()
	}
	return kept, returned, foreign
}

// tell hands a crash to the callback, which may panic: what was claimed with it
// must be run all the same.
func (r *Runner) tell(crashed store.Reaped) {
	defer func() { _ = recover() }() // the last resort: nobody is left to tell
	r.options.OnCrash(crashed)
}

func claims(rows []store.Hook, token string) []*core.Claim {
	claims := make([]*core.Claim, len(rows))
	for i, row := range rows {
		claims[i] = &core.Claim{ID: row.ID, Token: token, Work: row, Due: row.Due}
	}
	return claims
}

// transact runs fn in a transaction on a connection that is kept for us.
func (r *Runner) transact(ctx context.Context, fn func(sqldb.Tx) error) error {
	return unit.Transact(ctx, r.rt.DB, sqldb.Urgent, fn)
}

func (r *Runner) extend(ctx context.Context, claims []*core.Claim, lease time.Duration) ([]*core.Claim, error) {
	stale := make([]bool, len(claims))
	stmts := make([]sqldb.Stmt, len(claims))
	for i, c := range claims {
		stmts[i] = r.rt.Store.ExtendHook(c.ID, c.Token, lease, r.rt.Now(), &stale[i])
	}
	if err := r.transact(ctx, func(tx sqldb.Tx) error { return tx.Run(ctx, stmts...) }); err != nil {
		return nil, err
	}
	var lost []*core.Claim
	for i, c := range claims {
		if stale[i] {
			lost = append(lost, c)
		}
	}
	return lost, nil
}

// release gives claims back that were not started.
func (r *Runner) release(ctx context.Context, claims []*core.Claim) error {
	err := r.giveBack(ctx, claims)
	for _, c := range claims {
		r.left(c.Work.(store.Hook))
	}
	return err
}

func (r *Runner) giveBack(ctx context.Context, claims []*core.Claim) error {
	ctx, cancel := context.WithTimeout(ctx, outcomeTimeout)
	defer cancel()
	return r.restore(ctx, core.Return(claims))
}

// restore returns claims of this process that it does not run.
func (r *Runner) restore(ctx context.Context, claims []core.Returned) error {
	stmts := make([]sqldb.Stmt, len(claims))
	for i, c := range claims {
		if stmts[i] = r.rt.Store.ReleaseHook(c.ID, c.Token, new(bool)); c.Delay > 0 {
			message := edge.Message(c.Message)
			stmts[i] = r.rt.Store.PostponeHook(c.ID, c.Token, &message, c.Delay, r.rt.Now())
		}
	}
	if err := r.transact(ctx, func(tx sqldb.Tx) error { return tx.Run(ctx, stmts...) }); err != nil {
		return err
	}
	r.rt.Hub.Publish(r.options.Topic, core.DueAgain(claims, r.rt.Clock.Now())) // for the other processes
	return nil
}

func (r *Runner) next(ctx context.Context) (wait time.Duration, ok bool, err error) {
	tx, err := r.rt.DB.Begin(ctx, sqldb.Read)
	if err != nil {
		return 0, false, err
	}
	defer tx.Rollback()
	err = tx.Run(ctx, r.rt.Store.NextHook(r.options.Namespace, r.names(), r.least(), r.rt.Now(), func(d time.Duration) { wait, ok = d, true }))
	return wait, ok, err
}

// sweep removes rows whose retention is over.
func (r *Runner) sweep(ctx context.Context) error {
	var errs []error
	if r.options.Retention >= 0 {
		_, err := Purge(ctx, r.rt, false, r.options.Retention, sweepLimit)
		errs = append(errs, err)
	}
	if r.options.DeadRetention >= 0 {
		_, err := Purge(ctx, r.rt, true, r.options.DeadRetention, sweepLimit)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Purge removes rows of all namespaces that ended longer than age ago, dead letters
// or the others, in batches, until nothing is left or most are removed; 0 means all.
func Purge(ctx context.Context, rt *perdure.Runtime, dead bool, age time.Duration, most int64) (int64, error) {
	const batch = 1000
	for total := int64(0); ; {
		var removed int64
		err := remove(ctx, rt, &removed, rt.Store.PurgeHooks(dead, age, batch, rt.Now(), &removed)...)
		if err != nil {
			return total, fmt.Errorf("purge hooks: %w", err)
		}
		total += removed
		if removed < batch || most > 0 && total >= most {
			return total, nil
		}
	}
}

// remove runs statements that remove something, and records the act if they did.
func remove(ctx context.Context, rt *perdure.Runtime, removed *int64, stmts ...sqldb.Stmt) error {
	ctx, cancel := context.WithTimeout(ctx, rt.Timeout)
	defer cancel()
	return unit.Transact(ctx, rt.DB, sqldb.Write, func(tx sqldb.Tx) error {
		if err := tx.Run(ctx, stmts...); err != nil || *removed == 0 {
			return err
		}
		return rt.Store.RecordRemoved(ctx, tx, rt.Clock.Now(), *removed)
	})
}
