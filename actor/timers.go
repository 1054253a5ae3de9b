package actor

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/statechart"
)

// Timer is a delay of an actor that has not fired.
type Timer struct {
	Actor Ref `json:"actor"`
	// ID names the timer among those of the actor.
	ID string `json:"id"`
	// Due is when it fires.
	Due time.Time `json:"due"`
	// Event is what it will send, to the actor at Target in the tree; Path is
	// the one that has scheduled it.
	Event  statechart.Event `json:"event"`
	Path   string           `json:"path"`
	Target string           `json:"target"`
	// Delay is how long the machine wanted to wait.
	Delay time.Duration `json:"delay"`
	// Scheduled is when that was.
	Scheduled time.Time `json:"scheduled"`
	// State is the id of the state whose delay it is, "" for one that an action
	// has scheduled. Leads are the states that it can lead to now.
	State string   `json:"state,omitempty"`
	Leads []string `json:"leads,omitempty"`
	// Crashes is the number of processes that died while they fired it. Error is
	// set if it is quarantined: then it fires only after MoveTimer or FireTimer.
	Crashes int    `json:"crashes,omitempty"`
	Error   string `json:"error,omitempty"`
}

// Timers returns the delays of an actor in the order in which they will fire.
func (a *Actors) Timers(ctx context.Context, ref Ref) ([]Timer, error) {
	record, err := a.record(ctx, ref)
	if err != nil {
		return nil, fmt.Errorf("list timers: %w", err)
	}
	var timers []Timer
	err = a.read(ctx, a.rt.Store.ListTimers([]store.ActorRef{ref.stored()}, func(t store.ActorTimer) { timers = append(timers, timerOf(t)) }))
	if err != nil {
		return nil, fmt.Errorf("list timers: %w", err)
	}
	a.explain(ctx, record, timers)
	return timers, nil
}

// explain says of each delay whose it is and where it leads, as far as the actor
// can be read.
func (a *Actors) explain(ctx context.Context, record *store.ActorRecord, timers []Timer) {
	k, err := a.version(ctx, record.Type, record.Machine)
	if err != nil {
		return
	}
	tree, err := k.machine.Restore([]byte(value(record.Snapshot)))
	if err != nil {
		return
	}
	for i := range timers {
		t := &timers[i]
		t.State, t.Leads = tree.Leads(t.Target, t.Event.Type)
	}
}

func timerOf(s store.ActorTimer) Timer {
	var t statechart.Timer
	_ = json.Unmarshal([]byte(s.Payload), &t) // shown as far as it can be
	return Timer{
		Actor: refOf(s.ActorRef), ID: s.AlarmID, Due: s.Due.UTC(), Event: t.Event, Path: t.Path, Target: t.Target,
		Delay: time.Duration(min(t.Delay, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond, Scheduled: s.Created.UTC(),
		Crashes: s.Crashes, Error: value(s.Error),
	}
}

// timer reads a delay of a locked actor.
func (b *batch) timer(t *turn, id string) (statechart.Timer, error) {
	pending, err := b.pending(t)
	if err != nil {
		return statechart.Timer{}, err
	}
	for _, timer := range pending {
		if alarmID(timer) == id {
			return timer, nil
		}
	}
	return statechart.Timer{}, &fault.NotFound{Kind: "timer", ID: id}
}

// pending returns the delays of a locked actor as they are after its steps.
func (b *batch) pending(t *turn) ([]statechart.Timer, error) {
	var all []statechart.Timer
	var sealed error
	err := b.run(b.actors.rt.Store.ListTimers([]store.ActorRef{t.ref.stored()}, func(s store.ActorTimer) {
		if s.Sealed != nil {
			sealed = s.Sealed
		}
		all = append(all, pendingTimer(s))
	}))
	if err == nil {
		err = sealed
	}
	return t.timers.over(all), err
}

// pendingTimer returns a delay as the machine has it. Its row says when it is
// due, whatever it said when it was scheduled.
func pendingTimer(s store.ActorTimer) statechart.Timer {
	timer, _ := statechart.ReadTimer([]byte(s.Payload)) // as it was stored
	timer.Due = s.Due.UnixMilli()
	return timer
}

// dueTimer takes a delay that is due. A row that is not what was stored could never
// be fired, nor removed by what it says.
func (t *turn) dueTimer(s store.ActorTimer) {
	timer := pendingTimer(s)
	if alarmID(timer) != s.AlarmID {
		t.damagedTimer = fmt.Sprintf("delay %s cannot be read", s.AlarmID)
		return
	}
	t.due = append(t.due, timer)
}

func limitOf(n int) (int, error) { return edge.Limit("limit", n, DefaultLimit, MaxLimit) }

// note records what an operator did with a delay. It is a step of its own that
// leaves the state as it is.
func (t *turn) note(kind EntryKind, timer statechart.Timer, by Caller) error {
	e := entry{kind: kind, event: timer, caller: &by, path: timer.Path, generation: timer.Generation, timer: alarmID(timer)}
	_, err := t.step(e, func(int64) (*statechart.Step, error) { return &statechart.Step{}, nil })
	return err
}
