package actor

import (
	"context"
	"errors"
	"fmt"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/seal"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/statechart"
)

// Reset puts an actor back into the state that it had after a step of its log, with the timers
// of that step. Use it for an actor that failed, or whose snapshot and log are damaged. Step 0
// is the last step that can be computed from the log. Later steps stay in the log, but their
// state changes are lost. Effects that they committed still happen. Invocations that were
// running after the step are run again.
//
// If the actor is done or stopped, the error is a *perdure.StateError. If the step cannot be
// computed, the error is a *QuarantinedError with the reason, and nothing changes. The log
// receives an entry of kind EntryReset with the caller and the step.
func (a *Actors) Reset(ctx context.Context, ref Ref, by Caller, step int64) error {
	return a.operate(ctx, resetOp(ref, by, step))
}

// ResetIn is Reset as a part of a unit of work. An error fails the unit.
func (a *Actors) ResetIn(tx *perdure.Tx, ref Ref, by Caller, step int64) error {
	return a.operateIn(tx, resetOp(ref, by, step))
}

func resetOp(ref Ref, by Caller, step int64) *operation {
	o := &operation{what: "reset actor", by: by, job: &job{ref: ref, sleeps: true, run: func(t *turn) error { return t.batch.reset(t, step, by) }}}
	if step < 0 {
		o.invalid = fault.Invalidf("step", "must not be negative, got %d", step)
	}
	return o
}

func (b *batch) reset(t *turn, step int64, by Caller) error {
	if t.status == Done || t.status == Stopped {
		return finished(t.ref, t.status)
	}
	if step > t.row.Sequence {
		return fault.Invalidf("step", "must be at most %d, got %d", t.row.Sequence, step)
	}
	k, err := b.kindOf(t)
	if err != nil {
		return err
	}
	h, err := b.actors.lastGood(b.run, k, t.ref, t.row.Sequence, step)
	if err != nil {
		return b.unreset(t, err)
	}
	pending, err := b.pending(t)
	if err != nil {
		return err
	}
	t.kind, t.tree, t.cached, t.checkpoint = k, h.tree, true, true
	t.advance(t.nowMillis())
	e := entry{kind: EntryReset, event: map[string]int64{"step": h.sequence}, caller: &by}
	_, err = t.step(e, func(int64) (*statechart.Step, error) { return t.rewind(h, pending) })
	return err
}

// unreset returns the reason why an actor cannot be reset.
func (b *batch) unreset(t *turn, err error) error {
	var sealed *seal.SealedError
	var version *VersionError
	if sqldb.IsTransient(err) || b.tx.Context().Err() != nil || errors.As(err, &sealed) || errors.As(err, &version) {
		return err
	}
	return &QuarantinedError{Ref: t.ref, Reason: err.Error()}
}

// numbersPerStep is larger than the count of numbers that a transition can assign to effects,
// invocations and timers.
const numbersPerStep = 1 << 24

// rewind replaces the timers and invocations of an actor by the timers and invocations of an
// earlier transition. New effects get numbers that no transition has used, because the numbers
// are idempotency keys.
func (t *turn) rewind(h *history, pending []statechart.Timer) (*statechart.Step, error) {
	t.tree.Skip((t.row.Sequence - h.sequence + 1) * numbersPerStep)
	step := &statechart.Step{}
	for _, timer := range pending {
		step.Timers = append(step.Timers, statechart.TimerOp{Kind: statechart.Remove, Timer: timer})
	}
	for _, timer := range h.timers {
		step.Timers = append(step.Timers, statechart.TimerOp{Kind: statechart.Schedule, Timer: timer})
	}
	for _, o := range t.tree.Pending() {
		task, err := t.hook(t.kind.hookName(taskPrefix, o.Src), t.tree.Skip(1), o.Path, o.Generation, o.Input, t.kind.tasks[o.Src].Retry)
		if err != nil {
			return nil, err
		}
		t.stops, t.hooks = append(t.stops, t.hookID(o.Generation)), append(t.hooks, task)
	}
	return step, nil
}

// lastGood computes the state after a step. Step 0 means the last step up to until that can be
// computed. It starts from earlier checkpoints if the last checkpoints are damaged.
func (a *Actors) lastGood(read reader, k *kind, ref Ref, until, step int64) (*history, error) {
	if step > 0 {
		until = step
	}
	var first error
	for before := until; before >= 0; {
		h := &history{ref: ref, kind: k}
		from, err := a.beginAt(read, h, before)
		if err == nil {
			err = a.follow(read, h, until)
		}
		if err != nil && first == nil {
			first = err
		}
		if err == nil {
			return h, nil
		}
		if step == 0 && h.sequence > 0 { // the failed step has changed the tree
			return a.lastGood(read, k, ref, until, h.sequence)
		}
		if from == 0 {
			break
		}
		before = from - 1
	}
	return nil, first
}

// beginAt restores the last checkpoint up to a step. It returns the step of the checkpoint, or
// 0 if there is none.
func (a *Actors) beginAt(read reader, h *history, until int64) (int64, error) {
	var point *store.Checkpoint
	if err := read(a.rt.Store.LastCheckpoint(h.ref.stored(), until, func(c store.Checkpoint) { point = &c })); err != nil {
		return 0, err
	}
	if point == nil {
		return 0, nil
	}
	if point.Sealed != nil {
		return point.Sequence, point.Sealed
	}
	return point.Sequence, h.begin(point)
}

// follow applies the log entries up to a step.
func (a *Actors) follow(read reader, h *history, until int64) error {
	for h.sequence < until {
		var entries []store.ActorEntry
		err := read(a.rt.Store.ListActorLog(h.ref.stored(), h.sequence, until, MaxLimit, func(e store.ActorEntry) { entries = append(entries, e) }))
		if err != nil {
			return err
		}
		if len(entries) == 0 {
			return fmt.Errorf("%w: it has no transition %d", errBroken, h.sequence+1)
		}
		for i := range entries {
			if entries[i].Sealed != nil {
				return entries[i].Sealed
			}
			if err := h.apply(&entries[i]); err != nil {
				return err
			}
		}
	}
	return nil
}
