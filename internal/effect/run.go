package effect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/core"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/failpoint"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/tracing"
	"github.com/perdure/perdure/internal/unit"
	"github.com/perdure/perdure/retry"
)

const (
	// patience is how long a handler may take to return after its context
	// ended.
	patience = 10 * time.Second
	// outcomeTimeout bounds the commit of an outcome.
	outcomeTimeout = time.Minute
)

// run executes the handler of a claimed row and commits what came of it.
func (r *Runner) run(ctx context.Context, c *core.Claim) error {
	row := c.Work.(store.Hook)
	defer r.left(row)
	handler := r.handler(row.Name)
	handling, additions := core.WithAdditions(ctx)
	result, err := r.execute(handling, handler, row)
	if cause := context.Cause(ctx); errors.Is(cause, core.ErrLost) {
		return cause // somebody else has the row: our outcome would be stale
	} else if err != nil && errors.Is(cause, core.ErrStopping) {
		return r.giveBack(context.WithoutCancel(ctx), []*core.Claim{c})
	}
	if err := failpoint.Hit(r.options.Kind + ".executed"); err != nil {
		return err
	}
	c.Failed = err != nil
	added := additions.Close()
	err = r.settle(ctx, c, handler, Ending{Row: row, Result: result, Err: err, additions: added, stale: new(bool)})
	if failure := core.Addition(err); failure != nil && len(added) > 0 {
		c.Failed = true
		err = r.settle(ctx, c, handler, Ending{Row: row, Err: failure, stale: new(bool)})
	}
	if err != nil {
		return err
	}
	return failpoint.Hit(r.options.Kind + ".settled")
}

func (r *Runner) handler(name string) Handler {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.handlers[name]
}

func (r *Runner) execute(ctx context.Context, handler Handler, row store.Hook) (result any, err error) {
	ctx, span := r.rt.Tracer.Process(ctx, r.rt.Clock.Now(), tracing.Work{
		Kind: r.options.Kind, Name: row.Name, ID: row.ID, Attempt: row.Attempts + 1, Trace: row.Trace, Created: row.Created,
	})
	defer func() { span.End(err) }()
	ctx, cancel := context.WithTimeout(ctx, handler.Timeout)
	defer cancel()
	returned := make(chan any, 1) // one that is left behind may still return
	err = core.CallWithin(ctx, r.rt.Clock, patience, func(ctx context.Context) error {
		value, err := handler.Run(ctx, row)
		returned <- value
		return err
	})
	select {
	case result = <-returned:
	default:
	}
	return result, err
}

// settle commits the outcome of an execution. If a function that the handler has added
// fails, nothing is committed.
func (r *Runner) settle(ctx context.Context, c *core.Claim, handler Handler, end Ending) error {
	stmts, again, ended := r.outcome(c, end)
	if end.stmts = stmts; end.Err != nil {
		end.additions = nil
	}
	commit := func(ctx context.Context) error {
		err := r.rt.Committer.Commit(ctx, &unit.Unit{Stmts: stmts})
		if err == nil && *end.stale {
			return core.ErrLost
		}
		return err
	}
	switch {
	case ended && handler.Finish != nil:
		commit = func(ctx context.Context) error { return handler.Finish(ctx, end) }
	case len(end.additions) > 0:
		commit = func(ctx context.Context) error { return r.commitWith(ctx, end) }
	}
	if alone := commit; len(end.additions) > 0 {
		commit = func(ctx context.Context) error { return core.Committing(ctx, func() error { return alone(ctx) }) }
	}
	err := persist(ctx, commit)
	switch {
	case errors.Is(err, core.ErrLost):
		return core.ErrLost
	case err != nil:
		return fmt.Errorf("record outcome: %w", err)
	case !again.IsZero():
		r.rt.Hub.Tell(r.options.Topic, again)
	}
	return nil
}

// commitWith commits the end of a row together with what the handler has added.
func (r *Runner) commitWith(ctx context.Context, end Ending) error {
	return r.eng.Update(ctx, func(tx *perdure.Tx) error {
		err := end.Record(func(stmts ...sqldb.Stmt) error {
			if err := tx.Attach(nil, stmts...); err != nil {
				return err
			}
			return tx.Flush()
		})
		if err != nil {
			return err
		}
		return end.Add(tx)
	})
}

// outcome returns the statements that record what came of an execution, and
// when the row is due again by our own clock, unless it has ended.
func (r *Runner) outcome(c *core.Claim, end Ending) (stmts []sqldb.Stmt, again time.Time, ended bool) {
	now := r.rt.Now()
	if end.Err == nil {
		return []sqldb.Stmt{r.rt.Store.CompleteHook(c.ID, c.Token, now, end.stale)}, again, true
	}
	message := edge.Message(end.Err.Error())
	var policy retry.Policy
	if err := json.Unmarshal([]byte(end.Row.Policy), &policy); err != nil {
		return r.rt.Store.FailHook(c.ID, c.Token, message+"\nretry policy cannot be read: "+err.Error(), now, end.stale), again, true
	}
	delay, more := policy.Decide(end.Row.Attempts+1, end.Err, r.options.Random())
	if !more {
		return r.rt.Store.FailHook(c.ID, c.Token, message, now, end.stale), again, true
	}
	return r.rt.Store.RetryHook(c.ID, c.Token, message, delay, now, end.stale), r.rt.Clock.Now().Add(delay), false
}

// persist commits an outcome. It does not end with the handler's context: the
// work is done. While the database cannot be reached it tries again, as long as
// the claim is ours: an outcome that is not recorded is an effect that happens
// twice.
func persist(ctx context.Context, commit func(context.Context) error) error {
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), outcomeTimeout)
	defer cancel()
	for attempt := 1; ; attempt++ {
		err := commit(limit)
		var uncertain *fault.Uncertain
		if !sqldb.IsTransient(err) && !errors.As(err, &uncertain) || ctx.Err() != nil || limit.Err() != nil {
			return err
		}
		unit.Pause(limit, attempt)
	}
}
