package actor

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/effect"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/statechart"
)

// Record is an actor as it is stored. It is for callers that may see everything.
type Record struct {
	Ref    Ref    `json:"actor"`
	Status Status `json:"status"`
	// Machine is the version of the machine. Version is the number of transitions.
	Machine int64 `json:"machine"`
	Version int64 `json:"version"`
	// Value is XState's state value.
	Value json.RawMessage `json:"value,omitempty"`
	// Origin is spawn, import or fork.
	Origin string `json:"origin"`
	// Caller is the caller that spawned the actor. Input is the input of the spawn.
	Caller Caller          `json:"caller"`
	Input  json.RawMessage `json:"input,omitempty"`
	// Reason is the reason of the quarantine.
	Reason  string    `json:"reason,omitempty"`
	Created time.Time `json:"created"`
	// Updated is the time of the last transition.
	Updated time.Time `json:"updated"`
	// Snapshot and Checksum are the state after the last transition. They are omitted from
	// lists.
	Snapshot json.RawMessage `json:"snapshot,omitempty"`
	Checksum string          `json:"checksum,omitempty"`
	// Unit is the unit id that the hooks of the actor's effects and invocations share.
	Unit string `json:"unit"`
}

// Filter restricts a List. Zero fields match every actor.
type Filter struct {
	Type     string
	Statuses []Status
	// State is the path of an active state: "paid" or "open.waiting".
	State string
}

const (
	// DefaultLimit is the default page size of lists.
	DefaultLimit = 50
	// MaxLimit is the maximum page size of lists.
	MaxLimit = 1000
)

// List returns actors, newest first, and the cursor of the next page, which is empty after the
// last page. A page may be short or empty and still have a next page: if a filter matches few
// of many actors, List scans for a bounded time.
func (a *Admin) List(ctx context.Context, f Filter, cursor string, limit int) ([]Record, string, error) {
	limit, err := edge.Limit("limit", limit, DefaultLimit, MaxLimit)
	if err != nil {
		return nil, "", err
	}
	filter, err := f.stored(cursor)
	if err != nil {
		return nil, "", err
	}
	var records []Record
	more, err := store.Fill(a.rt.Clock.Now, limit+1, func(want int) (int, bool, error) {
		found, more, err := a.stretch(ctx, &filter, want)
		records = append(records, found...)
		return len(found), more, err
	})
	switch {
	case err != nil:
		return nil, "", fmt.Errorf("list actors: %w", err)
	case len(records) > limit:
		last := records[limit-1]
		return records[:limit], encodeCursor(store.ActorPlace{Created: last.Created, ActorRef: last.Ref.stored()}), nil
	case more:
		return records, encodeCursor(filter.Before), nil
	}
	return records, "", nil
}

// stretch reads the next range of a list and moves the filter behind it.
func (a *Admin) stretch(ctx context.Context, f *store.ActorFilter, want int) (records []Record, more bool, err error) {
	f.Limit, f.Last = want, store.ActorPlace{}
	if end := a.rt.Store.ActorStretch(*f, func(p store.ActorPlace) { f.Last, more = p, true }); len(end) > 0 {
		if err := a.read(ctx, end...); err != nil {
			return nil, false, err
		}
	}
	err = a.read(ctx, a.rt.Store.ListActors(*f, func(r store.ActorRecord) { records = append(records, recordOf(&r)) }))
	f.Before = f.Last
	return records, more, err
}

func (f Filter) stored(cursor string) (store.ActorFilter, error) {
	stored := store.ActorFilter{Type: f.Type, State: f.State}
	for _, s := range f.Statuses {
		if err := edge.OneOf("status", s, Statuses); err != nil {
			return stored, err
		}
		stored.Statuses = append(stored.Statuses, string(s))
	}
	for field, text := range map[string]string{"type": f.Type, "state": f.State} {
		if err := edge.Text(field, text, edge.MaxKey); err != nil {
			return stored, err
		}
	}
	if cursor == "" {
		return stored, nil
	}
	var err error
	stored.Before, err = decodeCursor(cursor)
	return stored, err
}

// A cursor encodes the position of the last row of a page.
func encodeCursor(p store.ActorPlace) string {
	place := strings.Join([]string{strconv.FormatInt(p.Created.UnixMicro(), 10), p.Type, p.ID}, "\n")
	return base64.RawURLEncoding.EncodeToString([]byte(place))
}

func decodeCursor(cursor string) (store.ActorPlace, error) {
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	parts := strings.SplitN(string(raw), "\n", 3)
	if err != nil || len(parts) != 3 {
		return store.ActorPlace{}, fault.Invalidf("cursor", "is malformed")
	}
	micros, err := strconv.ParseInt(parts[0], 10, 64)
	ref := Ref{Type: parts[1], ID: parts[2]}
	if err != nil || ref.check() != nil {
		return store.ActorPlace{}, fault.Invalidf("cursor", "is malformed")
	}
	return store.ActorPlace{Created: time.UnixMicro(micros).UTC(), ActorRef: ref.stored()}, nil
}

// Get returns an actor with all its stored data, or a *fault.NotFound.
func (a *Admin) Get(ctx context.Context, ref Ref) (Record, error) {
	record, err := a.record(ctx, ref)
	if err != nil {
		return Record{}, fmt.Errorf("get actor: %w", err)
	}
	return recordOf(record), nil
}

// State returns the whole state of an actor, including its children, as its machine presents
// it. The status of a quarantined actor is Quarantined, and its error is the reason. If its
// snapshot is damaged, State returns a *QuarantinedError.
func (a *Actors) State(ctx context.Context, ref Ref) (statechart.State, error) {
	record, err := a.record(ctx, ref)
	if err != nil {
		return statechart.State{}, fmt.Errorf("get actor: %w", err)
	}
	k, err := a.version(ctx, ref.Type, record.Machine)
	if err != nil {
		return statechart.State{}, fmt.Errorf("get actor: %w", err)
	}
	snapshot := []byte(value(record.Snapshot))
	quarantined := Status(record.Status) == Quarantined
	tree, err := k.machine.Restore(snapshot)
	if quarantined && (err != nil || checksum(snapshot) != value(record.Checksum)) {
		err = &QuarantinedError{Ref: ref, Reason: value(record.Reason)}
	}
	if err != nil {
		return statechart.State{}, fmt.Errorf("get actor: %w", err)
	}
	state := tree.State()
	if quarantined {
		state.Status, state.Error = statechart.Status(Quarantined), map[string]any{"$error": value(record.Reason)}
	}
	return state, nil
}

func recordOf(r *store.ActorRecord) Record {
	return Record{
		Ref: refOf(r.ActorRef), Status: Status(r.Status), Machine: r.Machine, Version: r.Sequence, Value: raw(r.Value), Origin: r.Origin,
		Caller: Caller{Kind: CallerKind(r.CallerKind), ID: r.CallerID}, Input: raw(r.Input), Reason: value(r.Reason),
		Created: r.Created.UTC(), Updated: r.Updated.UTC(), Snapshot: raw(r.Snapshot), Checksum: value(r.Checksum), Unit: r.Incarnation,
	}
}

func raw(s *string) json.RawMessage {
	if s == nil {
		return nil
	}
	return json.RawMessage(*s)
}

func (t *turn) stop(by Caller) error {
	if t.status != Active {
		return finished(t.ref, t.status)
	}
	t.advance(t.nowMillis())
	_, err := t.step(entry{kind: EntryStop, caller: &by}, func(now int64) (*statechart.Step, error) { return t.tree.Stop(now) })
	return err
}

func (b *batch) resume(t *turn, by Caller) error {
	if t.status != Quarantined {
		return &perdure.StateError{Kind: "actor", ID: t.ref.String(), Status: string(t.status), Finished: t.status != Active}
	}
	t.status = Active // so that load accepts it; the transition sets the status
	if err := b.load(t); err != nil {
		return err
	}
	_, err := t.step(entry{kind: EntryResume, caller: &by}, func(int64) (*statechart.Step, error) { return &statechart.Step{}, nil })
	return err
}

func (b *batch) delete(t *turn) error {
	if k, err := b.kindOf(t); err == nil && t.row.Sequence > 0 {
		t.kind = k
		if err := b.stopTasks(t); err != nil {
			return err
		}
	}
	if err := b.run(b.actors.rt.Store.DeleteActor(t.ref.stored())...); err != nil {
		return err
	}
	delete(b.turns, t.ref)
	b.order = slices.DeleteFunc(b.order, func(other *turn) bool { return other == t })
	return nil
}

// stopTasks cancels the invocations of an actor if the actor can be read.
func (b *batch) stopTasks(t *turn) error {
	stored, err := b.stored(t.ref)
	if err != nil {
		return err
	}
	tree, err := t.kind.machine.Restore([]byte(stored.Snapshot))
	if err != nil {
		return nil // their results will be ignored
	}
	var ids []string
	for _, o := range tree.Pending() {
		ids = append(ids, t.hookID(o.Generation))
	}
	return effect.Stop(b.run, b.actors.rt.Store, ids, b.actors.rt.Now())
}
