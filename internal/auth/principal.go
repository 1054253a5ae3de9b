package auth

import (
	"encoding/json"
	"fmt"

	"github.com/perdure/perdure/internal/store"
)

// Role is a set of permissions. Each role except Worker includes the permissions of the roles
// before it.
type Role int

// The roles.
const (
	// Anyone needs no authentication.
	Anyone Role = iota
	// Worker may do work of the server over the worker protocol, within its scope, and nothing
	// else. The roles after it do not include it: see Route.Worker of package api.
	Worker
	// Viewer may read.
	Viewer
	// Operator may also start, signal, send, retry, cancel and move timers.
	Operator
	// Admin may also manage tokens, definitions, statecharts and nodes, and delete.
	Admin
)

var roleNames = map[Role]string{Anyone: "anyone", Worker: "worker", Viewer: "viewer", Operator: "operator", Admin: "admin"}

// String returns the role's name.
func (r Role) String() string { return roleNames[r] }

// MarshalText implements encoding.TextMarshaler.
func (r Role) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler. It refuses the role Anyone, which
// cannot be assigned.
func (r *Role) UnmarshalText(text []byte) error {
	for role, name := range roleNames {
		if name == string(text) && role != Anyone {
			*r = role
			return nil
		}
	}
	return fmt.Errorf("role must be worker, viewer, operator or admin, got %q", text)
}

// ActorScope is the one actor, and the caller, that a token is for.
type ActorScope struct {
	// Type and ID identify the actor.
	Type, ID string
	// CallerKind is client or service. CallerID identifies the caller among them.
	CallerKind, CallerID string
}

// Principal is the sender of a request.
type Principal struct {
	// Name identifies the principal, in logs and for Idempotency-Keys.
	Name string
	// Label is the readable name of the principal: the name of its token.
	Label string
	Role  Role
	// Actor is set for an actor token, whose role is Anyone. The token opens only the routes
	// of that actor.
	Actor *ActorScope
	// Scope limits what a principal with the role Worker may serve. Nil: everything.
	Scope *WorkerScope
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
	if t.Scope != nil && p.Role == Worker {
		if err := json.Unmarshal([]byte(*t.Scope), &p.Scope); err != nil {
			return Principal{}, fmt.Errorf("read scope of token: %w", err)
		}
	}
	return p, nil
}
