package core

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/failpoint"
	"github.com/perdure/perdure/internal/sqldb"
)

// A claim whose outcome was not committed, or may not have been, is returned by the
// process that made it. The process is alive, so this does not count as a crash.

const (
	// resolveTimeout bounds one attempt to resolve claims.
	resolveTimeout = dbTimeout
	// resolvePause is the first pause between two attempts, resolvePauseMax the
	// longest.
	resolvePause    = 20 * time.Millisecond
	resolvePauseMax = 2 * time.Second
	// postponement is the shortest delay of work that cannot be run now for a reason
	// that is not its own; up to as much is added at random.
	postponement = 15 * time.Second
)

// Postponement returns the delay of work that cannot be run now for a reason that is
// not its own: 15 to 30 s.
func Postponement(random func() float64) time.Duration {
	return postponement + time.Duration(float64(postponement)*random())
}

// Immediate reports whether work may run again at once although its outcome was not
// committed: the database could not be reached, the claim was lost, or the process
// stops. After any other error it waits, so that the error is not repeated in a loop.
func Immediate(cause error) bool {
	var uncertain *fault.Uncertain
	return errors.Is(cause, ErrLost) || errors.Is(cause, ErrStopping) ||
		errors.As(cause, &uncertain) || sqldb.IsUnavailable(cause)
}

// Unanswered returns the claims if the answer to their COMMIT was lost, and otherwise
// none: then they are not stored.
func Unanswered(claims []*Claim, err error) []*Claim {
	if sqldb.IsUncertain(err) {
		return claims
	}
	return nil
}

// Resolver calls functions until the database answers. It is safe for concurrent use.
type Resolver struct {
	ended   func()
	ctx     context.Context
	abandon context.CancelFunc
	active  atomic.Int64
}

// NewResolver returns a resolver. ended is called whenever a function has ended.
func NewResolver(ended func()) *Resolver {
	r := &Resolver{ended: ended}
	r.ctx, r.abandon = context.WithCancel(context.Background())
	return r
}

// Busy reports whether functions have not ended.
func (r *Resolver) Busy() bool { return r.active.Load() > 0 }

// Abandon ends all functions: no caller waits for them any longer.
func (r *Resolver) Abandon() { r.abandon() }

// Go calls fn until it succeeds or the resolver is abandoned, and then then with the
// last error. It does not wait.
func (r *Resolver) Go(fn func(context.Context) error, then func(error)) {
	r.active.Add(1)
	go func() {
		defer r.leave()
		then(r.persist(fn))
	}()
}

// Look is Go for a COMMIT that was not answered. After the first success it calls then,
// and fn again for up to a span: PostgreSQL may still execute a COMMIT whose connection
// is lost. The resolver is busy only until the first success.
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

// rest waits in real time: it is the database that needs it. It returns false if the
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

// Returned is a claim that is given back although its process is alive.
type Returned struct {
	*Claim
	// Delay is the time that the work waits before it is claimed again. 0: none.
	Delay time.Duration
	// Message is the error to show while it waits.
	Message string
}

// DueAgain returns when the first of the claims may be made again: the zero time if
// that is now.
func DueAgain(claims []Returned, now time.Time) (due time.Time) {
	for i, c := range claims {
		switch at := now.Add(c.Delay); {
		case c.Delay == 0:
			return time.Time{}
		case i == 0 || at.Before(due):
			due = at
		}
	}
	return due
}

// giveBack returns a claim whose run failed. It tries once, in the slot of the run, and
// later in the background if the database does not answer.
func (w *Worker) giveBack(c *Claim, cause error) {
	if w.kind.Return == nil {
		return
	}
	back := Returned{Claim: c}
	if !Immediate(cause) {
		back.Delay, back.Message = Postponement(w.options.random), cause.Error()
	}
	w.resolve([]Returned{back}, attempt(context.Background(), w.returning([]Returned{back})))
}

// giveBackAll returns claims that were not started and could not be released.
func (w *Worker) giveBackAll(claims []*Claim, err error) {
	if w.kind.Return != nil && len(claims) > 0 {
		w.resolve(Return(claims), err)
	}
}

// giveBackUnknown returns claims that may or may not be stored. The worker claims
// nothing before it has.
func (w *Worker) giveBackUnknown(claims []*Claim, cause error) {
	if w.kind.Return == nil || len(claims) == 0 {
		return
	}
	w.unresolved.Store(&cause)
	w.resolver.Look(w.returning(Return(claims)), func(error) { w.unresolved.Store(nil) }, w.options.Lease/2)
}

// resolve returns claims in the background if the attempt before had an error.
func (w *Worker) resolve(all []Returned, err error) {
	if err == nil {
		return
	}
	w.resolver.Go(w.returning(all), func(err error) {
		if err != nil {
			w.report(fmt.Errorf("return %s %s: %w", w.kind.Name, all[0].ID, err))
		}
	})
}

// returning returns the function that gives claims back.
func (w *Worker) returning(all []Returned) func(context.Context) error {
	return func(ctx context.Context) error {
		return Call(func() error { return w.kind.Return(ctx, all) })
	}
}

// Return returns claims as they are given back without a delay.
func Return(claims []*Claim) []Returned {
	all := make([]Returned, len(claims))
	for i, c := range claims {
		all[i] = Returned{Claim: c}
	}
	return all
}

func (o Options) random() float64 {
	if o.Random == nil {
		return rand.Float64()
	}
	return o.Random()
}
