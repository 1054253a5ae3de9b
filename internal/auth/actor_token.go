package auth

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/store"
)

// ActorToken is an actor token, without its secret.
type ActorToken struct {
	ID string
	// Scope is the actor, and the caller as which the holder of the token acts.
	Scope   ActorScope
	Created time.Time
	// Used is the time of the last use, with a precision of some minutes. It is zero if the
	// token was never used.
	Used time.Time
	// Expires is the time at which the token expires.
	Expires time.Time
	// Revoked is the time at which the token was revoked. It is zero if it was not revoked.
	Revoked time.Time
}

// ActorTokens returns up to limit tokens of an actor, or of all actors if both the type and
// the id are empty, newest first. cursor is the cursor of the previous page, "" for the
// first page. next is empty after the last page.
func (a *Access) ActorTokens(ctx context.Context, actorType, actorID, cursor string, limit int) (tokens []ActorToken, next string, err error) {
	if limit < 1 {
		return nil, "", fault.Invalidf("limit", "must be at least 1")
	}
	if (actorType == "") != (actorID == "") {
		return nil, "", fault.Invalidf("actor", "must have a type and an id")
	}
	if cursor != "" && (len(cursor) != 36 || uuid.Validate(cursor) != nil) {
		return nil, "", fault.Invalidf("cursor", "is malformed")
	}
	ref := store.ActorRef{Type: actorType, ID: actorID}
	err = a.read(ctx, a.rt.Store.ActorTokens(ref, cursor, limit+1, func(t store.Token) {
		tokens = append(tokens, ActorToken{
			ID: t.ID, Scope: scopeOf(t), Created: t.Created.UTC(), Used: edge.UTC(t.Used), Expires: edge.UTC(t.Expires), Revoked: edge.UTC(t.Revoked),
		})
	}))
	if err != nil {
		return nil, "", fmt.Errorf("list tokens of actors: %w", err)
	}
	if len(tokens) > limit {
		tokens = tokens[:limit]
		next = tokens[limit-1].ID
	}
	return tokens, next, nil
}

// scopeOf returns the scope of an actor token.
func scopeOf(t store.Token) ActorScope {
	return ActorScope{Type: *t.ActorType, ID: *t.ActorID, CallerKind: *t.CallerKind, CallerID: *t.CallerID}
}
