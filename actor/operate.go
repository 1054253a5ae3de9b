package actor

import (
	"context"
	"fmt"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/tracing"
	"github.com/perdure/perdure/statechart"
)

// operation is an operator's action on an actor.
type operation struct {
	what    string
	by      Caller
	job     *job
	invalid error // the error of the arguments
}

func (o *operation) check() error {
	if o.invalid != nil {
		return o.invalid
	}
	if err := o.job.ref.find(); err != nil {
		return err
	}
	return o.by.check()
}

// operate runs an operation in a transaction that it may share with other jobs.
func (a *Actors) operate(ctx context.Context, o *operation) error {
	err := o.check()
	if err == nil {
		err = a.commit(ctx, o.job)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", o.what, bare(err))
	}
	return nil
}

// operateIn runs an operation in a unit of work.
func (a *Actors) operateIn(tx *perdure.Tx, o *operation) error {
	err := o.check()
	if err == nil {
		err = a.within(tx, o.job)
	}
	if err != nil {
		return host.In(tx).Fail(fmt.Errorf("%s: %w", o.what, bare(err)))
	}
	return nil
}

// within runs jobs in a unit of work. It returns the first error.
func (a *Actors) within(tx *perdure.Tx, jobs ...*job) error {
	if host.In(tx).Engine() != a.eng {
		return fault.Invalidf("unit of work", "belongs to another engine")
	}
	trace := tracing.Of(tx.Context())
	for _, j := range jobs {
		j.trace = trace
	}
	b := a.newBatch(host.In(tx))
	if err := b.do(jobs); err != nil {
		return err
	}
	for _, j := range jobs {
		if j.err != nil {
			return j.err
		}
	}
	return nil
}

// Stop stops an actor and its children without their exit actions. Its timers and invocations
// are removed. Committed effects still happen. If the actor is finished, the error is a
// *perdure.StateError.
func (a *Actors) Stop(ctx context.Context, ref Ref, by Caller) error {
	return a.operate(ctx, stopOp(ref, by))
}

// StopIn is Stop as a part of a unit of work. An error fails the unit.
func (a *Actors) StopIn(tx *perdure.Tx, ref Ref, by Caller) error {
	return a.operateIn(tx, stopOp(ref, by))
}

func stopOp(ref Ref, by Caller) *operation {
	return &operation{what: "stop actor", by: by, job: &job{ref: ref, run: func(t *turn) error { return t.stop(by) }}}
}

// Resume lifts the quarantine of an actor if the actor can be loaded now: its snapshot or its
// log must be intact and match the machine. Otherwise the actor stays quarantined and the error
// is a *QuarantinedError; see Reset.
func (a *Actors) Resume(ctx context.Context, ref Ref, by Caller) error {
	return a.operate(ctx, resumeOp(ref, by))
}

// ResumeIn is Resume as a part of a unit of work. An error fails the unit.
func (a *Actors) ResumeIn(tx *perdure.Tx, ref Ref, by Caller) error {
	return a.operateIn(tx, resumeOp(ref, by))
}

func resumeOp(ref Ref, by Caller) *operation {
	run := func(t *turn) error { return t.batch.resume(t, by) }
	return &operation{what: "resume actor", by: by, job: &job{ref: ref, sleeps: true, run: run}}
}

// MoveTimer moves a timer to another due time. If the timer has fired or was cancelled, the
// error is a *fault.NotFound, as for SkipTimer and FireTimer.
func (a *Actors) MoveTimer(ctx context.Context, ref Ref, by Caller, id string, due time.Time) error {
	return a.operate(ctx, moveOp(ref, by, id, due))
}

// MoveTimerIn is MoveTimer as a part of a unit of work. An error fails the unit.
func (a *Actors) MoveTimerIn(tx *perdure.Tx, ref Ref, by Caller, id string, due time.Time) error {
	return a.operateIn(tx, moveOp(ref, by, id, due))
}

func moveOp(ref Ref, by Caller, id string, due time.Time) *operation {
	o := timerOp("move timer", ref, by, id, func(t *turn, timer statechart.Timer) error {
		timer.Due = (due.UnixMicro() + 999) / 1000
		t.timers.apply(statechart.TimerOp{Kind: statechart.Schedule, Timer: timer})
		return t.note(EntryMove, timer, by)
	})
	if y := due.UTC().Year(); y < 1970 || y > 9998 {
		o.invalid = fault.Invalidf("due time", "must be between the years 1970 and 9998")
	}
	return o
}

// SkipTimer removes a timer, which will not fire.
func (a *Actors) SkipTimer(ctx context.Context, ref Ref, by Caller, id string) error {
	return a.operate(ctx, skipOp(ref, by, id))
}

// SkipTimerIn is SkipTimer as a part of a unit of work. An error fails the unit.
func (a *Actors) SkipTimerIn(tx *perdure.Tx, ref Ref, by Caller, id string) error {
	return a.operateIn(tx, skipOp(ref, by, id))
}

func skipOp(ref Ref, by Caller, id string) *operation {
	return timerOp("skip timer", ref, by, id, func(t *turn, timer statechart.Timer) error {
		t.drop(timer)
		return t.note(EntrySkip, timer, by)
	})
}

// FireTimer fires a timer now. The machine's time is the time of the call.
func (a *Actors) FireTimer(ctx context.Context, ref Ref, by Caller, id string) error {
	return a.operate(ctx, fireOp(ref, by, id))
}

// FireTimerIn is FireTimer as a part of a unit of work. An error fails the unit.
func (a *Actors) FireTimerIn(tx *perdure.Tx, ref Ref, by Caller, id string) error {
	return a.operateIn(tx, fireOp(ref, by, id))
}

func fireOp(ref Ref, by Caller, id string) *operation {
	return timerOp("fire timer", ref, by, id, func(t *turn, timer statechart.Timer) error {
		t.drop(timer)
		t.advance(t.nowMillis())
		return t.fire(EntryFire, timer, &by)
	})
}

// timerOp returns an operation on one timer of an actor. Overdue timers fire first.
func timerOp(what string, ref Ref, by Caller, id string, do func(*turn, statechart.Timer) error) *operation {
	run := func(t *turn) error {
		timer, err := t.batch.timer(t, id)
		if err != nil {
			return err
		}
		return do(t, timer)
	}
	return &operation{what: what, by: by, job: &job{ref: ref, run: run}, invalid: edge.Key("timer", id)}
}
