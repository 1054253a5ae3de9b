// Package effect runs what has to happen after a commit: the rows of the table
// of hooks that are in one namespace. Hooks are such rows, and so are the effects
// and the invoked tasks of actors.
//
// A Runner has a handler for some names. It claims rows of these that are due,
// runs them outside of any transaction, and commits what came of them, guarded
// by the token of the claim.
//
// Imports: perdure, retry, fault and the internal packages; no kind of work.
package effect

import (
	"context"
	crand "crypto/rand"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/core"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
)

// Options configure a Runner. All fields are needed.
type Options struct {
	// Kind names the work in messages, Namespace says which rows it is, and
	// Topic is told when there are more.
	Kind, Namespace, Topic string
	// Concurrency is how many handlers run at once.
	Concurrency int
	// Lease is how long a claim is ours without a heartbeat.
	Lease time.Duration
	// MaxCrashes is how many expired claims quarantine a row.
	MaxCrashes int
	// Retention is how long rows that are done are kept; negative: for ever.
	Retention time.Duration
	// DeadRetention is the time that failed and quarantined rows are kept;
	// negative: no limit.
	DeadRetention time.Duration
	// OnError receives errors that have no caller, OnCrash expired claims.
	OnError func(error)
	OnCrash func(store.Reaped)
	// Random returns numbers in [0, 1) for the jitter of retries.
	Random func() float64
}

// Handler runs the rows of one name.
type Handler struct {
	// Run has the effect and returns its result.
	Run func(ctx context.Context, row store.Hook) (any, error)
	// Timeout is how long it may take.
	Timeout time.Duration
	// Finish commits the end of a row together with what follows from it. Nil:
	// nothing does.
	Finish func(ctx context.Context, end Ending) error
}

// Ending is the end of a row: it succeeded, or failed for the last time.
type Ending struct {
	Row store.Hook
	// Result is what the handler returned, Err how it failed.
	Result any
	Err    error

	// additions are the functions that the handler has added to the transaction.
	additions []func(any) error
	stmts     []sqldb.Stmt
	stale     *bool
}

// Record records the end, by a function that runs statements in the transaction
// of what follows from it. It is core.ErrLost if the claim is no longer held:
// then nothing may follow.
func (e Ending) Record(run func(...sqldb.Stmt) error) error {
	*e.stale = false // the transaction may run again
	if err := run(e.stmts...); err != nil {
		return err
	}
	if *e.stale {
		return core.ErrLost
	}
	return nil
}

// Add runs the functions that the handler has added, in the transaction of what
// follows from the end. It is called after Record.
func (e Ending) Add(tx *perdure.Tx) error { return core.RunAdditions[any](tx, e.additions) }

// Runner runs the rows of a namespace in this process. It is safe for concurrent
// use.
type Runner struct {
	eng     *perdure.Engine
	rt      *perdure.Runtime
	options Options
	worker  *core.Worker
	id      string // of this process, in the rows that it claims

	lane *core.Lane // of suspects

	mu       sync.RWMutex
	handlers map[string]Handler
}

// New returns a runner that handles nothing yet.
func New(eng *perdure.Engine, o Options) *Runner {
	rt := eng.Runtime()
	r := &Runner{eng: eng, rt: rt, options: o, id: newToken(), handlers: map[string]Handler{}}
	r.lane = rt.Workers.NewLane(func() { rt.Hub.Tell(o.Topic, time.Time{}) })
	r.worker = core.NewWorker(core.Kind{
		Name: o.Kind, Claim: r.claim, Run: r.run, Extend: r.extend, Release: r.release, Return: r.restore, Next: r.next, Sweep: r.sweep,
	}, core.Options{
		Queue: o.Namespace, Workers: rt.Workers, Names: r.names,
		Concurrency: o.Concurrency, Lease: o.Lease, Clock: rt.Clock, OnError: o.OnError, Random: o.Random,
		SweepEvery: min(max(o.Retention/10, time.Minute), time.Hour),
	})
	return r
}

// newToken returns a name for a claim or a process that no other has. It is
// not one of Options.NewID, which may be anything.
func newToken() string { return crand.Text() }

// Handle sets the handler of a name. It returns false if the name has one.
func (r *Runner) Handle(name string, h Handler) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, exists := r.handlers[name]; exists {
		return false
	}
	r.handlers[name] = h
	return true
}

// names returns the names that have a handler, sorted so that the same set makes
// the same statement.
func (r *Runner) names() []string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.Sorted(maps.Keys(r.handlers))
}

// Process runs every row that is due and has a handler, and returns how many
// were run, successful or not.
func (r *Runner) Process(ctx context.Context) (int, error) { return r.worker.Process(ctx) }

// Start begins to run what is due, without waiting for it.
func (r *Runner) Start(ctx context.Context) (int, error) { return r.worker.Start(ctx) }

// Drain stops claiming and waits for the handlers that run, at most until ctx
// is done.
func (r *Runner) Drain(ctx context.Context) error { return r.worker.Drain(ctx) }

// NextWakeAt returns when a row with a handler will be due, or the claim of a
// lost process will have expired. It is zero if there is none. While as many
// handlers run as may, it is a little later than now at the earliest.
func (r *Runner) NextWakeAt(ctx context.Context) (time.Time, error) {
	wait, ok, err := r.worker.Next(ctx)
	if err != nil || !ok {
		return time.Time{}, err
	}
	return r.rt.Clock.Now().Add(wait), nil
}

// Subscribe calls fn when the topic is told of rows, when one will be tried
// again, and when a handler ends while more are waiting.
func (r *Runner) Subscribe(fn func(due time.Time)) (cancel func()) {
	forget := r.worker.OnFree(func() { fn(time.Time{}) })
	unsubscribe := r.rt.Hub.Subscribe(r.options.Topic, fn)
	return func() {
		forget()
		unsubscribe()
	}
}
