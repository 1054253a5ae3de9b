package server

import (
	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/api"
	"github.com/perdure/perdure/internal/auth"
)

// Auth authenticates the sender of a request. It fails with ErrUnauthenticated if the
// credentials are missing or not valid.
type Auth = api.Auth

// Principal is the sender of a request and its permissions.
type Principal = auth.Principal

// ActorScope is the one actor, and the caller, that a token is for.
type ActorScope = auth.ActorScope

// AccessRole is the set of permissions of a principal.
type AccessRole = auth.Role

// The roles of principals.
const (
	Viewer   = auth.Viewer
	Operator = auth.Operator
	Admin    = auth.Admin
)

// ErrUnauthenticated is the error of an Auth for bad credentials.
var ErrUnauthenticated = auth.ErrUnauthenticated

// access returns the Auth that decides on requests and the Access that manages API tokens.
// The Access is nil if the program's own Auth is not an *auth.Access.
func access(eng *perdure.Engine, own Auth) (Auth, *auth.Access, error) {
	if own != nil {
		access, _ := own.(*auth.Access)
		return own, access, nil
	}
	access, err := auth.New(eng, &auth.Options{Open: true})
	return access, access, err
}
