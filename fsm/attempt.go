package fsm

import (
	"context"
	"fmt"
	"time"

	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/retry"
)

// Attempts returns the attempts of an instance's steps, oldest first: the newest
// retry.MaxRecorded that did not succeed, and the attempt that is running or finished the
// instance. The outcomes of the other steps are in its History, if the definition keeps
// it. Attempts returns a *fault.NotFound if there is no such instance.
func (a *Admin) Attempts(ctx context.Context, id string) ([]retry.Attempt, error) {
	if !validID(id) {
		return nil, unknown(id)
	}
	var attempts []retry.Attempt
	var found []Instance
	var running retry.Attempt
	st := a.rt.Store
	stmts := []sqldb.Stmt{
		st.ShowInstances(store.InstanceFilter{ID: id, Limit: 1}, a.rt.Now(), func(v store.InstanceView) { found = append(found, view(v)) }),
		st.ListAttempts(store.TriedInstance(id), func(a retry.Attempt) { attempts = append(attempts, a) }),
		st.RunningInstance(id, func(worker string, since *time.Time) { running.Worker, running.Began = worker, edge.UTC(since) }),
	}
	if err := a.read(ctx, stmts...); err != nil {
		return nil, fmt.Errorf("read attempts of instance %s: %w", id, err)
	}
	if len(found) == 0 {
		return nil, unknown(id)
	}
	i := found[0]
	last := retry.Attempt{Number: i.Attempt + i.Crashes, Step: i.Step, Worker: running.Worker, Began: running.Began, Outcome: retry.Running}
	switch i.Status {
	case Running:
	case Done, Stopped:
		last.Worker, last.Began, last.Ended, last.Outcome = "", time.Time{}, i.Finished, retry.Succeeded
	default:
		return attempts, nil
	}
	return append(attempts, last), nil
}

// failure records an attempt of a step, if it failed.
func (w *writing) failure(e *execution, d *decision) {
	if d.outcome.kind == kindStop || d.outcome.kind == kindPark || d.err == "" && d.outcome.kind != kindFail {
		return
	}
	i := e.instance
	failed := store.FailedStep{ID: i.ID, Step: i.Step, Number: i.Attempt + i.Crashes + 1, Error: d.err}
	if !e.began.IsZero() { // the definition has the step
		failed.Took = max(e.machines.rt.Clock.Now().Sub(e.began), 0)
	}
	w.failures = append(w.failures, failed)
}
