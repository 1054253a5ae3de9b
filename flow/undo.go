package flow

import (
	"context"
	"errors"
	"fmt"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/store"
)

// undo is compensation that was registered, or the place of a branch that may have some.
type undo struct {
	branch *Run
	run    func(r *root) error
}

// Undo registers compensation: fn runs if the function fails, stops or is cancelled, after the
// function has returned. Compensation runs in reverse order, each as a recorded step. It is
// retried by its policy; if it has no attempts left, the instance fails, and the rest of the
// compensation still runs.
//
// After complete compensation, Machines.Retry runs the function from its start: its steps run again,
// with other keys, and signals that were received stay received. If compensation has failed,
// Machines.Retry only continues the compensation, and the instance ends as before.
//
// Do not use defer for compensation: deferred functions run at every wait.
func Undo(run *Run, name string, fn func(ctx context.Context) error, options ...StepOption) {
	key := run.register(name)
	run.undos = append(run.undos, undo{run: func(r *root) error {
		a := &attempt{root: r, run: &Run{root: r}, key: key, kind: store.JournalUndo, o: optionsOf(options)}
		_, err := perform(a, a.recorded(), func(ctx context.Context) (struct{}, error) { return struct{}{}, fn(ctx) })
		return err
	}})
}

// UndoTx is Undo with a transaction, like Tx.
func UndoTx(run *Run, name string, fn func(tx *perdure.Tx) error, options ...StepOption) {
	key := run.register(name)
	run.undos = append(run.undos, undo{run: func(r *root) error {
		a := &attempt{root: r, run: &Run{root: r}, key: key, kind: store.JournalUndo, o: optionsOf(options)}
		_, err := transact(a, a.recorded(), func(tx *perdure.Tx) (struct{}, error) { return struct{}{}, fn(tx) })
		return err
	}})
}

// register returns the key of compensation.
func (r *Run) register(name string) string {
	if r.inStep {
		panic("flow: a durable call was made inside a step")
	}
	r.root.mu.Lock()
	if r.root.ended {
		r.root.unwind()
	}
	defer r.root.mu.Unlock()
	return undoMark + r.key(name)
}

// recorded locks the run and reports whether the compensation is recorded.
func (a *attempt) recorded() bool {
	a.root.mu.Lock()
	if a.root.ended {
		a.root.unwind()
	}
	a.root.compensated = true
	_, ok := a.root.rows[a.key]
	return ok
}

// undo runs the compensation of a run and of its branches in reverse order.
func (r *root) undo(run *Run) error {
	r.mu.Lock()
	r.undoing = true
	r.mu.Unlock()
	return r.undoAll(run)
}

func (r *root) undoAll(run *Run) error {
	var errs []error
	for i := len(run.undos) - 1; i >= 0; i-- {
		u := run.undos[i]
		var err error
		if u.branch != nil {
			err = r.undoAll(u.branch)
		} else if err = u.run(r); err != nil {
			err = fmt.Errorf("compensation: %w", err)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
