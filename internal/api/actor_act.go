package api

import (
	"context"
	"strings"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/actor"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/host"
)

// actOnActor is the input of a POST without a body to an actor.
type actOnActor struct {
	Keyed
	ByActor
	AsCaller
}

// AsCaller names the caller as which an operator acts on an actor.
type AsCaller struct {
	Caller string `query:"caller" maxLength:"300" doc:"Caller, for example client:ada or service:billing. Default: a service with the name of the API token."`
}

func (a *API) stopActor(ctx context.Context, in *actOnActor) (*Done[Acted], error) {
	return a.byOperator(ctx, in.Key, in.ByActor, in.AsCaller, nil, a.config.Actors.StopIn)
}

func (a *API) resumeActor(ctx context.Context, in *actOnActor) (*Done[Acted], error) {
	return a.byOperator(ctx, in.Key, in.ByActor, in.AsCaller, nil, a.config.Actors.ResumeIn)
}

// ActorReset names the transition to which an actor is reset.
type ActorReset struct {
	Step int64 `json:"step,omitempty" minimum:"0" maximum:"9007199254740991" doc:"Number of a transition in the log. Default: the last transition that can be computed from the log."`
}

type resetActorInput struct {
	Keyed
	ByActor
	AsCaller
	Body ActorReset
}

func (a *API) resetActor(ctx context.Context, in *resetActorInput) (*Done[Acted], error) {
	return a.byOperator(ctx, in.Key, in.ByActor, in.AsCaller, in.Body, func(tx *perdure.Tx, ref actor.Ref, by actor.Caller) error {
		return a.config.Actors.ResetIn(tx, ref, by, in.Body.Step)
	})
}

// byOperator acts on an actor as the caller that the request names, or as the token of the
// request.
func (a *API) byOperator(
	ctx context.Context, key string, in ByActor, as AsCaller, body any, act func(*perdure.Tx, actor.Ref, actor.Caller) error,
) (*Done[Acted], error) {
	by, err := callerOf(ctx, as.Caller)
	if err != nil {
		return nil, err
	}
	return effect(ctx, a, key, body, func(tx *perdure.Tx) (func() Acted, error) {
		return func() Acted { return Acted{in.ref().String()} }, act(tx, in.ref(), by)
	})
}

// ActorBulk requests an action on many actors.
type ActorBulk struct {
	Action string `json:"action" enum:"stop,resume"`
	Many[ActorMatch]
}

func (a *API) actOnActors(ctx context.Context, in *Posted[ActorBulk]) (*Done[BulkResult], error) {
	actors, err := choose(in.Body.Many, func(m ActorMatch) finder { return a.findActors(ctx, m) })
	if err != nil {
		return nil, err
	}
	act, err := a.onActor(ctx, in.Body.Action)
	if err != nil {
		return nil, err
	}
	return a.onEach(ctx, in.Key, in.Body, actors, act)
}

// onActor returns a function that stops or resumes the actor with an id of the form
// type/id.
func (a *API) onActor(ctx context.Context, action string) (func(*perdure.Tx, string) error, error) {
	by, err := callerOf(ctx, "")
	if err != nil {
		return nil, err
	}
	act := a.config.Actors.StopIn
	if action == "resume" {
		act = a.config.Actors.ResumeIn
	}
	return func(tx *perdure.Tx, id string) error {
		actorType, name, found := strings.Cut(id, "/")
		if !found {
			return host.In(tx).Fail(fault.Invalidf("actor", "must be <type>/<id>, got %q", id))
		}
		return act(tx, actor.Ref{Type: actorType, ID: name}, by)
	}, nil
}

// findActors returns the ids of a page of actors, in the form type/id.
func (a *API) findActors(ctx context.Context, m ActorMatch) finder {
	return func(cursor string, limit int) (ids []string, next string, err error) {
		rows, next, err := a.config.Actors.List(ctx, m.filter(), cursor, limit)
		for _, r := range rows {
			ids = append(ids, r.Ref.String())
		}
		return ids, next, err
	}
}
