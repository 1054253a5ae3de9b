// Package effect runs hooks: work with one step that runs after a commit. Users' hooks
// are in users' namespaces. The effects and invocations of actors are hooks in a separate
// namespace.
//
// A Runner has handlers for some names. It claims due hooks with these names, runs them
// outside any transaction, and commits their outcomes.
package effect

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/work"
)

// Options configure a Runner. All fields except Room, Wanted and Sweep are required.
type Options struct {
	// Kind is the name of the work in messages, Namespace is the namespace of the hooks,
	// and Topic is the topic of their wake-ups.
	Kind, Namespace, Topic string
	// Concurrency is the maximum number of handlers that run concurrently.
	Concurrency int
	// Room returns how many more hooks may be claimed now: see core.Options. Nil: there is no
	// other limit.
	Room func(running int) int
	// Wanted reports whether hooks of a name may be claimed now. Nil: all may.
	Wanted func(name string) bool
	// Lease is the time for which a claim is valid without a heartbeat.
	Lease time.Duration
	// MaxCrashes is the number of crashes after which a hook is quarantined.
	MaxCrashes int
	// Retention is the time for which done and cancelled hooks are kept. Negative: no
	// limit.
	Retention time.Duration
	// DeadRetention is the time for which failed and quarantined hooks are kept.
	// Negative: no limit.
	DeadRetention time.Duration
	// OnError receives background errors. OnCrash is called for every crash of a hook.
	OnError func(error)
	OnCrash func(Crash)
	// Random returns numbers in [0, 1) for the jitter of retries.
	Random func() float64
	// Sweep removes further rows when finished hooks are removed. Nil: there are none.
	Sweep func(ctx context.Context) error
}

// Crash describes a hook whose process crashed while it ran.
type Crash = work.Crash

// Handler runs the hooks of one name.
type Handler struct {
	// Run runs the hook and returns its result.
	Run func(ctx context.Context, row store.Hook) (any, error)
	// Timeout is the time limit of Run.
	Timeout time.Duration
	// Finish commits the final outcome of a hook together with further changes that
	// depend on it. Nil: there are none.
	Finish func(ctx context.Context, end Ending) error
}

// Ending is the final outcome of a hook: it succeeded, or its last attempt failed.
type Ending struct {
	Row store.Hook
	// Result is the result of the handler, Err its error.
	Result any
	Err    error

	apart *work.Apart
	with  []func(*perdure.Tx) error
}

// Runner runs the hooks of a namespace in this process. It is safe for concurrent use.
type Runner struct {
	*work.Runner
	rt      *host.Runtime
	options Options

	mu       sync.RWMutex
	handlers map[string]Handler
}

// New returns a runner without handlers.
func New(eng *perdure.Engine, o Options) *Runner {
	r := &Runner{rt: host.Of(eng), options: o, handlers: map[string]Handler{}}
	r.Runner = work.New(eng, work.Kind{
		Name: o.Kind, Family: (*store.Store).Hooks, Topic: func(string) string { return o.Topic }, Lanes: r.lanes,
		Begin: r.begin, Write: r.write, Refused: refused, Quarantine: r.quarantine, Next: r.next, Lock: r.lock, Sweep: r.sweep,
		Share: r.share,
	}, work.Options{
		Lease: o.Lease, MaxCrashes: o.MaxCrashes, SweepEvery: min(max(o.Retention/10, time.Minute), time.Hour),
		OnError: o.OnError, OnCrash: o.OnCrash, Random: o.Random,
	})
	r.Serve(work.QueueOptions{Name: store.HookQueue(o.Namespace), Label: o.Namespace, Concurrency: o.Concurrency, Names: r.names, Room: o.Room})
	return r
}

// Handle sets the handler of a name. It returns false if the name already has a handler.
func (r *Runner) Handle(name string, h Handler) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, exists := r.handlers[name]; exists {
		return false
	}
	r.handlers[name] = h
	return true
}

// Remove removes the handler of a name. Running handlers are not interrupted.
func (r *Runner) Remove(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.handlers, name)
}

func (r *Runner) handler(name string) Handler {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.handlers[name]
}

// names returns the names that have a handler. They are sorted, so that the same set
// always gives the same statement.
func (r *Runner) names() []string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.Sorted(maps.Keys(r.handlers))
}

// lanes returns the lanes of the names that have a handler.
func (r *Runner) lanes(string) []string {
	lanes := r.names()
	if r.options.Wanted != nil {
		lanes = slices.DeleteFunc(lanes, func(name string) bool { return !r.options.Wanted(name) })
	}
	for i, name := range lanes {
		lanes[i] = store.HookLane(r.options.Namespace, name)
	}
	return lanes
}

// share returns the name with which a hook shares the slots of its namespace.
func (r *Runner) share(i *work.Item) (name, system string) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if len(r.handlers) < 2 {
		return "", ""
	}
	return "hook:" + i.Row.(*store.Hook).Name, ""
}

// next returns the statement that finds the next due time.
func (r *Runner) next(from store.Claim, least int, found func(time.Duration)) []sqldb.Stmt {
	return []sqldb.Stmt{r.rt.Store.Hooks().Next(from.Queue, from.Lanes, least, r.rt.Now(), found)}
}
