package task

import (
	"context"
	"errors"
	"strconv"
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
)

const (
	// outcomeTimeout bounds the commit of an outcome.
	outcomeTimeout = time.Minute
	// patience is how long a sender may take to return after its context ended.
	patience = 10 * time.Second
	// strayLook is the least time between two looks for tasks of types that
	// nobody knows.
	strayLook = 30 * time.Second
	// overdueLook is the least time between two looks for sessions whose
	// transactions take too long.
	overdueLook = 15 * time.Second
)

// kind describes tasks to the core.
func (w *Worker) kind() core.Kind {
	return core.Kind{
		Name: "task", Claim: w.claim, Run: w.run, Extend: w.extend, Release: w.release, Return: w.restore, Next: w.next, Sweep: w.sweep,
	}
}

// claim returns expired claims and takes due tasks, in one transaction.
func (w *Worker) claim(ctx context.Context, limit int, lease time.Duration) ([]*core.Claim, error) {
	if err := w.endOverdue(ctx); err != nil {
		return nil, err
	}
	var tasks []store.Task
	var crashed []store.TaskCrash
	err := unit.Transact(ctx, w.rt.DB, sqldb.Urgent, func(tx sqldb.Tx) (err error) {
		w.leave(tasks) // admitted by an attempt that failed
		tasks = nil
		claimed, lost, err := w.rt.Store.ClaimTasks(ctx, tx, store.TaskClaim{
			Worker: w.id, Types: w.types, Limit: limit, Lease: lease, MaxCrashes: w.options.MaxCrashes,
			MayReap: w.worker.MayReap(), Least: w.least(),
		}, w.rt.Now())
		if err != nil {
			return err
		}
		var surplus []store.Task
		crashed = lost
		if tasks, surplus = w.admit(claimed); len(surplus) == 0 {
			return nil
		}
		return tx.Run(ctx, w.rt.Store.ReleaseTasks(split(surplus)))
	})
	if err != nil {
		w.leave(tasks)
		return core.Unanswered(claims(tasks), err), err
	}
	for _, c := range crashed {
		w.tell(perdure.Crash{Kind: "task", ID: strconv.FormatInt(c.ID, 10), Name: c.Type, Crashes: c.Crashes, Quarantined: Status(c.Status) == Quarantined})
	}
	if len(tasks) == 0 {
		return nil, w.lookForStrays(ctx)
	}
	return claims(tasks), nil
}

func claims(tasks []store.Task) []*core.Claim {
	claims := make([]*core.Claim, len(tasks))
	for i, t := range tasks {
		claims[i] = &core.Claim{ID: strconv.FormatInt(t.ID, 10), Token: t.Token, Work: t, Due: t.Scheduled}
	}
	return claims
}

// tell hands a crash to the callback, which may panic: what was claimed with it
// must be run all the same.
func (w *Worker) tell(c perdure.Crash) {
	defer func() { _ = recover() }() // the last resort: nobody is left to tell
	w.options.OnCrash(c)
}

// lookForStrays records an error for tasks of types that nobody knows, now and
// then. They wait for a worker that does.
func (w *Worker) lookForStrays(ctx context.Context) error {
	now := w.rt.Clock.Now()
	if now.Sub(w.looked) < strayLook {
		return nil
	}
	w.looked = now
	return unit.Transact(ctx, w.rt.DB, sqldb.Urgent, func(tx sqldb.Tx) error {
		return w.rt.Store.ReportUnroutedTasks(ctx, tx, w.types, w.rt.Now())
	})
}

// endOverdue ends sessions of the role perdure_worker whose transactions take too
// long, every overdueLook. They can hold locks that other workers wait for, and the
// role can unset its own timeouts.
func (w *Worker) endOverdue(ctx context.Context) error {
	now := w.rt.Clock.Now()
	if w.rt.DB.Dialect().Name != sqldb.Postgres || now.Sub(w.ended) < overdueLook {
		return nil
	}
	w.ended = now
	return unit.Transact(ctx, w.rt.DB, sqldb.Urgent, func(tx sqldb.Tx) error { return tx.Run(ctx, w.rt.Store.EndOverdueSessions()) })
}

// run brings a claimed task one step on: to its end, or to its next attempt.
func (w *Worker) run(ctx context.Context, c *core.Claim) error {
	t := c.Work.(store.Task)
	defer w.left(t)
	traced, span := w.rt.Tracer.Process(ctx, w.rt.Clock.Now(), tracing.Work{
		Kind: "task", Name: t.Type, ID: c.ID, Attempt: t.Attempts + 1, Trace: t.Trace, Created: t.Enqueued,
	})
	err := w.execute(traced, t)
	span.End(err)
	switch cause := context.Cause(ctx); {
	case err == nil: // the end is committed; a heartbeat after that does not find the claim any more
	case errors.Is(cause, core.ErrLost) || errors.Is(err, store.ErrTaskLost):
		return core.ErrLost // somebody else has the task: our outcome would be stale
	case errors.Is(cause, core.ErrStopping):
		return w.giveBack(context.WithoutCancel(ctx), []*core.Claim{c})
	default:
		c.Failed = true
		err = w.fail(ctx, t, err)
	}
	if err != nil {
		return err
	}
	w.rt.Hub.Tell(topic, time.Time{}) // it may have enqueued others
	return failpoint.Hit("task.settled")
}

// fail records an error of a task that could not be run to its end, and tries it
// again later if its policy has it.
func (w *Worker) fail(ctx context.Context, t store.Task, failure error) error {
	f := store.TaskFailure{Message: edge.Message(failure.Error()), Outcome: outcomeOf(failure)}
	if delay, more := w.delay(t, failure); more {
		f.Delay = &delay
	}
	err := w.record(ctx, t, f)
	if store.SQLState(err) == outcomeTooLarge {
		f.Outcome = outcomeOf(&unnotedError{outcome: outcome{Result: unstorable(err)}})
		err = w.record(ctx, t, f)
	}
	switch {
	case errors.Is(err, store.ErrTaskLost):
		return core.ErrLost
	case err == nil && f.Delay != nil:
		w.rt.Hub.Publish(topic, w.rt.Clock.Now().Add(*f.Delay))
	}
	return err
}

// record commits the failure of a task.
func (w *Worker) record(ctx context.Context, t store.Task, f store.TaskFailure) error {
	return w.holding(ctx, t, func(s session) error {
		s.add(w.rt.Store.FailTask(t.ID, t.Token, f, w.rt.Now())...)
		return nil
	})
}

// delay returns when a failed task is tried again, if it is.
func (w *Worker) delay(t store.Task, failure error) (time.Duration, bool) {
	return w.options.Retry.Decide(t.Attempts+1, failure, w.options.Random())
}

// persistently runs fn until it ends for a reason of its own: what was done must
// be recorded, also when the database is away for a moment, as long as the task
// is ours. The end of the work's context does not end it.
func persistently(ctx context.Context, fn func(context.Context) error) error {
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), outcomeTimeout)
	defer cancel()
	for attempt := 1; ; attempt++ {
		err := fn(limit)
		var uncertain *sqldb.Uncertain
		var unknown *fault.Uncertain
		again := sqldb.IsTransient(err) || errors.As(err, &uncertain) || errors.As(err, &unknown)
		if !again || errors.Is(context.Cause(ctx), core.ErrLost) || limit.Err() != nil {
			return err
		}
		unit.Pause(limit, attempt)
	}
}

func (w *Worker) extend(ctx context.Context, claims []*core.Claim, lease time.Duration) ([]*core.Claim, error) {
	held := map[int64]bool{}
	ids, tokens := split(tasksOf(claims))
	err := unit.Transact(ctx, w.rt.DB, sqldb.Urgent, func(tx sqldb.Tx) error {
		return tx.Run(ctx, w.rt.Store.ExtendTasks(ids, tokens, lease, w.rt.Now(), func(id int64) { held[id] = true })...)
	})
	if err != nil {
		return nil, err
	}
	var lost []*core.Claim
	for i, c := range claims {
		if !held[ids[i]] {
			lost = append(lost, c)
		}
	}
	return lost, nil
}

func tasksOf(claims []*core.Claim) []store.Task {
	tasks := make([]store.Task, len(claims))
	for i, c := range claims {
		tasks[i] = c.Work.(store.Task)
	}
	return tasks
}

func split(tasks []store.Task) (ids []int64, tokens []string) {
	for _, t := range tasks {
		ids, tokens = append(ids, t.ID), append(tokens, t.Token)
	}
	return ids, tokens
}

// release gives claims back that were not started.
func (w *Worker) release(ctx context.Context, claims []*core.Claim) error {
	err := w.giveBack(ctx, claims)
	w.leave(tasksOf(claims))
	return err
}

func (w *Worker) giveBack(ctx context.Context, claims []*core.Claim) error {
	ctx, cancel := context.WithTimeout(ctx, outcomeTimeout)
	defer cancel()
	return w.restore(ctx, core.Return(claims))
}

// restore returns claims of this process that it does not run.
func (w *Worker) restore(ctx context.Context, claims []core.Returned) error {
	var released []store.Task
	var stmts []sqldb.Stmt
	for _, c := range claims {
		t := c.Work.(store.Task)
		if c.Delay == 0 {
			released = append(released, t)
			continue
		}
		stmts = append(stmts, w.rt.Store.PostponeTask(t.ID, t.Token, edge.Message(c.Message), c.Delay, w.rt.Now())...)
	}
	if len(released) > 0 {
		stmts = append(stmts, w.rt.Store.ReleaseTasks(split(released)))
	}
	if err := unit.Transact(ctx, w.rt.DB, sqldb.Urgent, func(tx sqldb.Tx) error { return tx.Run(ctx, stmts...) }); err != nil {
		return err
	}
	w.rt.Hub.Publish(topic, core.DueAgain(claims, w.rt.Clock.Now())) // for the other processes
	return nil
}

func (w *Worker) next(ctx context.Context) (wait time.Duration, ok bool, err error) {
	tx, err := w.rt.DB.Begin(ctx, sqldb.Read)
	if err != nil {
		return 0, false, err
	}
	defer tx.Rollback()
	err = tx.Run(ctx, w.rt.Store.NextTask(w.types, w.least(), w.rt.Now(), func(d time.Duration) { wait, ok = d, true })...)
	return wait, ok, err
}

// sweep removes tasks whose retention is over.
func (w *Worker) sweep(ctx context.Context) error {
	return errors.Join(w.sweepSome(ctx, false, w.options.Retention), w.sweepSome(ctx, true, w.options.DeadRetention))
}

// sweepSome removes dead letters or the others.
func (w *Worker) sweepSome(ctx context.Context, dead bool, keep time.Duration) error {
	if keep < 0 {
		return nil
	}
	for range 5 {
		var removed int64
		err := unit.Transact(ctx, w.rt.DB, sqldb.Write, func(tx sqldb.Tx) error {
			return tx.Run(ctx, w.rt.Store.SweepTasks(dead, keep, w.rt.Now(), &removed)...)
		})
		if err != nil || removed == 0 {
			return err
		}
	}
	return nil
}
