package api

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/actor"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/statechart"
)

// Spawn describes an actor to be created.
type Spawn struct {
	Type     string          `json:"type" maxLength:"128"`
	ID       string          `json:"id,omitempty" maxLength:"256" doc:"Default: a new id."`
	Caller   *ActorCaller    `json:"caller,omitempty" doc:"Caller that spawns it. Default: a service with the name of the API token."`
	Input    json.RawMessage `json:"input,omitempty"`
	IfAbsent bool            `json:"if_absent,omitempty" doc:"Returns the existing actor if the id is already in use."`
}

// Receipt is the result of a spawn or an event.
type Receipt struct {
	Type      string          `json:"type"`
	ID        string          `json:"id"`
	Version   int64           `json:"version" doc:"Number of the transition."`
	Created   bool            `json:"created,omitempty"`
	Duplicate bool            `json:"duplicate,omitempty" doc:"True if an event with this key was already handled."`
	Dropped   bool            `json:"dropped,omitempty" doc:"True if the actor was finished and the event was dropped."`
	Snapshot  Snapshot        `json:"snapshot" doc:"Snapshot that the caller can see."`
	Output    json.RawMessage `json:"output" doc:"Events and logs that the transition emitted."`
}

func showReceipt(r actor.Receipt) Receipt {
	return Receipt{
		Type: r.Ref.Type, ID: r.Ref.ID, Version: r.Sequence, Created: r.Created, Duplicate: r.Duplicate, Dropped: r.Dropped,
		Snapshot: showSnapshot(r.View), Output: showOutput(r.Output),
	}
}

func (c *ActorCaller) text() string {
	if c == nil {
		return ""
	}
	return c.Type + ":" + c.ID
}

func (a *API) spawnActor(ctx context.Context, in *Posted[Spawn]) (*Done[Receipt], error) {
	b := in.Body
	caller, err := callerOf(ctx, b.Caller.text())
	if err != nil {
		return nil, err
	}
	var input any
	if b.Input != nil {
		input = b.Input
	}
	return effect(ctx, a, in.Key, b, func(tx *perdure.Tx) (func() Receipt, error) {
		r, err := a.config.Actors.SpawnIn(tx, actor.Ref{Type: b.Type, ID: b.ID}, caller, input, &actor.SpawnOptions{IfAbsent: b.IfAbsent})
		return func() Receipt { return showReceipt(r) }, err
	})
}

type sendInput struct {
	Keyed
	ByActor
	Caller string          `query:"caller" maxLength:"300" doc:"Caller, for example client:ada or service:billing. Default: a service with the name of the API token."`
	Once   string          `query:"key" maxLength:"512" doc:"Idempotency key of the event. The actor handles only the first event with a key, over any transport. A key that was used for another event is a conflict. Default: the Idempotency-Key."`
	Body   json.RawMessage `doc:"Event: an object with a type."`
}

// sendEvent sends an event to an actor. Without an Idempotency-Key the event may share its
// transaction with other events.
func (a *API) sendEvent(ctx context.Context, in *sendInput) (*Done[Receipt], error) {
	event, err := statechart.ParseEvent(in.Body)
	if err != nil {
		return nil, err
	}
	caller, err := callerOf(ctx, in.Caller)
	if err != nil {
		return nil, err
	}
	options := &actor.SendOptions{Key: cmp.Or(in.Once, in.Key)} // a socket has the same keys
	if in.Key == "" {
		r, err := a.config.Actors.Send(ctx, in.ref(), caller, event, options)
		if err != nil {
			return nil, err
		}
		return done(ctx, showReceipt(r)), nil
	}
	sent, err := effect(ctx, a, in.Key, in.Body, func(tx *perdure.Tx) (func() Receipt, error) {
		r, err := a.config.Actors.SendIn(tx, in.ref(), caller, event, options)
		return func() Receipt { return showReceipt(r) }, err
	})
	if is[*statechart.LimitError](err) { // the unit was rolled back, including the actor's failure
		_, err = a.config.Actors.Send(ctx, in.ref(), caller, event, options)
	}
	return sent, err
}

func (a *API) deleteActor(ctx context.Context, in *ByActor) (*struct{}, error) {
	return nil, a.config.Actors.Delete(ctx, in.ref())
}

// ActorTokenInput describes a token to be created for one actor and one caller.
type ActorTokenInput struct {
	Caller ActorCaller `json:"caller"`
	Good   Duration    `json:"good,omitempty" doc:"Lifetime. Default: 24h."`
}

type actorTokenInput struct {
	ByActor
	Body ActorTokenInput
}

// createActorToken creates a token for one actor. It takes no Idempotency-Key: the response
// contains a secret, which is stored nowhere.
func (a *API) createActorToken(ctx context.Context, in *actorTokenInput) (*One[Issued], error) {
	access, err := a.access()
	if err != nil {
		return nil, err
	}
	if in.Body.Caller.Type == string(actor.System) {
		return nil, NewProblem(http.StatusUnprocessableEntity, codeInvalid, "caller type \"system\" is reserved")
	}
	scope := auth.ActorScope{Type: in.Type, ID: in.ID, CallerKind: in.Body.Caller.Type, CallerID: in.Body.Caller.ID}
	issued, err := access.CreateActor(ctx, scope, time.Duration(in.Body.Good))
	if err != nil {
		return nil, err
	}
	return one(Issued{ID: issued.ID, Token: issued.Secret}), nil
}
