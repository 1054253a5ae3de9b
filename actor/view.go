package actor

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/statechart"
)

// View is a caller's view of an actor.
type View struct {
	Ref Ref `json:"actor"`
	// Version is the number of transitions of the actor.
	Version int64  `json:"version"`
	Status  Status `json:"status"`
	// Value is XState's state value.
	Value any `json:"value"`
	// Public is context.public. Private is the part of context.private under the caller's id.
	Public  any `json:"public"`
	Private any `json:"private"`
}

func viewOf(ref Ref, version int64, s statechart.State, c Caller) View {
	v := View{Ref: ref, Version: version, Status: Status(s.Status), Value: s.Value}
	v.setVisible(s.Context, c)
	return v
}

// setVisible sets the parts of a context that are visible to the caller. A missing part is an empty
// object.
func (v *View) setVisible(context map[string]any, c Caller) {
	v.Public, v.Private = map[string]any{}, map[string]any{}
	if public, has := context["public"]; has {
		v.Public = public
	}
	all, _ := context["private"].(map[string]any)
	if own, has := all[c.ID]; has && c.ID != "" {
		v.Private = own
	}
}

// Snapshot returns a caller's current view of an actor.
func (a *Actors) Snapshot(ctx context.Context, ref Ref, caller Caller) (View, error) {
	if err := caller.check(); err != nil {
		return View{}, err
	}
	view, _, err := a.snapshot(ctx, ref, caller)
	return view, err
}

// snapshot is Snapshot for a caller that was already checked. It also returns the incarnation,
// which is different for another actor of the same name.
func (a *Actors) snapshot(ctx context.Context, ref Ref, caller Caller) (View, string, error) {
	record, err := a.recordOrLegacy(ctx, ref)
	if err != nil {
		return View{}, "", fmt.Errorf("read actor: %w", err)
	}
	view, err := storedView(record, caller)
	if err != nil {
		return View{}, "", fmt.Errorf("read actor: %w", err)
	}
	return view, record.Incarnation, nil
}

func (a *Admin) record(ctx context.Context, ref Ref) (*store.ActorRecord, error) {
	if err := ref.find(); err != nil {
		return nil, err
	}
	var found *store.ActorRecord
	if err := a.read(ctx, a.rt.Store.GetActor(ref.stored(), func(r store.ActorRecord) { found = &r })); err != nil {
		return nil, err
	}
	if found == nil {
		return nil, notFound(ref)
	}
	return found, found.Sealed
}

// storedView reads the view from the stored snapshot, which it verifies. It does not need the
// machine.
func storedView(r *store.ActorRecord, caller Caller) (View, error) {
	ref := refOf(r.ActorRef)
	if r.Snapshot == nil || checksum([]byte(*r.Snapshot)) != *r.Checksum {
		return View{}, &QuarantinedError{Ref: ref, Reason: cmp.Or(value(r.Reason), "snapshot does not match its checksum")}
	}
	var s struct {
		Value   any            `json:"value"`
		Context map[string]any `json:"context"`
	}
	if err := json.Unmarshal([]byte(*r.Snapshot), &s); err != nil {
		return View{}, &QuarantinedError{Ref: ref, Reason: err.Error()}
	}
	v := View{Ref: ref, Version: r.Sequence, Status: Status(r.Status), Value: s.Value}
	v.setVisible(s.Context, caller)
	return v, nil
}
