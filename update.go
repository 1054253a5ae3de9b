package perdure

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/audit"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/unit"
	"github.com/perdure/perdure/schema"
)

// Update runs fn as one unit of work and commits the recorded changes.
//
// If fn returns an error, or a method of its Tx did, nothing is written and Update
// returns the error. Update runs fn up to Options.MaxAttempts times. It runs fn again
// from the start after a deadlock, a serialization failure or a lost connection. It also
// does so after a conflict: fn read a row with Get or Find and passed it to UpdateRow,
// DeleteRow or CheckRow, and the row is no longer at that version. So fn must have no
// effect outside its Tx. If another transaction holds a row that fn needs, Update runs fn
// again until the row is free. Options.Timeout bounds all runs together. When it or the
// context ends first, the error is a *fault.Locked.
//
// fn must not call Update of the same engine once its own transaction is open: on SQLite,
// which has one writer, that is a *fault.Invalid.
//
// A *fault.Uncertain means that the response to COMMIT was lost: the changes may have
// been committed. Every other error means that nothing was written.
func (e *Engine) Update(ctx context.Context, fn func(*Tx) error) (err error) {
	if err := e.enter(); err != nil {
		return err
	}
	defer e.running.Done()
	defer func() { e.trouble.Note(err) }()
	id, err := e.newUnitID()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, e.options.Timeout)
	defer cancel()
	for attempt, blocked, overtaken := 1, 0, 0; ; {
		again, err := e.attempt(ctx, id, blocked, fn)
		switch {
		case !again:
			return e.locked(ctx, blocked, err)
		case sqldb.IsLocked(err): // not the fault of fn: only the timeout bounds it
			blocked++
		case sqldb.IsCertification(err): // neither: another node was faster
			overtaken++
		case attempt == e.options.MaxAttempts:
			return fmt.Errorf("run unit of work %d times: %w", attempt, err)
		default:
			attempt++
		}
		unit.Yield(ctx, e.db, attempt+overtaken, err)
		if ctx.Err() != nil {
			return e.locked(ctx, blocked, errors.Join(ctx.Err(), err))
		}
	}
}

// locked returns a *fault.Locked if the context of a unit ended while another transaction
// held a lock that the unit needed.
func (e *Engine) locked(ctx context.Context, blocked int, err error) error {
	var known *fault.Locked
	var uncertain *fault.Uncertain
	if cause := ctx.Err(); cause != nil && sqldb.IsCertification(err) && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w", cause, err)
	}
	if err == nil || ctx.Err() == nil || errors.As(err, &known) || errors.As(err, &uncertain) || blocked == 0 && !sqldb.IsLocked(err) {
		return err
	}
	if !errors.Is(err, ctx.Err()) {
		err = fmt.Errorf("%w: %w", ctx.Err(), err)
	}
	if timeout := (*sqldb.LockTimeout)(nil); errors.As(err, &timeout) && timeout.Counter {
		return &fault.Locked{Lock: "outbox counter", Holder: e.committer.Holder(), Err: err}
	}
	return &fault.Locked{Lock: "row", Err: err}
}

// newUnitID returns the id of a new unit. It validates the id, because Options.NewID may
// be the user's function.
func (e *Engine) newUnitID() (string, error) {
	id := e.options.NewID()
	return id, schema.ID("Options.NewID", id)
}

// openWait is the longest time for which an open transaction waits for a locked row in its
// first attempt. Later attempts wait longer, and only a few of them at a time: transactions
// that wait must not use up the connections.
const openWait = 250 * time.Millisecond

// attempt runs fn once. again is true if another run may succeed. blocked is the number of
// attempts that found a locked row.
func (e *Engine) attempt(ctx context.Context, id string, blocked int, fn func(*Tx) error) (again bool, err error) {
	tx := e.newTx(ctx, id)
	tx.wait = openWait
	if blocked > 0 {
		if err := e.committer.Enter(ctx); err != nil {
			return false, err
		}
		defer e.committer.Leave()
		tx.wait = unit.ApartWait(blocked)
	}
	defer tx.end()
	err = tx.act(audit.Of(ctx), fn)
	tx.closeApplication()
	_ = tx.checkState() // it fails the Tx
	if tx.err != nil {  // the first error decides, even if fn dropped or replaced it
		if sqldb.IsTransient(tx.err) && !sqldb.IsTransient(err) {
			err = tx.err
		}
		return tx.retryable(tx.err), first(err, tx.err)
	}
	if err != nil {
		return tx.retryable(err), err
	}
	err = tx.commit()
	var uncertain *fault.Uncertain
	if err == nil || errors.As(err, &uncertain) {
		tx.announce()
	}
	return tx.retryable(err), err
}

// announce wakes the readers of the outbox and calls the functions in committed. It runs
// after a commit, and after a commit whose result is uncertain.
func (tx *Tx) announce() {
	if tx.unit.Recorded() > 0 && tx.eng.options.Outbox {
		tx.eng.outbox.Announce()
	}
	for _, committed := range tx.committed {
		committed()
	}
}

// first returns the error that fn returned, or, if that is nil, the Tx's own error.
func first(returned, own error) error {
	if returned != nil {
		return returned
	}
	return own
}

// View runs fn on a read-only snapshot: all reads see the database at one point in time.
// The Tx refuses changes. If the first read finds a broken connection, as after a restart
// of the database, the connection is replaced and fn is run again.
func (e *Engine) View(ctx context.Context, fn func(*Tx) error) error {
	if err := e.enter(); err != nil {
		return err
	}
	defer e.running.Done()
	for attempt := 1; ; attempt++ {
		again, err := e.view(ctx, fn)
		if !again || attempt == e.options.MaxAttempts {
			return err
		}
		unit.Pause(ctx, attempt)
	}
}

// view runs fn once. again is true if fn read nothing because of a transient error, such
// as a broken connection.
func (e *Engine) view(ctx context.Context, fn func(*Tx) error) (again bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, e.options.Timeout)
	defer cancel()
	tx := e.newTx(ctx, e.options.NewID())
	tx.readOnly = true
	defer tx.end()
	err = fn(tx)
	tx.closeApplication()
	_ = tx.checkState() // it fails the Tx
	return !tx.hasSeen && tx.retryable(tx.err), first(err, tx.err)
}

// retryable reports whether another run of the unit may succeed. A conflict is retryable
// only if the unit itself read the rows. Otherwise another run would check the same
// outdated version.
func (tx *Tx) retryable(err error) bool {
	var conflict *fault.Conflict
	if errors.As(err, &conflict) {
		return tx.hasRead
	}
	return sqldb.IsTransient(err) && tx.ctx.Err() == nil
}
