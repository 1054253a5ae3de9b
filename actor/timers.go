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

// Timer is a pending delayed transition of an actor.
type Timer struct {
	Actor Ref `json:"actor"`
	// ID identifies the timer among the timers of the actor.
	ID string `json:"id"`
	// Due is the due time.
	Due time.Time `json:"due"`
	// Event is the event that the timer sends to the actor at Target in the tree. Path is the
	// actor that scheduled the timer.
	Event  statechart.Event `json:"event"`
	Path   string           `json:"path"`
	Target string           `json:"target"`
	// Delay is the duration that the machine requested.
	Delay time.Duration `json:"delay"`
	// Scheduled is the time at which the timer was scheduled.
	Scheduled time.Time `json:"scheduled"`
	// State is the id of the state that has the delay, "" for a timer that an action scheduled.
	// Leads are the states to which the timer can lead now.
	State string   `json:"state,omitempty"`
	Leads []string `json:"leads,omitempty"`
	// Crashes is the number of processes that crashed while they fired the timer. Error is set
	// if the timer is quarantined. A quarantined timer fires only after MoveTimer or FireTimer.
	Crashes int    `json:"crashes,omitempty"`
	Error   string `json:"error,omitempty"`
}

// Timers returns the timers of an actor in firing order.
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

// explain sets the State and Leads of each timer, if the actor can be read.
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
	_ = json.Unmarshal([]byte(s.Payload), &t) // best effort: shows the fields that can be decoded
	return Timer{
		Actor: refOf(s.ActorRef), ID: s.AlarmID, Due: s.Due.UTC(), Event: t.Event, Path: t.Path, Target: t.Target,
		Delay: time.Duration(min(t.Delay, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond, Scheduled: s.Created.UTC(),
		Crashes: s.Crashes, Error: value(s.Error),
	}
}

// timer reads a timer of a locked actor.
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

// pending returns the timers of a locked actor after its transitions.
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

// pendingTimer returns a timer as the machine stores it. Its due time is the due time of the
// row, which may differ from the scheduled one.
func pendingTimer(s store.ActorTimer) statechart.Timer {
	timer, _ := statechart.ReadTimer([]byte(s.Payload)) // the stored payload is valid
	timer.Due = s.Due.UnixMilli()
	return timer
}

// dueTimer adds a due timer. A row with a damaged payload could neither be fired nor removed by
// its content.
func (t *turn) dueTimer(s store.ActorTimer) {
	timer := pendingTimer(s)
	if alarmID(timer) != s.AlarmID {
		t.damagedTimer = fmt.Sprintf("delay %s cannot be decoded", s.AlarmID)
		return
	}
	t.due = append(t.due, timer)
}

func limitOf(n int) (int, error) { return edge.Limit("limit", n, DefaultLimit, MaxLimit) }

// note records an operator's change of a timer as a separate transition that leaves the state
// unchanged.
func (t *turn) note(kind EntryKind, timer statechart.Timer, by Caller) error {
	e := entry{kind: kind, event: timer, caller: &by, path: timer.Path, generation: timer.Generation, timer: alarmID(timer)}
	_, err := t.step(e, func(int64) (*statechart.Step, error) { return &statechart.Step{}, nil })
	return err
}
