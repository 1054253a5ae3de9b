package actor

import (
	"context"
	"fmt"
	"time"

	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/statechart"
)

// Fork creates an actor in the state that another actor of the same type had after a step, with
// the timers of that step. The new actor continues from there like any other actor: its effects
// happen, and invocations that were running are started again. The original actor is not
// changed.
func (a *Actors) Fork(ctx context.Context, from Ref, step int64, id string, by Caller) (Receipt, error) {
	if err := by.check(); err != nil {
		return Receipt{}, err
	}
	record, h, err := a.historyOf(ctx, from, step)
	if err != nil {
		return Receipt{}, fmt.Errorf("fork actor: %w", err)
	}
	if id == "" {
		id = a.rt.NewID()
	}
	n := &arrival{
		actors: a, ref: Ref{Type: from.Type, ID: id}, caller: by, kind: h.kind, origin: "fork", input: record.Input,
		entry: entry{kind: EntryFork, event: map[string]any{"actor": from.String(), "step": h.sequence}, caller: &by},
		tree:  h.tree, timers: h.timers, at: h.at,
	}
	if err = n.ref.check(); err == nil {
		err = a.commit(ctx, n.job())
	}
	if err != nil {
		return Receipt{}, fmt.Errorf("fork actor: %w", bare(err))
	}
	return n.receipt, nil
}

// arrival is a new actor that is created with an existing state.
type arrival struct {
	actors *Actors
	ref    Ref
	caller Caller
	kind   *kind
	origin string
	input  *string
	entry  entry
	tree   *statechart.Tree
	// timers are the pending timers, and at is the time of the state. at is 0 if neither is
	// known.
	timers  []statechart.Timer
	at      int64
	receipt Receipt
}

func (n *arrival) job() *job {
	return &job{ref: n.ref, run: n.run, spawn: &store.NewActor{
		ActorRef: n.ref.stored(), Incarnation: n.actors.rt.NewID(), Machine: n.kind.options.Version, Origin: n.origin,
		CallerKind: string(n.caller.Kind), CallerID: n.caller.ID, Input: n.input,
	}}
}

// run stores the state as the first transition of the new actor. It is a checkpoint, because
// the log does not contain the earlier transitions.
func (n *arrival) run(t *turn) error {
	n.receipt = Receipt{Ref: n.ref, Created: true}
	if t.sequence > 0 {
		return exists(n.ref)
	}
	snapshot, err := n.tree.Snapshot()
	if err != nil {
		return err
	}
	if t.tree, err = t.kind.machine.Restore(snapshot); err != nil { // a copy: the job may run again
		return err
	}
	t.checkpoint = true
	if _, err := t.step(n.entry, func(int64) (*statechart.Step, error) { return n.step(t) }); err != nil {
		return err
	}
	return n.receipt.fill(t, n.caller)
}

// step returns the effects of the arrival. Invocations are started again. Known timers
// continue; otherwise the timers of the state start again.
func (n *arrival) step(t *turn) (*statechart.Step, error) {
	step := &statechart.Step{}
	if n.at == 0 {
		var err error
		if step, err = t.tree.Rearm(t.advance(t.nowMillis())); err != nil {
			return nil, err
		}
	}
	t.advance(n.at)
	for _, timer := range n.timers {
		step.Timers = append(step.Timers, statechart.TimerOp{Kind: statechart.Schedule, Timer: timer})
	}
	step.Invocations = t.tree.Pending()
	return step, nil
}

// Forecast is a timer that will fire if nothing else happens before.
type Forecast struct {
	Timer Timer `json:"timer"`
	// Value and Status are the actor's state value and status after the timer fires.
	Value  any    `json:"value"`
	Status Status `json:"status"`
	// Effects are the effects that the timer will cause.
	Effects []statechart.EffectCall `json:"effects,omitempty"`
}

// maxAhead is the maximum number of timers that a forecast fires.
const maxAhead = 10_000

// Forecast predicts what happens to an actor until a time if no caller sends it an event and no
// invocation finishes. It returns the timers that will fire, including timers that other timers
// schedule, in firing order. Nothing is changed.
func (a *Actors) Forecast(ctx context.Context, ref Ref, until time.Time) ([]Forecast, error) {
	record, err := a.record(ctx, ref)
	if err != nil {
		return nil, fmt.Errorf("forecast timers: %w", err)
	}
	k, err := a.version(ctx, ref.Type, record.Machine)
	if err != nil {
		return nil, fmt.Errorf("forecast timers: %w", err)
	}
	h := &history{ref: ref, kind: k, at: record.Updated.UnixMilli()}
	if h.tree, err = k.machine.Restore([]byte(value(record.Snapshot))); err != nil {
		return nil, fmt.Errorf("forecast timers: %w", err)
	}
	err = a.read(ctx, a.rt.Store.ListTimers([]store.ActorRef{ref.stored()}, func(t store.ActorTimer) { h.timers = append(h.timers, pendingTimer(t)) }))
	if err != nil {
		return nil, fmt.Errorf("forecast timers: %w", err)
	}
	return h.ahead(until)
}

func (h *history) ahead(until time.Time) ([]Forecast, error) {
	var all []Forecast
	for len(h.timers) > 0 && len(all) < maxAhead {
		next := h.timers[0]
		if timeOf(next.Due).After(until) {
			break
		}
		h.timers, h.at = h.timers[1:], max(h.at, next.Due)
		f := Forecast{Timer: timerOf(store.ActorTimer{ActorRef: h.ref.stored(), AlarmID: alarmID(next), Due: timeOf(next.Due), Payload: *text(next)})}
		f.Timer.State, f.Timer.Leads = h.tree.Leads(next.Target, next.Event.Type)
		step, err := h.tree.Fire(h.at, next)
		if err != nil {
			return all, fmt.Errorf("forecast timers: %w", err)
		}
		h.take(step)
		state := h.tree.State()
		f.Value, f.Status, f.Effects = state.Value, Status(state.Status), step.Effects
		all = append(all, f)
	}
	return all, nil
}

// Upcoming returns the timers of all actors of a type that are due until a time, ordered by due
// time. It returns at most limit timers; 0 means DefaultLimit.
func (a *Actors) Upcoming(ctx context.Context, typ string, until time.Time, limit int) ([]Timer, error) {
	limit, err := limitOf(limit)
	if err != nil {
		return nil, err
	}
	var timers []Timer
	err = a.read(ctx, a.rt.Store.TimersAhead(typ, until.UTC(), limit, func(t store.ActorTimer) { timers = append(timers, timerOf(t)) }))
	if err != nil {
		return nil, fmt.Errorf("list timers: %w", err)
	}
	return timers, nil
}
