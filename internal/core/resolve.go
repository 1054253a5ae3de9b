package core

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/failpoint"
	"github.com/perdure/perdure/internal/sqldb"
)

// A claim whose outcome was not committed, or may not have been, is returned by the
// process that made it. The process is alive, so this does not count as a crash.

const (
	// resolveTimeout is the time limit for one attempt to resolve claims.
	resolveTimeout = dbTimeout
	// resolvePause is the first pause between two attempts, resolvePauseMax the
	// longest.
	resolvePause    = 20 * time.Millisecond
	resolvePauseMax = 2 * time.Second
	// postponement is the shortest delay of work that cannot run now for an external
	// reason. A random part of up to the same length is added.
	postponement = 15 * time.Second
)

// Postponement returns the delay of work that cannot run now for an external reason: 15
// to 30 s.
func Postponement(random func() float64) time.Duration {
	return postponement + time.Duration(float64(postponement)*random())
}

// Immediate reports whether work whose outcome was not committed may run again
// immediately: the database could not be reached, the claim was lost, or the process is
// stopping. After any other error the work is postponed, so that the error is not
// repeated in a loop.
func Immediate(cause error) bool {
	return errors.Is(cause, ErrLost) || errors.Is(cause, ErrStopping) || sqldb.IsUnavailable(cause)
}

// Resolver calls functions until the database responds. It is safe for concurrent use.
type Resolver struct {
	ended   func()
	ctx     context.Context
	abandon context.CancelFunc
	active  atomic.Int64
}

// NewResolver returns a resolver. ended is called whenever a function has finished.
func NewResolver(ended func()) *Resolver {
	r := &Resolver{ended: ended}
	r.ctx, r.abandon = context.WithCancel(context.Background())
	return r
}

// Busy reports whether functions are still unfinished.
func (r *Resolver) Busy() bool { return r.active.Load() > 0 }

// Abandon cancels all functions.
func (r *Resolver) Abandon() { r.abandon() }

// Go calls fn until it succeeds or the resolver is abandoned. After that it calls then
// with the last error. Go does not wait.
func (r *Resolver) Go(fn func(context.Context) error, then func(error)) {
	r.active.Add(1)
	go func() {
		defer r.leave()
		then(r.persist(fn))
	}()
}

// Look is Go for a COMMIT that got no response. After the first success it calls then,
// and calls fn again for up to a span: PostgreSQL may still execute a COMMIT whose
// connection is lost. The resolver is busy only until the first success.
func (r *Resolver) Look(fn func(context.Context) error, then func(error), span time.Duration) {
	r.active.Add(1)
	go func() {
		err := r.persist(fn)
		then(err)
		r.leave()
		for pause := resolvePause; err == nil && pause < span && r.rest(pause); pause *= 2 {
			err = r.persist(fn)
		}
	}()
}

func (r *Resolver) leave() {
	r.active.Add(-1)
	r.ended()
}

// persist calls fn until it succeeds or the resolver is abandoned.
func (r *Resolver) persist(fn func(context.Context) error) error {
	for pause := resolvePause; ; pause = min(2*pause, resolvePauseMax) {
		err := attempt(r.ctx, fn)
		if err == nil || !r.rest(pause) {
			return err
		}
	}
}

// attempt calls fn once.
func attempt(ctx context.Context, fn func(context.Context) error) error {
	if err := failpoint.Hit("core.resolve"); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, resolveTimeout)
	defer cancel()
	return fn(ctx)
}

// rest waits in real time, because it relieves the database. It returns false if the
// resolver was abandoned.
func (r *Resolver) rest(pause time.Duration) bool {
	timer := clock.System.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C():
		return true
	case <-r.ctx.Done():
		return false
	}
}
