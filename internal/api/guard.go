package api

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"
)

// recheckEvery is the interval between two checks of the credential of an open stream or
// socket. Together with the age of a shared check it stays under 5 seconds.
const recheckEvery = 2 * time.Second

// The codes with which a socket is closed when its credential no longer suffices.
const (
	statusUnauthenticated websocket.StatusCode = 4401 // it was revoked or has expired
	statusForbidden       websocket.StatusCode = 4403 // its role was lowered
)

// rechecker is an Auth that can check the credential of a request again, without counting
// failures. Unless fresh is set, the result may be some seconds old.
type rechecker interface {
	Recheck(ctx context.Context, r *http.Request, fresh bool) (Principal, error)
}

// recheck returns the sender of a request that is still in flight. It fails with
// ErrUnauthenticated if the credential is no longer valid, and with a problem with status
// 403 if its role was lowered. Other errors do not concern the credential.
func (a *API) recheck(ctx context.Context, r *http.Request, route Route, fresh bool) (p Principal, err error) {
	if auth, ok := a.config.Auth.(rechecker); ok {
		p, err = auth.Recheck(ctx, r, fresh)
	} else {
		p, err = a.config.Auth.Authenticate(r.WithContext(ctx))
	}
	if p, err = route.orAnyone(p, err); err == nil {
		err = route.admits(p, r)
	}
	if err == nil && p.Role < requestOf(r.Context()).principal.Role {
		err = errForbidden("the role of the credential was lowered")
	}
	return p, err
}

// excludedError is the cancellation cause of a stream whose credential is no longer valid
// or no longer sufficient.
type excludedError struct{ err error }

func (e *excludedError) Error() string { return e.err.Error() }

func (e *excludedError) Unwrap() error { return e.err }

// excluded reports whether an error of recheck concerns the credential.
func excluded(err error) bool {
	var p *Problem
	return errors.Is(err, ErrUnauthenticated) || errors.As(err, &p) && p.Status == http.StatusForbidden
}

// guard returns a context that is cancelled when the server closes its streams or the
// credential of the request no longer suffices. In the second case its cause is an
// *excludedError. The caller must call stop.
func (a *API) guard(parent context.Context, r *http.Request, route Route) (ctx context.Context, exclude func(error), stop func()) {
	ctx, exclude, release := a.watchCredential(parent, r, route)
	ctx, cancel := context.WithCancel(ctx)
	closing := context.AfterFunc(a.streams, cancel)
	return ctx, exclude, func() {
		closing()
		cancel()
		release()
	}
}

// watchCredential returns a context that is cancelled when the credential of a request no
// longer suffices. Its cause is then an *excludedError. The caller must call stop.
func (a *API) watchCredential(parent context.Context, r *http.Request, route Route) (ctx context.Context, exclude func(error), stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	exclude = func(err error) { cancel(&excludedError{err}) }
	var checking sync.WaitGroup
	checking.Go(func() {
		for wait(ctx, recheckEvery) {
			if _, err := a.recheck(ctx, r, route, false); excluded(err) && ctx.Err() == nil {
				exclude(err)
			}
		}
	})
	return ctx, exclude, func() {
		cancel(nil)
		checking.Wait()
	}
}

// waitFor calls fn with a context that is cancelled after a timeout, or when the credential
// of the request no longer suffices. In the second case it returns the reason. late reports
// whether the timeout has passed.
func (a *API) waitFor(ctx context.Context, timeout time.Duration, fn func(context.Context) error) (late bool, err error) {
	allowed := ctx
	req := requestOf(ctx)
	if r, ok := a.routes[req.route]; ok && req.http != nil {
		var stop func()
		allowed, _, stop = a.watchCredential(ctx, req.http, r)
		defer stop()
	}
	waiting, cancel := context.WithTimeout(allowed, timeout)
	defer cancel()
	err = fn(waiting)
	var end *excludedError
	if errors.As(context.Cause(allowed), &end) {
		return false, end.err
	}
	return err != nil && waiting.Err() != nil && ctx.Err() == nil, err
}

// closeCode returns the code and the text with which a socket is closed.
func closeCode(ctx context.Context) (websocket.StatusCode, string) {
	var e *excludedError
	switch {
	case !errors.As(context.Cause(ctx), &e):
		return websocket.StatusGoingAway, "the stream was closed"
	case errors.Is(e, ErrUnauthenticated):
		return statusUnauthenticated, "the credential is no longer valid"
	default:
		return statusForbidden, "the role of the credential is no longer sufficient"
	}
}
