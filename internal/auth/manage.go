package auth

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/audit"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/store"
)

// Token is an API token, without its secret. Only its owner has the secret.
type Token struct {
	ID      string
	Name    string
	Role    Role
	Created time.Time
	// Used is the time of the last use, with a precision of some minutes. It is zero if the
	// token was never used.
	Used time.Time
	// Expires is the time at which the token expires. It is zero if the token does not expire.
	Expires time.Time
	// Revoked is the time at which the token was revoked. It is zero if it was not revoked.
	Revoked time.Time
}

// Issued is a new token. Its secret is returned only here.
type Issued struct {
	ID     string
	Secret string
}

// Create creates an API token that is valid for the given time. 0: until it is revoked.
func (a *Access) Create(ctx context.Context, name string, role Role, good time.Duration) (Issued, error) {
	if err := edge.Name("name", name); err != nil {
		return Issued{}, err
	}
	if role == Worker {
		return a.CreateWorker(ctx, name, WorkerScope{}, good)
	}
	if role < Viewer || role > Admin {
		return Issued{}, fault.Invalidf("role", "must be worker, viewer, operator or admin")
	}
	return a.issue(ctx, store.Token{Kind: store.APIToken, Name: name, Role: role.String()}, apiPrefix, nil, good)
}

// DefaultActorToken is the default validity of an actor token.
const DefaultActorToken = 24 * time.Hour

// CreateActor creates a token for one actor and one caller that is valid for the given
// time. 0: for DefaultActorToken. The caller kind must be client or service: system is
// reserved.
func (a *Access) CreateActor(ctx context.Context, scope ActorScope, good time.Duration) (Issued, error) {
	if err := edge.Name("actor type", scope.Type); err != nil {
		return Issued{}, err
	}
	if err := edge.Key("actor id", scope.ID); err != nil {
		return Issued{}, err
	}
	if scope.CallerKind != "client" && scope.CallerKind != "service" {
		return Issued{}, fault.Invalidf("caller kind", "must be client or service")
	}
	if err := edge.Key("caller id", scope.CallerID); err != nil {
		return Issued{}, err
	}
	edge.Default(&good, DefaultActorToken)
	t := store.Token{
		Kind: store.ActorToken, Name: scope.Type, Role: Anyone.String(),
		ActorType: &scope.Type, ActorID: &scope.ID, CallerKind: &scope.CallerKind, CallerID: &scope.CallerID,
	}
	return a.issue(ctx, t, actorPrefix, nil, good)
}

const (
	// keep is the retention of expired tokens.
	keep = 30 * 24 * time.Hour
	// purgeLimit is the maximum number of expired tokens that the creation of a token removes.
	// So there are never many of them.
	purgeLimit = 100
)

func (a *Access) issue(ctx context.Context, t store.Token, prefix string, idle *time.Duration, good time.Duration) (Issued, error) {
	if err := edge.Delay("lifetime", good); err != nil {
		return Issued{}, err
	}
	secret, err := newSecret(prefix, a.options.Random)
	if err != nil {
		return Issued{}, err
	}
	var lifetime *time.Duration
	if good > 0 {
		lifetime = &good
	}
	hash := hashOf(secret)
	t.ID, t.Hash = a.rt.NewID(), hash[:]
	audit.Of(ctx).Made(madeToken(t))
	insert := a.rt.Store.InsertToken(t, idle, lifetime, a.rt.Now())
	if err := a.change(ctx, insert, a.rt.Store.PurgeTokens(keep, purgeLimit, a.rt.Now())); err != nil {
		return Issued{}, fmt.Errorf("create token: %w", err)
	}
	return Issued{ID: t.ID, Secret: secret}, nil
}

// madeToken returns the audit log's description of a new token.
func madeToken(t store.Token) audit.Target {
	after, _ := json.Marshal(map[string]*string{ // only strings
		"kind": &t.Kind, "name": &t.Name, "role": &t.Role,
		"scope": t.Scope, "actor_type": t.ActorType, "actor_id": t.ActorID, "caller_kind": t.CallerKind, "caller_id": t.CallerID,
	})
	return audit.Target{Kind: "tokens", ID: t.ID, After: after}
}

// Tokens returns all API tokens, oldest first.
func (a *Access) Tokens(ctx context.Context) ([]Token, error) {
	var all []Token
	var broken error
	err := a.read(ctx, a.rt.Store.Tokens(func(t store.Token) {
		token := Token{ID: t.ID, Name: t.Name, Created: t.Created.UTC(), Used: edge.UTC(t.Used), Expires: edge.UTC(t.Expires), Revoked: edge.UTC(t.Revoked)}
		if err := token.Role.UnmarshalText([]byte(t.Role)); err != nil {
			broken = err
		}
		all = append(all, token)
	}))
	if err == nil {
		err = broken
	}
	if err != nil {
		return nil, fmt.Errorf("list tokens: %w", err)
	}
	return all, nil
}

// Revoke revokes an API token or an actor token immediately, and with it the sessions that
// were started with it.
func (a *Access) Revoke(ctx context.Context, id string) error {
	if len(id) != 36 || uuid.Validate(id) != nil {
		return &fault.NotFound{Kind: "token", ID: id}
	}
	if err := a.change(ctx, a.rt.Store.RevokeToken(id, a.rt.Now())); err != nil {
		return fmt.Errorf("revoke token: %w", err)
	}
	return nil
}
