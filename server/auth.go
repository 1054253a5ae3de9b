package server

import "github.com/perdure/perdure/internal/api"

// Auth says who sends a request. It fails with ErrUnauthenticated if the
// credentials are missing or not valid.
type Auth = api.Auth

// Principal is who sends a request, and what it may do.
type Principal = api.Principal

// ActorScope is the one actor, and the caller, that a token is for.
type ActorScope = api.ActorScope

// AccessRole is what somebody may do.
type AccessRole = api.Role

// The roles of principals.
const (
	Viewer   = api.Viewer
	Operator = api.Operator
	Admin    = api.Admin
)

// ErrUnauthenticated is the error of an Auth for bad credentials.
var ErrUnauthenticated = api.ErrUnauthenticated
