package task

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/unit"
	"github.com/perdure/perdure/internal/work"
)

const (
	// strayLook is the shortest interval between two checks for tasks of types that no
	// worker knows.
	strayLook = 30 * time.Second
	// overdueLook is the shortest interval between two checks for sessions whose
	// transactions take too long.
	overdueLook = 15 * time.Second
)

// kind returns the kind of work that tasks are.
func (w *Worker) kind() work.Kind {
	return work.Kind{
		Name: "task", Topic: func(string) string { return topic }, Begin: w.begin, Write: w.write, Next: w.next,
		Rows: rows{w}, Prepare: w.prepare, Sweep: w.sweep, Share: w.share,
	}
}

// rows are the statements on claims of tasks.
type rows struct{ *Worker }

// Claim implements work.Rows.
func (r rows) Claim(ctx context.Context, tx sqldb.Tx, c store.Claim, least int) ([]store.Claimed, []work.Crash, error) {
	tasks, lost, err := r.rt.Store.ClaimTasks(ctx, tx, store.TaskClaim{
		Worker: c.Worker, Types: r.unheld(), Limit: c.Limit, Lease: c.Lease, MaxCrashes: r.options.MaxCrashes,
		MayReap: r.runner.MayReap(), Least: least,
	}, r.rt.Now())
	if err != nil {
		return nil, nil, err
	}
	claimed := make([]store.Claimed, len(tasks))
	for i := range tasks {
		t := &tasks[i]
		id := text(t.ID)
		claimed[i] = store.Claimed{ID: id, Public: id, Due: t.Scheduled, Row: t, Token: t.Token, Limit: t.BatchLimit}
	}
	crashes := make([]work.Crash, len(lost))
	for i, c := range lost {
		crashes[i] = work.Crash{ID: text(c.ID), Name: c.Type, Crashes: c.Crashes, Quarantined: Status(c.Status) == Quarantined}
	}
	return claimed, crashes, nil
}

// Extend implements work.Rows.
func (r rows) Extend(claims []store.Held, lease time.Duration, found func(id string)) []sqldb.Stmt {
	return r.rt.Store.ExtendTasks(claims, lease, r.rt.Now(), found)
}

// Hold implements work.Rows. On PostgreSQL it runs the functions of the decisions.
func (r rows) Hold(group []*work.Decided, found func(id string)) []sqldb.Stmt {
	runs := make([]store.TaskRun, len(group))
	steps := map[string]*step{}
	for i, d := range group {
		runs[i].Held = store.Held{ID: d.ID, Token: d.Token}
		if s, ok := d.Outcome.(*step); ok && s.function != "" && r.runsFunctions() {
			steps[d.ID] = s
			runs[i].Function, runs[i].Payload, runs[i].Trace = &s.function, &s.payload, s.trace
		}
	}
	return r.rt.Store.HoldTasks(runs, r.rt.Now(), func(id string, result store.TaskResult) (err error) {
		found(id)
		if s := steps[id]; s != nil {
			r.pace.took(s.function, result.Took)
			s.envelope, err = parseEnvelope(s.function, result.Result)
		}
		return err
	})
}

// runsFunctions reports whether the database has the functions.
func (w *Worker) runsFunctions() bool { return w.rt.DB.Dialect().Name == sqldb.Postgres }

// Release implements work.Rows.
func (r rows) Release(claims []store.Held) []sqldb.Stmt {
	return []sqldb.Stmt{r.rt.Store.ReleaseTasks(claims)}
}

// Postpone implements work.Rows.
func (r rows) Postpone(claim store.Held, reason string, delay time.Duration) []sqldb.Stmt {
	return r.rt.Store.PostponeTask(claim, reason, delay, r.rt.Now())
}

// write returns the statements of a group of decisions.
func (w *Worker) write(group []*work.Decided, wakeups *work.Wakeups) (stmts []sqldb.Stmt) {
	var messages []store.TaskError
	var ended []store.Held
	var failed []store.TaskFailure
	for _, d := range group {
		s, held := d.Outcome.(*step), store.Held{ID: d.ID, Token: d.Token}
		for _, message := range s.messages() {
			messages = append(messages, store.TaskError{Held: held, Message: message})
		}
		switch {
		case s.failure != nil:
			f := *s.failure
			f.Held = held
			failed = append(failed, f)
			if f.Delay != nil {
				wakeups.At(d.Queue, w.rt.Clock.Now().Add(*f.Delay))
			}
		case s.ends():
			ended = append(ended, held)
		}
	}
	now := w.rt.Now() // one time, by which an attempt is matched with its error
	if len(messages) > 0 {
		stmts = append(stmts, w.rt.Store.AppendTaskErrors(messages, now))
	}
	if len(ended) > 0 {
		stmts = append(stmts, w.rt.Store.CompleteTasks(ended, now))
	}
	if len(failed) > 0 {
		stmts = append(stmts, w.rt.Store.FailTasks(failed, now)...)
	}
	return stmts
}

// share returns the name with which a task shares the slots.
func (w *Worker) share(i *work.Item) (name, system string) {
	if len(w.types) < 2 {
		return "", ""
	}
	return "task:" + taskOf(i).Type, ""
}

// unheld returns the types whose tasks have room in the slots of this process.
func (w *Worker) unheld() []string {
	held := w.runner.Held()
	return slices.DeleteFunc(slices.Clone(w.types), func(typ string) bool { return slices.Contains(held, "task:"+typ) })
}

func (w *Worker) next(_ store.Claim, least int, found func(time.Duration)) []sqldb.Stmt {
	return w.rt.Store.NextTask(w.unheld(), work.Lowest(least), w.rt.Now(), found)
}

// prepare records, every strayLook, an error for tasks of types that no worker knows:
// they wait for a worker that does. Every overdueLook it ends sessions of the role
// perdure_worker whose transactions take too long. Such sessions can hold locks for
// which other workers wait, and the role can unset its own timeouts.
func (w *Worker) prepare(ctx context.Context) error {
	now := w.rt.Clock.Now()
	if w.runsFunctions() && now.Sub(w.ended) >= overdueLook {
		w.ended = now
		err := unit.Transact(ctx, w.rt.DB, sqldb.Urgent, func(tx sqldb.Tx) error { return tx.Run(ctx, w.rt.Store.EndOverdueSessions()) })
		if err != nil {
			return err
		}
	}
	if now.Sub(w.looked) < strayLook {
		return nil
	}
	w.looked = now
	return unit.Transact(ctx, w.rt.DB, sqldb.Urgent, func(tx sqldb.Tx) error {
		return w.rt.Store.ReportUnroutedTasks(ctx, tx, w.types, w.rt.Now())
	})
}

// sweep removes tasks whose retention has passed.
func (w *Worker) sweep(ctx context.Context) error {
	return errors.Join(w.sweepSome(ctx, false, w.options.Retention), w.sweepSome(ctx, true, w.options.DeadRetention))
}

// sweepSome removes either dead letters or other finished tasks.
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
