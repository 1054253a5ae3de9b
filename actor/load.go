package actor

import (
	"errors"
	"fmt"
	"math"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/statechart"
)

// maxChain is how many overdue delays of one actor are fired in one
// transaction; the others follow in the next.
const maxChain = 1000

// load makes the tree of a locked actor available: from the cache if it is as
// old as the row, else from the stored snapshot. One that cannot be loaded is
// quarantined.
func (b *batch) load(t *turn) error {
	switch {
	case t.reason != nil:
		return &QuarantinedError{Ref: t.ref, Reason: *t.reason}
	case t.kind != nil:
		return nil // a neighbour has loaded it
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

// sealed returns why the actor cannot be opened here, if that is so. It is left as
// it is then.
func (t *turn) sealed() error {
	if t.stored != nil && t.stored.Sealed != nil {
		return t.stored.Sealed
	}
	return t.sealedTimer
}

// kindOf returns the version of the actor's type that this process runs it with.
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

// restore makes the tree from the stored snapshot, which must be as its
// checksum says.
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
		return b.damage(t, fmt.Sprintf("snapshot does not suit the machine: %v", err))
	}
	t.tree = tree
	return nil
}

// damage says what is wrong with a stored snapshot, "" if nothing is.
func (t *turn) damage(s *store.Snapshot) string {
	switch {
	case s.Sequence != t.row.Sequence:
		return fmt.Sprintf("snapshot is of step %d, the actor of step %d", s.Sequence, t.row.Sequence)
	case checksum([]byte(s.Snapshot)) != s.Checksum:
		return "snapshot does not match its checksum"
	}
	return ""
}

// damage quarantines an actor and tells of it after the commit.
func (b *batch) damage(t *turn, reason string) error {
	b.damages = append(b.damages, Damage{Ref: t.ref, Reason: reason})
	return t.quarantine(reason)
}

// wake fires the delays of a loaded actor that are overdue, and sends RESUME if
// the type asks for it and this process has just loaded the actor.
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

// horizon is the last of the due delays that were read: if there are more, one
// that is scheduled meanwhile must not overtake them.
func (t *turn) horizon() statechart.Timer {
	if len(t.due) == maxChain {
		return t.due[maxChain-1]
	}
	return statechart.Timer{Due: math.MaxInt64}
}

// system sends an event of the system, at the time of the transaction.
func (t *turn) system(event string) error {
	t.advance(t.wall())
	e := statechart.Event{Type: event}
	_, err := t.step(entry{kind: EntryEvent, event: e, caller: &Caller{Kind: System}}, func(now int64) (*statechart.Step, error) {
		return t.tree.Send(now, e)
	})
	return t.judge(err)
}

// fireNext fires the delay that was due first, with its due time as the time.
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
	return t.judge(err)
}

// judge decides about an error of a step that no caller waits for. A machine that
// exceeded a limit has failed its actor, which is recorded. An actor that refuses the
// step is quarantined.
func (t *turn) judge(err error) error {
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
