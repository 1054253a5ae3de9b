package auth

import (
	"fmt"

	"github.com/perdure/perdure/internal/store"
)

// Role is what somebody may do. Each role may do all that the ones before it may.
type Role int

// The roles.
const (
	// Anyone needs no authentication.
	Anyone Role = iota
	// Viewer reads.
	Viewer
	// Operator also starts, signals, sends, retries, cancels and moves timers.
	Operator
	// Admin also manages tokens, definitions, machines and nodes, and deletes.
	Admin
)

var roleNames = map[Role]string{Anyone: "anyone", Viewer: "viewer", Operator: "operator", Admin: "admin"}

// String returns the role's name.
func (r Role) String() string { return roleNames[r] }

// MarshalText implements encoding.TextMarshaler.
func (r Role) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler. Nobody is given the role
// Anyone.
func (r *Role) UnmarshalText(text []byte) error {
	for role, name := range roleNames {
		if name == string(text) && role != Anyone {
			*r = role
			return nil
		}
	}
	return fmt.Errorf("role %q is unknown: viewer, operator and admin are possible", text)
}

// ActorScope is the one actor, and the caller, that a token is for.
type ActorScope struct {
	// Type and ID are the actor.
	Type, ID string
	// CallerKind is client or service, CallerID who of them.
	CallerKind, CallerID string
}

// Principal is who sends a request.
type Principal struct {
	// Name tells principals apart, in logs and for Idempotency-Keys.
	Name string
	// Label is what people call it: the name of its token.
	Label string
	Role  Role
	// Actor is set for the token of an actor, whose role is Anyone: it opens the
	// routes of that actor and nothing else.
	Actor *ActorScope
}

func principal(t store.Token) (Principal, error) {
	if t.Kind == store.ActorToken {
		scope := scopeOf(t)
		return Principal{Name: "token:" + t.ID, Label: scope.CallerKind + " " + scope.CallerID, Actor: &scope}, nil
	}
	p := Principal{Name: "token:" + t.ID, Label: t.Name}
	if t.Parent != nil {
		p.Name = "token:" + *t.Parent
	}
	if err := p.Role.UnmarshalText([]byte(t.Role)); err != nil {
		return Principal{}, fmt.Errorf("read token: %w", err)
	}
	return p, nil
}
