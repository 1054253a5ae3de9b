package actor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/statechart"
)

// history recomputes the states of an actor from its start or a checkpoint, and its log. The
// interpreter is deterministic, so each state must have the checksum in the log.
type history struct {
	ref      Ref
	kind     *kind
	tree     *statechart.Tree
	timers   []statechart.Timer
	from     int64 // the sequence of its start
	sequence int64
	at       int64 // the machine's last time, in milliseconds
	checksum string
}

// reader runs read statements.
type reader func(stmts ...sqldb.Stmt) error

// errBroken is returned if a log entry does not lead to the recorded state.
var errBroken = errors.New("log is broken")

// replay computes the state after a transition.
func (a *Actors) replay(read reader, k *kind, ref Ref, until int64) (*history, error) {
	h := &history{ref: ref, kind: k}
	if _, err := a.beginAt(read, h, until); err != nil {
		return nil, err
	}
	if err := a.follow(read, h, until); err != nil {
		return nil, err
	}
	return h, nil
}

// begin restores a checkpoint.
func (h *history) begin(c *store.Checkpoint) error {
	if checksum([]byte(c.Snapshot)) != c.Checksum {
		return fmt.Errorf("%w: checkpoint %d does not match its checksum", errBroken, c.Sequence)
	}
	if c.Machine != h.kind.options.Version {
		return &VersionError{Ref: h.ref, Has: c.Machine, Known: h.kind.options.Version}
	}
	tree, err := h.kind.machine.Restore([]byte(c.Snapshot))
	if err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(c.Timers), &h.timers); err != nil {
		return err
	}
	h.tree, h.from, h.sequence, h.checksum = tree, c.Sequence, c.Sequence, c.Checksum
	return nil
}

// apply applies the next log entry.
func (h *history) apply(e *store.ActorEntry) error {
	if e.Sequence != h.sequence+1 || h.tree == nil && entryKind(e.Kind) != EntryStart {
		return fmt.Errorf("%w: transition %d follows transition %d", errBroken, e.Sequence, h.sequence)
	}
	h.at = e.At.UnixMilli()
	step, err := h.step(e)
	if err != nil {
		return fmt.Errorf("%w: transition %d: %w", errBroken, e.Sequence, err)
	}
	h.take(step)
	snapshot, err := h.tree.Snapshot()
	if err != nil {
		return err
	}
	if h.checksum = checksum(snapshot); h.checksum != e.Checksum {
		return fmt.Errorf("%w: transition %d has another result", errBroken, e.Sequence)
	}
	h.sequence = e.Sequence
	return nil
}

func (h *history) step(e *store.ActorEntry) (*statechart.Step, error) {
	var generation int64
	if e.Generation != nil {
		generation = *e.Generation
	}
	path := value(e.Path)
	switch entryKind(e.Kind) {
	case EntryStart:
		return h.start(e)
	case EntryEvent:
		event, err := eventOf(e)
		if err != nil {
			return nil, err
		}
		return h.tree.Send(h.at, event)
	case EntryTimer, EntryFire:
		event, err := eventOf(e)
		if err != nil {
			return nil, err
		}
		h.timers = slices.DeleteFunc(h.timers, func(t statechart.Timer) bool { return alarmID(t) == value(e.Key) })
		return h.tree.Fire(h.at, statechart.Timer{Target: path, TargetGeneration: generation, Event: event})
	case EntryDone, EntryError:
		result, err := decoded([]byte(value(e.Event)))
		if err != nil {
			return nil, err
		}
		if entryKind(e.Kind) == EntryDone {
			return h.tree.Complete(h.at, path, generation, result)
		}
		return h.tree.Fail(h.at, path, generation, result)
	case EntryStop:
		return h.tree.Stop(h.at)
	case EntryMove, EntrySkip:
		return &statechart.Step{}, h.operated(e)
	case EntryResume:
		return &statechart.Step{}, nil
	case EntryLimit:
		return h.limit(e)
	case EntryMigrate, EntryImport, EntryFork, EntryReset: // each is a checkpoint
	}
	return nil, fmt.Errorf("%s cannot be replayed", e.Kind)
}

func (h *history) start(e *store.ActorEntry) (step *statechart.Step, err error) {
	var input any
	if e.Event != nil {
		if input, err = decoded([]byte(*e.Event)); err != nil {
			return nil, err
		}
	}
	h.tree, step, err = h.kind.machine.Start(h.at, input)
	return step, err
}

// limit repeats the failure of an actor whose machine exceeded a limit.
func (h *history) limit(e *store.ActorEntry) (*statechart.Step, error) {
	var cause struct {
		Error string `json:"error"`
	}
	if err := json.Unmarshal([]byte(value(e.Event)), &cause); err != nil {
		return nil, err
	}
	return h.tree.Abort(h.at, errors.New(cause.Error))
}

func eventOf(e *store.ActorEntry) (event statechart.Event, err error) {
	return event, json.Unmarshal([]byte(value(e.Event)), &event)
}

// operated repeats an operator's change of a timer.
func (h *history) operated(e *store.ActorEntry) error {
	var timer statechart.Timer
	if err := json.Unmarshal([]byte(value(e.Event)), &timer); err != nil {
		return err
	}
	if entryKind(e.Kind) == EntrySkip {
		h.timers = slices.DeleteFunc(h.timers, func(t statechart.Timer) bool { return t.Key() == timer.Key() })
		return nil
	}
	h.take(&statechart.Step{Timers: []statechart.TimerOp{{Kind: statechart.Schedule, Timer: timer}}})
	return nil
}

// take applies the timer operations of a transition to the pending timers.
func (h *history) take(step *statechart.Step) {
	if h.kind.options.DisableTimers {
		return
	}
	for _, o := range step.Timers {
		h.timers = slices.DeleteFunc(h.timers, func(t statechart.Timer) bool { return removes(o, t) })
		if o.Kind == statechart.Schedule {
			h.timers = append(h.timers, o.Timer)
		}
	}
	slices.SortFunc(h.timers, compareTimers)
}

// Replayed is the result of a replay.
type Replayed struct {
	// From is the transition after which the replay started: 0, or the transition of a
	// checkpoint. To is the last transition.
	From int64 `json:"from"`
	To   int64 `json:"to"`
	// Checksum is the checksum of the last snapshot.
	Checksum string `json:"checksum"`
}

// Replay recomputes the state of an actor from its log. It compares the checksum of every
// transition with the log, and the last checksum with the stored snapshot. Nothing is changed.
func (a *Actors) Replay(ctx context.Context, ref Ref) (Replayed, error) {
	record, h, err := a.historyOf(ctx, ref, 0)
	if err != nil {
		return Replayed{}, fmt.Errorf("replay actor: %w", err)
	}
	if h.checksum != value(record.Checksum) {
		return Replayed{}, fmt.Errorf("replay actor: %w: its result differs from the stored snapshot", errBroken)
	}
	return Replayed{From: h.from, To: h.sequence, Checksum: h.checksum}, nil
}

// historyOf replays an actor up to a transition; 0 means the last one.
func (a *Actors) historyOf(ctx context.Context, ref Ref, until int64) (*store.ActorRecord, *history, error) {
	record, err := a.record(ctx, ref)
	if err != nil {
		return nil, nil, err
	}
	if until == 0 {
		until = record.Sequence
	}
	if until < 1 || until > record.Sequence {
		return nil, nil, fault.Invalidf("step", "must be at most %d, got %d", record.Sequence, until)
	}
	k, err := a.version(ctx, ref.Type, record.Machine)
	if err != nil {
		return nil, nil, err
	}
	h, err := a.replay(func(stmts ...sqldb.Stmt) error { return a.read(ctx, stmts...) }, k, ref, until)
	return record, h, err
}

// ViewAt returns what a caller saw of an actor after a transition, as long as the log has that
// transition.
func (a *Actors) ViewAt(ctx context.Context, ref Ref, caller Caller, version int64) (View, error) {
	if err := caller.check(); err != nil {
		return View{}, err
	}
	_, h, err := a.historyOf(ctx, ref, version)
	if err != nil {
		return View{}, fmt.Errorf("read actor: %w", err)
	}
	return viewOf(ref, h.sequence, h.tree.State(), caller), nil
}
