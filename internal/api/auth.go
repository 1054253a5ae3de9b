package api

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/perdure/perdure/internal/auth"
)

// Role is a set of permissions. Each role includes the permissions of the roles before it.
type Role = auth.Role

// The roles.
const (
	Anyone   = auth.Anyone
	Worker   = auth.Worker
	Viewer   = auth.Viewer
	Operator = auth.Operator
	Admin    = auth.Admin
)

// Principal is the sender of a request.
type Principal = auth.Principal

// ErrUnauthenticated is the error of Authenticate for credentials that are
// missing or not valid.
var ErrUnauthenticated = auth.ErrUnauthenticated

// Auth authenticates the sender of a request. It fails with ErrUnauthenticated, or with a
// *auth.LimitedError for a client that has to wait.
type Auth interface {
	Authenticate(*http.Request) (Principal, error)
}

// admit passes a request to its handler if its sender may use the route and its input is
// valid. It also sets the time limit of the request.
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
	leave, err := a.occupy(r, principal, route)
	if err != nil {
		writeProblem(w, a.problem(req, err))
		return
	}
	defer leave()
	if err := a.checkInput(w, r, hctx.Operation()); err != nil {
		writeProblem(w, a.problem(req, err))
		return
	}
	req.place(r)
	if route.Stream { // the limits of ordinary requests do not apply
		rc := http.NewResponseController(w)
		_, _ = rc.SetReadDeadline(time.Time{}), rc.SetWriteDeadline(time.Time{}) // fails if the connection has no deadlines
		next(hctx)
		return
	}
	ctx, cancel := context.WithTimeout(hctx.Context(), a.config.Timeout)
	defer cancel()
	next(huma.WithContext(hctx, ctx))
}

func (a *API) authenticate(r *http.Request, route Route) (Principal, error) {
	return route.orAnyone(a.config.Auth.Authenticate(r))
}

// orAnyone admits requests without a credential to a route that is open to all clients.
func (r Route) orAnyone(p Principal, err error) (Principal, error) {
	if err != nil && r.Role == Anyone && !r.Actor && errors.Is(err, ErrUnauthenticated) {
		return Principal{}, nil
	}
	return p, err
}

// admits returns the error for a principal who may not use the route.
func (r Route) admits(p Principal, req *http.Request) error {
	if p.Actor != nil {
		if r.Actor && req.PathValue("type") == p.Actor.Type && req.PathValue("id") == p.Actor.ID {
			return nil
		}
		if r.Actor { // for another actor, the token is not valid at all
			return ErrUnauthenticated
		}
		return errForbidden("an actor token is only for the routes of its actor")
	}
	if r.Worker && p.Role == Worker {
		return nil
	}
	if p.Role < r.Role {
		return errForbidden("the route requires the role " + r.Role.String())
	}
	return nil
}
