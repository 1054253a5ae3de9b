package actor

import (
	"errors"
	"fmt"
	"math"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/statechart"
)

// maxChain is the maximum number of overdue timers of one actor that fire in one transaction.
// The remaining timers fire in the next transaction.
const maxChain = 1000

// load makes the tree of a locked actor available. It uses the cached tree if it has the
// sequence of the row, otherwise the stored snapshot. An actor that cannot be loaded is
// quarantined.
func (b *batch) load(t *turn) error {
	switch {
	case t.reason != nil:
		return &QuarantinedError{Ref: t.ref, Reason: *t.reason}
	case t.kind != nil:
		return nil // an earlier job of the batch has loaded it
	case t.status == Quarantined:
		return &QuarantinedError{Ref: t.ref, Reason: value(t.row.Reason)}
	case t.sealed() != nil:
		return t.sealed()
	case t.damagedTimer != "":
		return b.damage(t, t.damagedTimer)
	}
	k, err := b.kindOf(t)
	if err != nil {
		return err
	}
	t.kind, t.cached = k, true
	if t.row.Sequence == 0 {
		return nil // it was just created
	}
	had := b.had[t.ref]
	if had != nil && had.incarnation == t.row.Incarnation && had.sequence == t.row.Sequence && had.machine == t.row.Machine && k.options.Version == t.row.Machine {
		t.tree = had.tree
		return nil
	}
	t.fresh = true
	return b.restore(t)
}

// sealed returns the error if this process cannot decrypt the actor. The actor is then left
// unchanged.
func (t *turn) sealed() error {
	if t.stored != nil && t.stored.Sealed != nil {
		return t.stored.Sealed
	}
	return t.sealedTimer
}

// kindOf returns the version of the actor's type with which this process runs the actor.
func (b *batch) kindOf(t *turn) (*kind, error) {
	k := b.actors.registered(t.ref.Type)
	if k == nil {
		return b.documentKind(t.ref.Type, t.row.Machine)
	}
	if k.options.Version < t.row.Machine {
		return nil, &VersionError{Ref: t.ref, Has: t.row.Machine, Known: k.options.Version}
	}
	return k, nil
}

// registered returns a type that was registered in this process, or nil.
func (a *Actors) registered(name string) *kind {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.kinds[name]
}

// restore builds the tree from the stored snapshot, whose checksum must match.
func (b *batch) restore(t *turn) error {
	if t.stored == nil {
		stored, err := b.stored(t.ref)
		if err != nil {
			return err
		}
		t.stored = stored
	}
	if reason := t.damage(t.stored); reason != "" {
		return b.repair(t, reason)
	}
	if t.row.Machine != t.kind.options.Version {
		return b.migrate(t)
	}
	tree, err := t.kind.machine.Restore([]byte(t.stored.Snapshot))
	if err != nil {
		return b.damage(t, fmt.Sprintf("snapshot does not match the statechart: %v", err))
	}
	t.tree = tree
	return nil
}

// damage describes what is wrong with a stored snapshot. It returns "" if the snapshot is
// intact.
func (t *turn) damage(s *store.Snapshot) string {
	switch {
	case s.Sequence != t.row.Sequence:
		return fmt.Sprintf("snapshot has sequence %d, the actor has sequence %d", s.Sequence, t.row.Sequence)
	case checksum([]byte(s.Snapshot)) != s.Checksum:
		return "snapshot does not match its checksum"
	}
	return ""
}

// damage quarantines an actor and reports the damage after the commit.
func (b *batch) damage(t *turn, reason string) error {
	b.damages = append(b.damages, Damage{Ref: t.ref, Reason: reason})
	return t.quarantine(reason)
}

// wake fires the overdue timers of a loaded actor. It then sends RESUME if the type wants
// system events and this process has just loaded the actor.
func (t *turn) wake() error {
	if t.awake || t.tree == nil {
		return nil
	}
	t.awake = true
	horizon := t.horizon()
	for range maxChain {
		if len(t.due) == 0 || compareTimers(t.due[0], horizon) > 0 {
			break
		}
		if err := t.fireNext(); err != nil {
			return err
		}
	}
	if !t.fresh || !t.kind.options.SystemEvents || t.tree.Status() != statechart.Active {
		return nil
	}
	return t.system(EventResume)
}

// horizon returns the last of the due timers that were read. If more timers are due, a timer
// that is scheduled during the transaction must not overtake them.
func (t *turn) horizon() statechart.Timer {
	if len(t.due) == maxChain {
		return t.due[maxChain-1]
	}
	return statechart.Timer{Due: math.MaxInt64}
}

// system sends a system event at the time of the transaction.
func (t *turn) system(event string) error {
	t.advance(t.nowMillis())
	e := statechart.Event{Type: event}
	_, err := t.step(entry{kind: EntryEvent, event: e, caller: &Caller{Kind: System}}, func(now int64) (*statechart.Step, error) {
		return t.tree.Send(now, e)
	})
	return t.quarantineOn(err)
}

// fireNext fires the timer with the earliest due time. The machine's time is that due time.
func (t *turn) fireNext() error {
	timer := t.due[0]
	t.due = t.due[1:]
	t.drop(timer)
	t.advance(timer.Due)
	return t.fire(EntryTimer, timer, nil)
}

func (t *turn) fire(kind EntryKind, timer statechart.Timer, by *Caller) error {
	e := entry{kind: kind, event: timer.Event, path: timer.Target, generation: timer.TargetGeneration, caller: by, timer: alarmID(timer)}
	_, err := t.step(e, func(now int64) (*statechart.Step, error) { return t.tree.Fire(now, timer) })
	return t.quarantineOn(err)
}

// quarantineOn handles an error of a transition that has no caller. If the machine exceeded a limit,
// the actor has failed, and the failure is recorded. If the actor rejects the transition, the
// actor is quarantined.
func (t *turn) quarantineOn(err error) error {
	var limit *statechart.LimitError
	switch {
	case err == nil, errors.As(err, &limit) && t.status == Failed:
		return nil
	case isInvalid(err):
		return t.batch.damage(t, err.Error())
	}
	return err
}

func isInvalid(err error) bool {
	var invalid *fault.Invalid
	return errors.As(err, &invalid)
}

func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
