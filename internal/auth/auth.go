// Package auth says who sends a request, and what they may do.
//
// There are three kinds of credentials: API tokens with a role, tokens that open
// one actor for one caller, and the sessions of browsers. All of them are random
// texts of which only a hash is stored, so whoever reads the database can use
// none, and each can be ended at once. Whatever is wrong with a credential, the
// answer is the same.
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
)

// ErrUnauthenticated says that credentials are missing or not good. It does not
// say which.
var ErrUnauthenticated = errors.New("no valid credentials")

// Options configure an Access. The zero value of every field is its default.
type Options struct {
	// Open makes requests from this machine administrators until the first API token
	// is created. After that they need a token for good, also when all tokens have
	// expired or were revoked. The server sets it when it listens on loopback only.
	// Default: false.
	Open bool
	// SecureCookies marks the cookies of sessions as for TLS only even where the
	// request came without, because a proxy in front ends TLS. Default: false.
	SecureCookies bool
	// SessionIdle ends a session that was not used for so long, at least a
	// quarter of an hour. Default: 12 hours.
	SessionIdle time.Duration
	// SessionMax ends every session after so long. Default: 7 days.
	SessionMax time.Duration
	// Failures is how many bad credentials an address may send in a row before it
	// has to wait; it may then send one more every FailureEvery. Default: 20.
	Failures int
	// FailureEvery is how often an address may fail in the long run.
	// Default: 3 seconds.
	FailureEvery time.Duration
	// Random is where tokens come from. Default: the system's source.
	Random io.Reader
	// OnError receives errors that have no caller. Default: log them.
	OnError func(error)
}

// Access manages the credentials of an engine and checks those of requests. It
// is safe for concurrent use.
type Access struct {
	eng     *perdure.Engine
	rt      *host.Runtime
	options Options
	limiter *limiter
	checks  checks
}

// New returns the access to what is on an engine.
func New(eng *perdure.Engine, options *Options) (*Access, error) {
	if eng == nil {
		return nil, fault.Invalidf("engine", "is nil")
	}
	rt := host.Of(eng)
	o := options.withDefaults()
	if o.SessionIdle < minIdle || o.SessionMax < o.SessionIdle || o.Failures < 1 || o.FailureEvery <= 0 {
		return nil, fault.Invalidf("auth.Options", "has a time or number that is too small")
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
		options.OnError = func(err error) { slog.Error("check credentials", "error", err) }
	}
	return options
}

// Authenticate says who sends a request. It fails with ErrUnauthenticated, with
// a *LimitedError for an address that failed too often, or with an error of the
// database.
func (a *Access) Authenticate(r *http.Request) (Principal, error) {
	secret, given := credential(r)
	if !given {
		return a.local(r.Context(), r)
	}
	t, err := a.verify(r, secret)
	if err != nil {
		return Principal{}, err
	}
	if t.Kind != kindOf(secret) { // a hash is of one kind only; this cannot be
		return Principal{}, ErrUnauthenticated
	}
	return principal(t)
}

// verify returns the token of a secret if it is good. An address that has sent
// too many bad ones is heard only with what was good before.
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

// find returns the token of a hash if it is good now.
func (a *Access) find(ctx context.Context, hash [32]byte) (t store.Token, good bool, err error) {
	err = a.read(ctx, a.rt.Store.FindToken(hash[:], a.rt.Now(), func(row store.Token) {
		t, good = row, subtle.ConstantTimeCompare(row.Hash, hash[:]) == 1
	}))
	if err != nil {
		return store.Token{}, false, fmt.Errorf("look up token: %w", err)
	}
	return t, good, nil
}

const (
	// coarse is how exactly it is known when a token was used last.
	coarse  = 5 * time.Minute
	minIdle = 3 * coarse
)

// touch notes that a token was used. That it fails does not concern the request.
func (a *Access) touch(ctx context.Context, t store.Token) {
	if t.Used != nil && a.rt.Clock.Now().Sub(*t.Used) < coarse {
		return
	}
	if err := a.write(ctx, a.rt.Store.TouchToken(t.ID, coarse, a.rt.Now())); err != nil {
		a.options.OnError(fmt.Errorf("note the use of a token: %w", err))
	}
}

func (a *Access) read(ctx context.Context, stmts ...sqldb.Stmt) error {
	return a.run(ctx, sqldb.Read, stmts)
}

// change does what an operator asks for, as a unit of work.
func (a *Access) change(ctx context.Context, stmts ...sqldb.Stmt) error {
	return a.eng.Update(ctx, func(tx *perdure.Tx) error { return host.In(tx).Attach(nil, stmts...) })
}

func (a *Access) write(ctx context.Context, stmts ...sqldb.Stmt) error {
	return a.run(ctx, sqldb.Write, stmts)
}

func (a *Access) run(ctx context.Context, access sqldb.Access, stmts []sqldb.Stmt) error {
	ctx, cancel := context.WithTimeout(ctx, a.rt.Timeout)
	defer cancel()
	tx, err := a.rt.DB.Begin(ctx, access)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := tx.Run(ctx, stmts...); err != nil || access == sqldb.Read {
		return err
	}
	return tx.Commit(ctx)
}
