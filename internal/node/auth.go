package node

import (
	"errors"
	"net/http"

	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/server"
)

// authority lets the server ask who sends a request.
type authority struct{ access *auth.Access }

// Authenticate implements server.Auth.
func (a authority) Authenticate(r *http.Request) (server.Principal, error) {
	p, err := a.access.Authenticate(r)
	if errors.Is(err, auth.ErrUnauthenticated) {
		return server.Principal{}, server.ErrUnauthenticated
	}
	if err != nil {
		return server.Principal{}, err
	}
	answer := server.Principal{Name: p.Name, Role: roles[p.Role]}
	if p.Actor != nil {
		scope := server.ActorScope{Type: p.Actor.Type, ID: p.Actor.ID, Caller: p.Actor.CallerID}
		answer.Actor = &scope
	}
	return answer, nil
}

var roles = map[auth.Role]server.AccessRole{auth.Viewer: server.Viewer, auth.Operator: server.Operator, auth.Admin: server.Admin}
