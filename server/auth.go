package server

import (
	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/api"
	"github.com/perdure/perdure/internal/auth"
)

// Auth says who sends a request. It fails with ErrUnauthenticated if the
// credentials are missing or not valid.
type Auth = api.Auth

// Principal is who sends a request, and what it may do.
type Principal = auth.Principal

// ActorScope is the one actor, and the caller, that a token is for.
type ActorScope = auth.ActorScope

// AccessRole is what somebody may do.
type AccessRole = auth.Role

// The roles of principals.
const (
	Viewer   = auth.Viewer
	Operator = auth.Operator
	Admin    = auth.Admin
)

// ErrUnauthenticated is the error of an Auth for bad credentials.
var ErrUnauthenticated = auth.ErrUnauthenticated

// access returns who decides on requests, and who manages tokens: an Auth of the
// program's own does so itself.
func access(eng *perdure.Engine, own Auth) (Auth, *auth.Access, error) {
	if own != nil {
		access, _ := own.(*auth.Access)
		return own, access, nil
	}
	access, err := auth.New(eng, &auth.Options{Open: true})
	return access, access, err
}
