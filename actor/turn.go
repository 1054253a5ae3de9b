package actor

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/statechart"
)

// Status is the lifecycle status of an actor.
type Status string

// The statuses.
const (
	Active  Status = "active"
	Done    Status = "done"
	Failed  Status = "error"
	Stopped Status = "stopped"
	// Quarantined actors are suspended because they cannot be loaded or moved.
	Quarantined Status = "quarantined"
)

// Statuses lists all statuses.
var Statuses = []Status{Active, Done, Failed, Stopped, Quarantined}

// turn is an actor while a transaction has it locked: its tree, and the pending writes of its
// transitions.
type turn struct {
	batch *batch
	ref   Ref
	row   store.Actor
	found bool
	kind  *kind
	// tree is nil until the actor is loaded or started. fresh is true if it was read from the
	// database.
	tree   *statechart.Tree
	fresh  bool
	awake  bool // overdue timers have fired and RESUME was sent
	stored *store.Snapshot
	// sealedTimer is the error if a due timer could not be decrypted.
	sealedTimer error
	// damagedTimer is the reason if a due timer could not be read.
	damagedTimer string
	trace        *string // of the job that runs the transition

	sequence int64
	now      int64 // the machine's time, in milliseconds
	due      []statechart.Timer
	late     time.Duration // how long the first due timer was overdue when it was claimed

	reason   *string // of the quarantine
	failure  *string // of an actor whose status is error
	snapshot []byte
	checksum string
	value    string
	states   string
	status   Status
	timers   timerChanges
	entries  []store.ActorEntry
	keys     []store.ActorKey
	hooks    []store.NewHook
	stops    []string
	// repaired is true if the snapshot must be written although its transition is already
	// committed.
	repaired bool
	// checkpoint requests a checkpoint after the transitions.
	checkpoint bool
	cached     bool // the tree may be cached after the commit

	// location is the location of the actor's locked row, held are the locked rows of its due
	// timers, if they are known. reread is true if the due timers were read again. unchained
	// leaves timers that are scheduled and due in this transaction to the next one.
	location  string
	held      []heldRow
	reread    bool
	unchained bool
}

// entry is the log entry of a transition.
type entry struct {
	kind       EntryKind
	event      any
	caller     *Caller
	path       string
	generation int64
	key        string
	digest     string // of the event and its caller, if there is a key
	timer      string // the id of a timer
}

// nowMillis returns the time of the transaction in milliseconds. It is rounded up; rounded down, a
// timer would fire slightly early.
func (t *turn) nowMillis() int64 { return (t.row.Now.UnixMicro() + 999) / 1000 }

// overdue returns the time for which the first due timer has been due.
func (t *turn) overdue() time.Duration {
	if len(t.due) == 0 {
		return 0
	}
	return t.row.Now.Sub(timeOf(t.due[0].Due))
}

// advance moves the actor's time forward to ms. The time never goes back, even if clocks do.
func (t *turn) advance(ms int64) int64 {
	t.now = max(t.now, ms)
	return t.now
}

// step runs a transition and records its results. If call returns a *fault.Invalid, nothing has
// changed. After any other error the tree is as it was before the call.
func (t *turn) step(e entry, call func(now int64) (*statechart.Step, error)) (*statechart.Step, error) {
	step, err := call(t.now)
	if err != nil && isInvalid(err) || err == nil && step.Dropped {
		return step, err
	}
	if err == nil {
		err = t.record(e, step)
	}
	if err != nil {
		return nil, t.undo(e, err)
	}
	return step, nil
}

// undo restores the state before a transition that failed. If the machine exceeded a limit, the
// actor fails: its status becomes error, with the limit as the reason.
func (t *turn) undo(e entry, err error) error {
	if failed := t.reload(); failed != nil {
		return errors.Join(err, failed)
	}
	var limit *statechart.LimitError
	if !errors.As(err, &limit) || t.tree == nil {
		return err
	}
	step, failed := t.tree.Abort(t.now, limit)
	if failed == nil {
		failed = t.record(e.exceeded(limit), step)
	}
	if failed != nil {
		return errors.Join(err, failed)
	}
	return err
}

// exceeded returns the log entry of a transition that was stopped at a limit. Its event has the
// cause and the error.
func (e entry) exceeded(limit *statechart.LimitError) entry {
	e.event = map[string]any{"kind": e.kind, "event": e.event, "limit": limit.Limit, "error": limit.Error()}
	e.kind = EntryLimit
	return e
}

// record records the result of a transition.
func (t *turn) record(e entry, step *statechart.Step) error {
	raw, err := t.tree.Snapshot()
	if err != nil {
		return err
	}
	hooks, err := t.hooksOf(step)
	if err != nil {
		return err
	}
	t.recordState(raw)
	t.sequence++
	t.entries = append(t.entries, t.entry(e, step))
	if e.key != "" {
		t.keys = append(t.keys, store.ActorKey{ActorRef: t.ref.stored(), Key: e.key, Sequence: t.sequence, Created: t.row.Now, Digest: edge.Optional(e.digest)})
	}
	t.hooks = append(t.hooks, hooks...)
	t.take(step.Timers)
	return nil
}

// recordState records the state of the tree.
func (t *turn) recordState(raw []byte) {
	t.snapshot, t.checksum = raw, checksum(raw)
	state := t.tree.State()
	t.status, t.failure = Status(state.Status), nil
	if t.status == Failed {
		t.failure = new(failureText(state.Error))
	}
	value, _ := json.Marshal(state.Value) // strings and objects of them
	t.value, t.states = string(value), pathsOf(state.Value)
}

// failureText returns the error of a machine as text.
func failureText(v any) string {
	if thrown, ok := v.(map[string]any); ok {
		if text, ok := thrown["$error"].(string); ok && len(thrown) == 1 {
			return edge.Message(text)
		}
	}
	if s, ok := v.(string); ok {
		return edge.Message(s)
	}
	return edge.Message(*text(v))
}

func checksum(raw []byte) string {
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// pathsOf returns the paths of the active states. Each path is enclosed in line feeds.
func pathsOf(value any) string {
	var all []string
	var walk func(prefix string, v any)
	walk = func(prefix string, v any) {
		switch v := v.(type) {
		case string:
			all = append(all, prefix+v)
		case map[string]any:
			for key, below := range v {
				all = append(all, prefix+key)
				walk(prefix+key+".", below)
			}
		}
	}
	walk("", value)
	slices.Sort(all)
	return "\n" + strings.Join(all, "\n") + "\n"
}

func (t *turn) entry(e entry, step *statechart.Step) store.ActorEntry {
	stored := store.ActorEntry{
		ActorRef: t.ref.stored(), Sequence: t.sequence, Kind: string(e.kind), Value: new(t.value),
		Checksum: t.checksum, At: timeOf(t.now), Recorded: t.row.Now,
	}
	if e.event != nil {
		stored.Event = text(e.event)
	}
	if e.caller != nil {
		kind, id := string(e.caller.Kind), e.caller.ID
		stored.CallerKind, stored.CallerID = &kind, &id
	}
	if e.generation != 0 {
		path, generation := e.path, e.generation
		stored.Path, stored.Generation = &path, &generation
	}
	if key := e.key + e.timer; key != "" { // at most one of them is set
		stored.Key = &key
	}
	if said := (Output{Emitted: step.Emitted, Logs: step.Logs}); len(said.Emitted)+len(said.Logs) > 0 {
		stored.Said = text(said)
	}
	return stored
}

// text returns an internal value as JSON.
func text(v any) *string {
	raw, err := json.Marshal(v)
	if err != nil {
		raw = []byte("null") // cannot happen: v consists of canonical values
	}
	s := string(raw)
	return &s
}

// reload restores the state before the transition that failed.
func (t *turn) reload() error {
	raw := t.snapshot
	if raw == nil && t.row.Sequence > 0 {
		stored, err := t.batch.stored(t.ref)
		if err != nil {
			return err
		}
		raw = []byte(stored.Snapshot)
	}
	t.tree = nil
	if raw == nil {
		return nil // it did not exist before
	}
	tree, err := t.kind.machine.Restore(raw)
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	t.tree = tree
	return nil
}

// quarantine suspends the actor.
func (t *turn) quarantine(reason string) error {
	reason = edge.Message(reason)
	t.reason, t.tree, t.cached = &reason, nil, false
	return &QuarantinedError{Ref: t.ref, Reason: reason}
}

// moved reports whether the turn has changes to write.
func (t *turn) moved() bool { return len(t.entries) > 0 || t.reason != nil || t.repaired }
