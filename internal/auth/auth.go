// Package auth authenticates the senders of requests and determines their permissions.
//
// There are three kinds of credentials: API tokens with a role, tokens that open one actor
// for one caller, and the sessions of browsers. All of them are random texts of which only
// a hash is stored. A reader of the database therefore cannot use them. Each credential can
// be revoked immediately. The response to an invalid credential does not reveal why it is
// invalid.
package auth

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/unit"
)

// ErrUnauthenticated reports that credentials are missing or not valid. It does not reveal
// which.
var ErrUnauthenticated = errors.New("no valid credentials")

// Options configure an Access. The zero value of every field is its default.
type Options struct {
	// Open makes requests from this host administrators until the first API token is created.
	// From then on they need a token permanently, even when all tokens have expired or were
	// revoked. The server sets it when it listens on loopback only. Default: false.
	Open bool
	// SecureCookies marks session cookies as for TLS only, even if the request came without
	// TLS. It is for servers behind a proxy that terminates TLS. Default: false.
	SecureCookies bool
	// SessionIdle is the time after which an unused session ends, at least 15 minutes.
	// Default: 12 hours.
	SessionIdle time.Duration
	// SessionMax is the maximum duration of a session. Default: 7 days.
	SessionMax time.Duration
	// Failures is the number of invalid credentials that an address may send in a row before
	// it has to wait. It may then send one more every FailureEvery. Default: 20.
	Failures int
	// FailureEvery is the interval at which an address may fail in the long run. Default: 3
	// seconds.
	FailureEvery time.Duration
	// Random is the source of random bytes for tokens. Default: the system's source.
	Random io.Reader
	// OnError receives background errors. Default: log them.
	OnError func(error)
}

// Access manages the credentials of an engine and checks the credentials of requests. It is
// safe for concurrent use.
type Access struct {
	eng     *perdure.Engine
	rt      *host.Runtime
	options Options
	limiter *limiter
	checks  checks
}

// New returns the Access of an engine.
func New(eng *perdure.Engine, options *Options) (*Access, error) {
	if eng == nil {
		return nil, fault.Invalidf("engine", "must not be nil")
	}
	rt := host.Of(eng)
	o := options.withDefaults()
	if o.SessionIdle < minIdle || o.SessionMax < o.SessionIdle || o.Failures < 1 || o.FailureEvery <= 0 {
		return nil, fault.Invalidf("auth.Options", "must have SessionIdle of at least %v, SessionMax of at least SessionIdle, Failures of at least 1 and a positive FailureEvery", minIdle)
	}
	return &Access{eng: eng, rt: rt, options: o, limiter: newLimiter(o.Failures, o.FailureEvery)}, nil
}

func (o *Options) withDefaults() Options {
	var options Options
	if o != nil {
		options = *o
	}
	edge.Default(&options.SessionIdle, 12*time.Hour)
	edge.Default(&options.SessionMax, 7*24*time.Hour)
	edge.Default(&options.Failures, 20)
	edge.Default(&options.FailureEvery, 3*time.Second)
	if options.Random == nil {
		options.Random = rand.Reader
	}
	if options.OnError == nil {
		options.OnError = func(err error) { slog.Error("credential check failed", "error", err) }
	}
	return options
}

// Authenticate returns the sender of a request. It fails with ErrUnauthenticated, with a
// *LimitedError for an address that failed too often, or with an error of the database.
func (a *Access) Authenticate(r *http.Request) (Principal, error) {
	secret, given := credential(r)
	if !given {
		return a.local(r.Context(), r)
	}
	t, err := a.verify(r, secret)
	if err != nil {
		return Principal{}, err
	}
	if t.Kind != kindOf(secret) { // cannot happen: a hash has only one kind
		return Principal{}, ErrUnauthenticated
	}
	return principal(t)
}

// verify returns the token of a secret if it is valid. An address that has sent too many
// invalid secrets can only use secrets that were valid before.
func (a *Access) verify(r *http.Request, secret string) (store.Token, error) {
	from, now := source(r), a.rt.Clock.Now()
	if !wellFormed(secret) {
		return store.Token{}, a.limiter.fail(from, now)
	}
	hash := hashOf(secret)
	if err := a.limiter.admit(from, hash, now); err != nil {
		return store.Token{}, err
	}
	t, good, err := a.find(r.Context(), hash)
	switch {
	case err != nil:
		return store.Token{}, err
	case !good:
		return store.Token{}, a.limiter.fail(from, now)
	}
	a.limiter.succeed(hash)
	a.touch(r.Context(), t)
	return t, nil
}

// find returns the token of a hash if it is valid now.
func (a *Access) find(ctx context.Context, hash [32]byte) (t store.Token, good bool, err error) {
	err = a.lookup(ctx, a.rt.Store.FindToken(hash[:], a.rt.Now(), func(row store.Token) {
		t, good = row, subtle.ConstantTimeCompare(row.Hash, hash[:]) == 1
	}))
	if err != nil {
		return store.Token{}, false, fmt.Errorf("look up token: %w", err)
	}
	return t, good, nil
}

const (
	// coarse is the precision of the time at which a token was last used.
	coarse  = 5 * time.Minute
	minIdle = 3 * coarse
)

// touch records the use of a token. An error does not fail the request.
func (a *Access) touch(ctx context.Context, t store.Token) {
	if t.Used != nil && a.rt.Clock.Now().Sub(*t.Used) < coarse {
		return
	}
	if err := a.write(ctx, a.rt.Store.TouchToken(t.ID, coarse, a.rt.Now())); err != nil {
		a.options.OnError(fmt.Errorf("record use of token: %w", err))
	}
}

func (a *Access) read(ctx context.Context, stmts ...sqldb.Stmt) error {
	return a.run(ctx, sqldb.Read, stmts)
}

// lookup reads one value. It repeats the read once if the database failed: the connection
// may have been closed while it was idle.
func (a *Access) lookup(ctx context.Context, stmt sqldb.Stmt) error {
	err := a.read(ctx, stmt)
	if (sqldb.IsTransient(err) || sqldb.IsUnavailable(err)) && ctx.Err() == nil {
		unit.Pause(ctx, 1)
		err = a.read(ctx, stmt)
	}
	return err
}

// change runs a change of an operator as a unit of work.
func (a *Access) change(ctx context.Context, stmts ...sqldb.Stmt) error {
	return a.eng.Update(ctx, func(tx *perdure.Tx) error { return host.In(tx).Attach(nil, stmts...) })
}

func (a *Access) write(ctx context.Context, stmts ...sqldb.Stmt) error {
	return a.run(ctx, sqldb.Write, stmts)
}

func (a *Access) run(ctx context.Context, access sqldb.Access, stmts []sqldb.Stmt) error {
	ctx, cancel := context.WithTimeout(ctx, a.rt.Timeout)
	defer cancel()
	return unit.Overtakable(ctx, a.rt.DB, func() error {
		return unit.Once(ctx, a.rt.DB, access, func(tx sqldb.Tx) error { return tx.Run(ctx, stmts...) })
	})
}
