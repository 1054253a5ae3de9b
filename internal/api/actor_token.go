package api

import (
	"context"

	"github.com/perdure/perdure/internal/auth"
)

// ActorToken is an actor token, without its secret.
type ActorToken struct {
	ID    string `json:"id"`
	Actor struct {
		Type string `json:"type"`
		ID   string `json:"id"`
	} `json:"actor" doc:"Actor that the token gives access to."`
	Caller     ActorCaller `json:"caller" doc:"Caller that the token authenticates."`
	CreatedAt  Time        `json:"created_at"`
	LastUsedAt Time        `json:"last_used_at,omitzero" doc:"Precise to a few minutes."`
	ExpiresAt  Time        `json:"expires_at,omitzero"`
	RevokedAt  Time        `json:"revoked_at,omitzero"`
}

func showActorToken(t auth.ActorToken) ActorToken {
	shown := ActorToken{ID: t.ID, CreatedAt: Time(t.Created), LastUsedAt: Time(t.Used), ExpiresAt: Time(t.Expires), RevokedAt: Time(t.Revoked)}
	shown.Actor.Type, shown.Actor.ID = t.Scope.Type, t.Scope.ID
	shown.Caller.Type, shown.Caller.ID = t.Scope.CallerKind, t.Scope.CallerID
	return shown
}

// actorTokens returns a page of the tokens of an actor, or of all actors.
func (a *API) actorTokens(ctx context.Context, of ByActor, p Paging) (*List[ActorToken], error) {
	access, err := a.access()
	if err != nil {
		return nil, err
	}
	tokens, next, err := access.ActorTokens(ctx, of.Type, of.ID, p.Cursor, p.Limit)
	if err != nil {
		return nil, err
	}
	return page(requestOf(ctx), tokens, next, showActorToken), nil
}

func (a *API) listAllActorTokens(ctx context.Context, in *Paging) (*List[ActorToken], error) {
	return a.actorTokens(ctx, ByActor{}, *in)
}

type actorTokensInput struct {
	ByActor
	Paging
}

func (a *API) listActorTokens(ctx context.Context, in *actorTokensInput) (*List[ActorToken], error) {
	return a.actorTokens(ctx, in.ByActor, in.Paging)
}
