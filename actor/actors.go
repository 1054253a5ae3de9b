package actor

import (
	"context"
	crand "crypto/rand"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/core"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/effect"
	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/retry"
	"github.com/perdure/perdure/statechart"
)

// DefaultRetry is the policy of effects and invocations that have none: 20 attempts within
// about two days.
var DefaultRetry = retry.Default

// Options configure Actors. The zero value of every field is its default.
type Options struct {
	// Effects and Invocations are available to every type, including stored statecharts.
	// Default: none.
	Effects     map[string]Effect
	Invocations map[string]Invocation
	// Concurrency is the maximum number of effects and invocations that run concurrently in
	// this process. Default: 16.
	Concurrency int
	// Lease is the time for which a claim of an effect or invocation is valid without a
	// heartbeat. When it expires, the work runs again. At least one second. Default: 30
	// seconds.
	Lease time.Duration
	// MaxCrashes is the number of crashes after which a timer, an effect or an invocation is
	// quarantined. Default: 5.
	MaxCrashes int
	// Retention is the age at which effects and invocations that are done, and the idempotency
	// keys of events, are removed. Failed and quarantined effects and invocations are kept for
	// 30 days. Default: 7 days.
	Retention time.Duration
	// Batch is the maximum number of actors whose due timers fire in one transaction. Default:
	// 256.
	Batch int
	// CacheBytes bounds the memory for the snapshots of recently used actors. Default: 16 MiB.
	CacheBytes int
	// Poll is the interval at which a subscription polls for changes whose wake-up was lost.
	// Default: 1 second.
	Poll time.Duration
	// Legacy is the storage of actor-kit. An actor that does not exist is imported from it when
	// the actor is first addressed. If Legacy has the actor but cannot read it, the error is an
	// *ImportError. Default: none.
	Legacy KV
	// Limits bound the work that one event can cause in a machine. TypeOptions.Machine can set
	// other limits for a type. Default: the defaults of Limits.
	Limits Limits
	// OnError receives background errors. Default: log them.
	OnError func(error)
	// OnDamage is called for each actor whose snapshot was damaged. Default: log it.
	OnDamage func(Damage)
	// Random returns numbers in [0, 1) for the jitter of retries.
	// Default: a random source.
	Random func() float64
}

// Damage describes an actor whose stored snapshot could not be loaded.
type Damage struct {
	Ref Ref
	// Reason describes the damage.
	Reason string
	// Repaired is true if the state was recomputed from the log. Otherwise the actor is
	// quarantined.
	Repaired bool
}

// Actors gives access to the actors of a database and holds the types that this process knows.
// It is a dispatch.Processor. It is safe for concurrent use.
type Actors struct {
	// Admin lists and manages all actors of the database.
	*Admin

	options Options
	cache   *cache
	lanes   []*lane
	runner  *effect.Runner
	firing  firing
	id      string // of this process; stored in the records of its passes
	// suspects admits timers that may have crashed their process.
	suspects *core.Lane
	outage   core.Outage
	// resolver retries the removal of pass records.
	resolver *core.Resolver

	mu        sync.RWMutex
	kinds     map[string]*kind           // registered in this process
	documents map[string]map[int64]*kind // loaded from the database
}

// New returns the actors of a database. Register their types before a
// dispatcher is started.
func New(eng *perdure.Engine, options *Options) (*Actors, error) {
	if eng == nil {
		return nil, fault.Invalidf("engine", "must not be nil")
	}
	o := options.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	a := newActors(eng, o)
	rt := a.rt
	a.runner = effect.New(eng, effect.Options{
		Kind: "actor", Namespace: namespace, Topic: topic, Concurrency: o.Concurrency, Lease: o.Lease, MaxCrashes: o.MaxCrashes,
		Retention: o.Retention, DeadRetention: core.DeadRetention, OnError: o.OnError, OnCrash: a.crashed, Random: o.Random, Sweep: a.sweepEvents,
	})
	rt.Workers.Add(delays{a})
	a.id, a.suspects = crand.Text(), rt.Workers.NewLane(func() { rt.Hub.Notify(topic, time.Time{}) })
	a.resolver = core.NewResolver(func() {})
	return a, nil
}

// newActors returns Actors without workers: they run neither effects nor timers.
func newActors(eng *perdure.Engine, o Options) *Actors {
	a := &Actors{
		Admin: &Admin{eng: eng, rt: host.Of(eng)}, options: o, cache: newCache(o.CacheBytes),
		kinds: map[string]*kind{}, documents: map[string]map[int64]*kind{}, firing: firing{unusable: map[string]bool{}, missing: map[string]bool{}},
	}
	a.actors = a
	for range max(a.rt.DB.Dialect().Lanes, 1) {
		a.lanes = append(a.lanes, &lane{actors: a})
	}
	return a
}

func (o *Options) withDefaults() Options {
	var options Options
	if o != nil {
		options = *o
	}
	edge.Default(&options.Concurrency, 16)
	edge.Default(&options.Lease, 30*time.Second)
	edge.Default(&options.MaxCrashes, 5)
	edge.Default(&options.Retention, 7*24*time.Hour)
	edge.Default(&options.Batch, 256)
	edge.Default(&options.CacheBytes, 16<<20)
	edge.Default(&options.Poll, time.Second)
	edge.Default(&options.Limits.Time, DefaultTimeLimit)
	if options.OnError == nil {
		options.OnError = func(err error) { slog.Error("actor processing failed", "error", err) }
	}
	if options.OnDamage == nil {
		options.OnDamage = logDamage
	}
	if options.Random == nil {
		options.Random = rand.Float64
	}
	return options
}

// report passes an error to the OnError callback, which may panic.
func (a *Actors) report(err error) {
	defer func() { _ = recover() }() // last resort: there is no other receiver for errors
	a.options.OnError(err)
}

// crashed logs an effect or an invocation whose process crashed.
func (a *Actors) crashed(c effect.Crash) {
	slog.Warn("actor effect lease expired", "id", c.ID, "name", c.Name, "crashes", c.Crashes, "quarantined", c.Quarantined)
}

func logDamage(d Damage) {
	slog.Error("actor found damaged", "actor", d.Ref.String(), "reason", d.Reason, "repaired", d.Repaired)
}

func (o Options) validate() error {
	switch {
	case o.Concurrency < 1 || o.Concurrency > 10_000:
		return fault.Invalidf("Options.Concurrency", "must be between 1 and 10,000, got %d", o.Concurrency)
	case o.Lease < time.Second:
		return fault.Invalidf("Options.Lease", "must be at least 1s, got %v", o.Lease)
	case o.MaxCrashes < 1:
		return fault.Invalidf("Options.MaxCrashes", "must be at least 1, got %d", o.MaxCrashes)
	case o.Retention < 0:
		return fault.Invalidf("Options.Retention", "must not be negative, got %v", o.Retention)
	case o.Batch < 1 || o.Batch > 10_000:
		return fault.Invalidf("Options.Batch", "must be between 1 and 10,000, got %d", o.Batch)
	case o.CacheBytes < 0:
		return fault.Invalidf("Options.CacheBytes", "must not be negative, got %v", o.CacheBytes)
	case o.Limits.MaxContext < 0 || o.Limits.MaxContext > statechart.MaxDocument:
		return fault.Invalidf("Options.Limits.MaxContext", "must be between 0 and %d, got %d", statechart.MaxDocument, o.Limits.MaxContext)
	case o.Limits.MaxEvents < 0:
		return fault.Invalidf("Options.Limits.MaxEvents", "must not be negative, got %d", o.Limits.MaxEvents)
	case o.Limits.MaxOutputs < 0:
		return fault.Invalidf("Options.Limits.MaxOutputs", "must not be negative, got %d", o.Limits.MaxOutputs)
	case o.Poll < time.Millisecond:
		return fault.Invalidf("Options.Poll", "must be at least 1ms, got %v", o.Poll)
	}
	return nil
}

// read runs statements on one snapshot of the database.
func (a *Admin) read(ctx context.Context, stmts ...sqldb.Stmt) error {
	ctx, cancel := context.WithTimeout(ctx, a.rt.Timeout)
	defer cancel()
	tx, err := a.rt.DB.Begin(ctx, sqldb.Read)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	return bare(tx.Run(ctx, stmts...))
}
