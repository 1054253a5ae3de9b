package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
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

// UnmarshalText implements encoding.TextUnmarshaler.
func (r *Role) UnmarshalText(text []byte) error {
	for role, name := range roleNames {
		if name == string(text) && role != Anyone {
			*r = role
			return nil
		}
	}
	return fmt.Errorf("role %q is unknown", text)
}

// ActorScope is the one actor, and the caller, that a token is for.
type ActorScope struct{ Type, ID, Caller string }

// Principal is who sends a request.
type Principal struct {
	// Name tells principals apart, in logs and for Idempotency-Keys.
	Name string
	Role Role
	// Actor is set for the token of an actor, whose role is Anyone: it opens the
	// routes of that actor and nothing else.
	Actor *ActorScope
}

// ErrUnauthenticated is the error of Authenticate for credentials that are
// missing or not valid.
var ErrUnauthenticated = errors.New("no valid credentials")

// Auth says who sends a request. It fails with ErrUnauthenticated, or with a
// *Problem if it has another answer for the client.
type Auth interface {
	Authenticate(*http.Request) (Principal, error)
}

// open lets everybody do everything.
type open struct{}

func (open) Authenticate(*http.Request) (Principal, error) {
	return Principal{Name: "local", Role: Admin}, nil
}

// admit lets a request pass to its handler if its sender may use the route, and
// bounds its time.
func (a *API) admit(hctx huma.Context, next func(huma.Context)) {
	r, w := humago.Unwrap(hctx)
	route, _ := hctx.Operation().Metadata["route"].(Route)
	req := requestOf(r.Context())
	req.route, req.status = route.ID, route.Status
	principal, err := a.authenticate(r, route)
	if err == nil {
		err = route.admits(principal, r)
	}
	if err != nil {
		writeProblem(w, a.problem(req, err))
		return
	}
	req.principal = principal
	if route.Stream {
		next(hctx)
		return
	}
	ctx, cancel := context.WithTimeout(hctx.Context(), a.config.Timeout)
	defer cancel()
	next(huma.WithContext(hctx, ctx))
}

func (a *API) authenticate(r *http.Request, route Route) (Principal, error) {
	auth := a.config.Auth
	if auth == nil {
		auth = open{}
	}
	principal, err := auth.Authenticate(r)
	if err != nil && route.Role == Anyone && !route.Actor && errors.Is(err, ErrUnauthenticated) {
		return Principal{}, nil
	}
	return principal, err
}

// admits returns the error for a principal who may not use the route.
func (r Route) admits(p Principal, req *http.Request) error {
	if p.Actor != nil {
		if r.Actor && req.PathValue("type") == p.Actor.Type && req.PathValue("id") == p.Actor.ID {
			return nil
		}
		return errForbidden("the token is for one actor")
	}
	if p.Role < r.Role {
		return errForbidden("the route needs the role " + r.Role.String())
	}
	return nil
}
