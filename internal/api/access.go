package api

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/auth"
)

// access returns the manager of API tokens and sessions.
func (a *API) access() (*auth.Access, error) {
	if a.config.Access == nil {
		return nil, NewProblem(http.StatusNotFound, codeNotFound, "this server does not manage API tokens and sessions")
	}
	return a.config.Access, nil
}

// Me is the sender of the request.
type Me struct {
	Name     string `json:"name"`
	Role     Role   `json:"role" enum:"worker,viewer,operator,admin,anyone"`
	Auth     string `json:"auth" enum:"open,token,session" doc:"Authentication method."`
	Version  string `json:"version" doc:"Version of the server."`
	Database string `json:"database" enum:"sqlite,postgres"`
	Dev      bool   `json:"dev" doc:"True if the server is for development."`
}

func (a *API) getMe(ctx context.Context, in *credentials) (*One[Me], error) {
	p := requestOf(ctx).principal
	me := Me{Name: p.Label, Role: p.Role, Auth: "open", Version: a.config.Version, Database: a.rt.DB.Dialect().Name, Dev: a.config.Dev}
	switch {
	case in.Authorization != "":
		me.Auth = "token"
	case in.Session != "":
		me.Auth = "session"
	}
	if me.Name == "" {
		me.Name = p.Name
	}
	return one(me), nil
}

// credentials are the credentials that a request can carry.
type credentials struct {
	Authorization string `header:"Authorization" hidden:"true"`
	Session       string `cookie:"perdure_session" hidden:"true"`
}

// Token is an API token, without its secret.
type Token struct {
	ID         string `json:"id"`
	Name       string `json:"name"`
	Role       Role   `json:"role" enum:"worker,viewer,operator,admin"`
	CreatedAt  Time   `json:"created_at"`
	LastUsedAt Time   `json:"last_used_at,omitzero" doc:"Precise to a few minutes."`
	ExpiresAt  Time   `json:"expires_at,omitzero"`
	RevokedAt  Time   `json:"revoked_at,omitzero"`
}

func showToken(t auth.Token) Token {
	return Token{
		ID: t.ID, Name: t.Name, Role: t.Role, CreatedAt: Time(t.Created), LastUsedAt: Time(t.Used), ExpiresAt: Time(t.Expires), RevokedAt: Time(t.Revoked),
	}
}

func (a *API) listTokens(ctx context.Context, _ *struct{}) (*List[Token], error) {
	access, err := a.access()
	if err != nil {
		return nil, err
	}
	all, err := access.Tokens(ctx)
	if err != nil {
		return nil, err
	}
	return page(requestOf(ctx), all, "", showToken), nil
}

// NewToken describes a token to be created.
type NewToken struct {
	Name string   `json:"name" minLength:"1" maxLength:"128"`
	Role string   `json:"role" enum:"worker,viewer,operator,admin"`
	Good Duration `json:"good,omitempty" doc:"Lifetime. Default: until it is revoked."`
	// Scope limits what a worker may serve.
	Scope *WorkerScope `json:"scope,omitempty" doc:"For the role worker: what it may serve. Default: everything."`
}

// WorkerScope limits what a worker may serve. An empty list allows everything. A trailing * matches
// all names with that prefix.
type WorkerScope struct {
	Kinds  []string `json:"kinds,omitempty" maxItems:"1000" enum:"step,hook,alarm,effect,task"`
	Queues []string `json:"queues,omitempty" maxItems:"1000" doc:"Queues of instances."`
	Names  []string `json:"names,omitempty" maxItems:"1000" doc:"Machines, hooks with their namespace (shop/mail), types of alarms and of actors."`
}

// Issued is a new token.
type Issued struct {
	ID    string `json:"id"`
	Token string `json:"token" doc:"Secret. Returned only in this response."`
}

// createToken creates a token. It takes no Idempotency-Key: the response contains a secret,
// which is stored nowhere.
func (a *API) createToken(ctx context.Context, in *struct{ Body NewToken }) (*One[Issued], error) {
	access, err := a.access()
	if err != nil {
		return nil, err
	}
	var role Role
	if err := role.UnmarshalText([]byte(in.Body.Role)); err != nil {
		return nil, err
	}
	if in.Body.Scope != nil && role != Worker {
		return nil, fault.Invalidf("scope", "is only for the role worker")
	}
	var issued auth.Issued
	if in.Body.Scope != nil {
		issued, err = access.CreateWorker(ctx, in.Body.Name, auth.WorkerScope(*in.Body.Scope), time.Duration(in.Body.Good))
	} else {
		issued, err = access.Create(ctx, in.Body.Name, role, time.Duration(in.Body.Good))
	}
	if err != nil {
		return nil, err
	}
	return one(Issued{ID: issued.ID, Token: issued.Secret}), nil
}

func (a *API) revokeToken(ctx context.Context, in *ByID) (*struct{}, error) {
	access, err := a.access()
	if err != nil {
		return nil, err
	}
	return nil, access.Revoke(ctx, in.ID)
}

// Raw gives a handler the unparsed request.
type Raw struct{ request *http.Request }

// Resolve implements huma.Resolver.
func (r *Raw) Resolve(ctx huma.Context) []error {
	r.request, _ = humago.Unwrap(ctx)
	return nil
}

// sessionInput is the input of a request that starts a browser session.
type sessionInput struct {
	Raw
	Body struct {
		Token string `json:"token" maxLength:"256"`
	}
}

// Session is the response to the start of a session.
type Session struct {
	SetCookie http.Cookie `header:"Set-Cookie"`
	Body      struct {
		Name string `json:"name"`
		Role Role   `json:"role" enum:"worker,viewer,operator,admin"`
	}
}

func (a *API) beginSession(ctx context.Context, in *sessionInput) (*Session, error) {
	access, err := a.access()
	if err != nil {
		return nil, err
	}
	cookie, p, err := access.Login(in.request.WithContext(ctx), in.Body.Token)
	if err != nil {
		return nil, err
	}
	s := &Session{SetCookie: *cookie}
	s.Body.Name, s.Body.Role = p.Label, p.Role
	return s, nil
}

// SessionEnd is the response to the end of a session.
type SessionEnd struct {
	SetCookie http.Cookie `header:"Set-Cookie"`
}

func (a *API) endSession(ctx context.Context, in *Raw) (*SessionEnd, error) {
	access, err := a.access()
	if err != nil {
		return nil, err
	}
	actOf(ctx).on([]string{requestOf(ctx).principal.Name})
	cookie, err := access.Logout(in.request.WithContext(ctx))
	if err != nil {
		return nil, err
	}
	return &SessionEnd{SetCookie: *cookie}, nil
}
