package actor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/statechart"
)

// SpawnOptions configure one spawn. The zero value of every field is its
// default.
type SpawnOptions struct {
	// IfAbsent returns the existing actor of this name instead of a *fault.Duplicate. Default:
	// false.
	IfAbsent bool
}

// Receipt is the result of a spawn or an event.
type Receipt struct {
	Ref Ref `json:"actor"`
	// Sequence is the number of the transition, which is the version of the actor's state.
	Sequence int64 `json:"version"`
	// Created is true if the actor is new.
	Created bool `json:"created,omitempty"`
	// Duplicate is true if the event with this key was handled before, in the transition
	// Sequence.
	Duplicate bool `json:"duplicate,omitempty"`
	// Dropped is true if the actor had finished. Nothing happened.
	Dropped bool `json:"dropped,omitempty"`
	// View is the caller's current view of the actor.
	View View `json:"snapshot"`
	// Output contains the emitted events and log messages of the transition.
	Output Output `json:"output"`
}

// Output contains the events that actors emitted and the messages that they logged in a
// transition.
type Output struct {
	Emitted []statechart.Emitted `json:"emitted,omitempty"`
	Logs    []statechart.Log     `json:"logs,omitempty"`
}

// Spawn creates an actor and starts its machine with the input, a JSON value. An empty id is
// replaced by a new one. If the input is an object or nil, and the caller is a client or a
// service, the machine finds the caller in input.caller.
func (a *Actors) Spawn(ctx context.Context, ref Ref, caller Caller, input any, options *SpawnOptions) (Receipt, error) {
	s, err := a.newSpawn(ctx, ref, caller, input, options)
	if err == nil {
		err = a.spawn(ctx, func(j *job) error { return a.commit(ctx, j) }, s)
	}
	if err != nil {
		return Receipt{}, fmt.Errorf("spawn actor: %w", bare(err))
	}
	return s.receipt, nil
}

// SpawnIn is Spawn as a part of a unit of work. An error fails the unit.
func (a *Actors) SpawnIn(tx *perdure.Tx, ref Ref, caller Caller, input any, options *SpawnOptions) (Receipt, error) {
	s, err := a.newSpawn(tx.Context(), ref, caller, input, options)
	if err == nil {
		err = a.spawn(tx.Context(), func(j *job) error { return a.within(tx, j) }, s)
	}
	if err != nil {
		return Receipt{}, host.In(tx).Fail(fmt.Errorf("spawn actor: %w", bare(err)))
	}
	return s.receipt, nil
}

// spawn spawns an actor. If Options.Legacy has an actor of this name, it is imported instead.
// An existing actor is not looked up in Options.Legacy.
func (a *Actors) spawn(ctx context.Context, do func(*job) error, s *spawning) error {
	if a.options.Legacy == nil {
		return do(s.job())
	}
	_, err := a.record(ctx, s.ref)
	var missing *fault.NotFound
	if errors.As(err, &missing) {
		_, err = a.importActor(ctx, s.ref, do)
	}
	if err != nil {
		return err
	}
	return do(s.job())
}

// spawning is the job of creating an actor.
type spawning struct {
	actors  *Actors
	ref     Ref
	caller  Caller
	kind    *kind
	input   any
	raw     *string
	origin  string
	options SpawnOptions
	receipt Receipt
}

func (a *Actors) newSpawn(ctx context.Context, ref Ref, caller Caller, input any, options *SpawnOptions) (*spawning, error) {
	if ref.ID == "" {
		ref.ID = a.rt.NewID()
	}
	if err := ref.check(); err != nil {
		return nil, err
	}
	if err := caller.check(); err != nil {
		return nil, err
	}
	k, err := a.newest(ctx, ref.Type)
	if err != nil {
		return nil, err
	}
	s := &spawning{actors: a, ref: ref, caller: caller, kind: k, origin: "spawn"}
	if options != nil {
		s.options = *options
	}
	return s, s.prepare(input)
}

// prepare checks the input and puts the caller into it.
func (s *spawning) prepare(input any) error {
	raw, err := edge.Marshal("input", input, s.kind.options.MaxEvent)
	if err != nil {
		return err
	}
	if s.input, err = decoded(raw); err != nil {
		return fault.Invalidf("input", "%v", err)
	}
	switch object := s.input.(type) {
	case nil:
		if s.caller.Kind != System {
			s.input = s.caller.mark(nil)
		}
	case map[string]any:
		s.input = s.caller.mark(object)
	}
	if s.input != nil {
		s.raw = text(s.input)
	}
	return nil
}

// decoded decodes JSON to the canonical values of machines.
func decoded(raw []byte) (any, error) { return statechart.Canonical(json.RawMessage(raw)) }

func (s *spawning) job() *job {
	return &job{ref: s.ref, run: s.run, spawn: &store.NewActor{
		ActorRef: s.ref.stored(), Incarnation: s.actors.rt.NewID(), Machine: s.kind.options.Version, Origin: s.origin,
		CallerKind: string(s.caller.Kind), CallerID: s.caller.ID, Input: s.raw,
	}}
}

func (s *spawning) run(t *turn) error {
	s.receipt = Receipt{Ref: s.ref}
	if t.sequence > 0 {
		if !s.options.IfAbsent {
			return exists(s.ref)
		}
		return s.receipt.fill(t, s.caller)
	}
	step, err := t.start(s.input, s.caller)
	if err != nil {
		return err
	}
	if t.kind.options.SystemEvents && t.tree.Status() == statechart.Active {
		if err := t.system(EventInitialize); err != nil {
			return err
		}
	}
	s.receipt.Created, s.receipt.Output = true, Output{Emitted: step.Emitted, Logs: step.Logs}
	return s.receipt.fill(t, s.caller)
}

// start starts the machine of a new actor.
func (t *turn) start(input any, caller Caller) (*statechart.Step, error) {
	t.advance(t.nowMillis())
	e := entry{kind: EntryStart, event: input, caller: &caller}
	return t.step(e, func(now int64) (step *statechart.Step, err error) {
		t.tree, step, err = t.kind.machine.Start(now, input)
		return step, err
	})
}

// fill completes a receipt with the state that the actor has reached.
func (r *Receipt) fill(t *turn, caller Caller) error {
	if r.Sequence == 0 {
		r.Sequence = t.sequence
	}
	r.View = viewOf(t.ref, t.sequence, t.tree.State(), caller)
	return nil
}

// bare removes the index of the statement, which is meaningless to the caller.
func bare(err error) error {
	if s, ok := err.(*sqldb.StmtError); ok { //nolint:errorlint // only the outermost layer is ours
		return s.Err
	}
	return err
}
