package perdure

import (
	"context"
	"errors"
	"fmt"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/audit"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/unit"
	"github.com/perdure/perdure/schema"
)

// Update runs fn as one unit of work and commits what it recorded.
//
// If fn returns an error, or a method of its Tx did, nothing is written and
// the error is returned. If a row that fn read with Get or Find and then
// changed with UpdateRow, DeleteRow or CheckRow is no longer at its version,
// or the database reports a deadlock, a serialization failure or a lost
// connection, fn is run again from the start, up to Options.MaxAttempts times.
// So fn must have no effect outside its Tx.
//
// A *fault.Uncertain means that the answer to COMMIT was lost. Every other
// error means that nothing was written.
func (e *Engine) Update(ctx context.Context, fn func(*Tx) error) error {
	if err := e.enter(); err != nil {
		return err
	}
	defer e.running.Done()
	id, err := e.newUnitID()
	if err != nil {
		return err
	}
	for attempt := 1; ; attempt++ {
		again, err := e.attempt(ctx, id, fn)
		if !again {
			return err
		}
		if attempt == e.options.MaxAttempts {
			return fmt.Errorf("gave up after %d attempts: %w", attempt, err)
		}
		unit.Pause(ctx, attempt)
		if ctx.Err() != nil {
			return errors.Join(ctx.Err(), err)
		}
	}
}

// newUnitID makes the id of a unit. NewID may be the user's.
func (e *Engine) newUnitID() (string, error) {
	id := e.options.NewID()
	return id, schema.ID("Options.NewID", id)
}

// attempt runs fn once. again says that another run may succeed.
func (e *Engine) attempt(ctx context.Context, id string, fn func(*Tx) error) (again bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, e.options.Timeout)
	defer cancel()
	tx := e.newTx(ctx, id)
	defer tx.end()
	err = tx.act(audit.Of(ctx), fn)
	if tx.err != nil { // the first error decides, whatever fn made of it
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

// announce tells those who wait for work that some was committed, or may have
// been.
func (tx *Tx) announce() {
	if len(tx.unit.Mutations) > 0 {
		tx.eng.outbox.Wake()
	}
	for _, committed := range tx.committed {
		committed()
	}
}

// first returns what fn returned if it is about the Tx's own error, and that
// error otherwise.
func first(returned, own error) error {
	if returned != nil {
		return returned
	}
	return own
}

// View runs fn on a read-only snapshot: everything that it reads is as of one
// moment. The Tx refuses changes. A connection that is found broken by the
// first read, as after a restart of the database, is replaced and fn run again.
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

// view runs fn once. again says that it has seen nothing for lack of a
// connection.
func (e *Engine) view(ctx context.Context, fn func(*Tx) error) (again bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, e.options.Timeout)
	defer cancel()
	tx := e.newTx(ctx, e.options.NewID())
	tx.readOnly = true
	defer tx.end()
	err = fn(tx)
	return !tx.hasSeen && tx.retryable(tx.err), first(err, tx.err)
}

// retryable reports whether another run of the unit may succeed. A conflict is
// worth it only if the unit read the rows itself: otherwise it would check the
// same old version again.
func (tx *Tx) retryable(err error) bool {
	var conflict *fault.Conflict
	if errors.As(err, &conflict) {
		return tx.hasRead
	}
	return sqldb.IsTransient(err) && tx.ctx.Err() == nil
}
