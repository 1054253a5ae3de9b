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
	// Effects and Invocations can be named by every type, those that are documents in
	// the database too. Default: none.
	Effects     map[string]Effect
	Invocations map[string]Invocation
	// Concurrency is how many effects and invocations run at once in this process.
	// Default: 16.
	Concurrency int
	// Lease is how long an effect or invocation belongs to a process without a sign
	// of life; then it is run again. At least one second. Default: 30 seconds.
	Lease time.Duration
	// MaxCrashes is the number of crashes after which a delay, an effect or a
	// invocation is quarantined. Default: 5.
	MaxCrashes int
	// Retention is how long effects and invocations that are done are kept, and
	// the idempotency keys of events. Those that failed or were quarantined are
	// kept for 30 days. Default: 7 days.
	Retention time.Duration
	// Batch is how many actors whose delays are due are moved in one
	// transaction. Default: 256.
	Batch int
	// CacheBytes bounds the memory for snapshots of actors that were moved
	// last. Default: 16 MiB.
	CacheBytes int
	// Poll is how often a subscription looks for changes of other processes
	// that nobody told it of. Default: 1 second.
	Poll time.Duration
	// Legacy is the storage of actor-kit. An actor that does not exist is imported
	// from it when it is first addressed; an actor that is there but cannot be read
	// is an *ImportError. Default: none.
	Legacy KV
	// Limits bound what one event can make a machine do. TypeOptions.Machine can set
	// other limits for a type. Default: the defaults of Limits.
	Limits Limits
	// OnError receives errors that have no caller. Default: log them.
	OnError func(error)
	// OnDamage is told of actors whose snapshot was damaged. Default: log it.
	OnDamage func(Damage)
	// Random returns numbers in [0, 1) for the jitter of retries.
	// Default: a random source.
	Random func() float64
}

// Damage tells of an actor that could not be loaded as it was stored.
type Damage struct {
	Ref Ref
	// Reason says what was wrong.
	Reason string
	// Repaired says that its state was computed again from the log; otherwise
	// the actor is quarantined.
	Repaired bool
}

// Actors are the actors of a database, and the types of them that this process
// knows. It is a dispatch.Processor. It is safe for concurrent use.
type Actors struct {
	eng     *perdure.Engine
	rt      *host.Runtime
	options Options
	cache   *cache
	lanes   []*lane
	runner  *effect.Runner
	firing  firing
	id      string // of this process, in the records of its passes
	// suspects are delays that may have killed their process.
	suspects *core.Lane
	outage   core.Outage
	// resolver removes records of passes that could not be removed.
	resolver *core.Resolver

	mu        sync.RWMutex
	kinds     map[string]*kind           // registered in this process
	documents map[string]map[int64]*kind // loaded from the database
}

// New returns the actors of a database. Register their types before a
// dispatcher is started.
func New(eng *perdure.Engine, options *Options) (*Actors, error) {
	if eng == nil {
		return nil, fault.Invalidf("engine", "is nil")
	}
	rt := host.Of(eng)
	o := options.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	a := &Actors{
		eng: eng, rt: rt, options: o, cache: newCache(o.CacheBytes),
		kinds: map[string]*kind{}, documents: map[string]map[int64]*kind{}, firing: firing{unusable: map[string]bool{}, missing: map[string]bool{}},
	}
	a.runner = effect.New(eng, effect.Options{
		Kind: "actor", Namespace: namespace, Topic: topic, Concurrency: o.Concurrency, Lease: o.Lease, MaxCrashes: o.MaxCrashes,
		Retention: o.Retention, DeadRetention: core.DeadRetention, OnError: o.OnError, OnCrash: a.crashed, Random: o.Random,
	})
	rt.Workers.Add(delays{a})
	a.id, a.suspects = crand.Text(), rt.Workers.NewLane(func() { rt.Hub.Tell(topic, time.Time{}) })
	a.resolver = core.NewResolver(func() {})
	for range max(rt.DB.Dialect().Lanes, 1) {
		a.lanes = append(a.lanes, &lane{actors: a})
	}
	return a, nil
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
		options.OnError = func(err error) { slog.Error("process actors", "error", err) }
	}
	if options.OnDamage == nil {
		options.OnDamage = logDamage
	}
	if options.Random == nil {
		options.Random = rand.Float64
	}
	return options
}

// report hands an error to the callback, which is the user's and may panic.
func (a *Actors) report(err error) {
	defer func() { _ = recover() }() // the last resort: nobody is left to tell
	a.options.OnError(err)
}

// crashed logs an effect or an invocation whose process was lost.
func (a *Actors) crashed(c effect.Crash) {
	slog.Warn("effect of an actor lost its process", "id", c.ID, "name", c.Name, "crashes", c.Crashes, "quarantined", c.Quarantined)
}

func logDamage(d Damage) {
	slog.Error("actor is damaged", "actor", d.Ref.String(), "reason", d.Reason, "repaired", d.Repaired)
}

func (o Options) validate() error {
	switch {
	case o.Concurrency < 1 || o.Concurrency > 10_000:
		return fault.Invalidf("Options.Concurrency", "is %d; 1 to 10,000 are possible", o.Concurrency)
	case o.Lease < time.Second:
		return fault.Invalidf("Options.Lease", "is %v; at least 1s is needed", o.Lease)
	case o.MaxCrashes < 1:
		return fault.Invalidf("Options.MaxCrashes", "is %d; at least 1 is needed", o.MaxCrashes)
	case o.Retention < 0:
		return fault.Invalidf("Options.Retention", "is negative")
	case o.Batch < 1 || o.Batch > 10_000:
		return fault.Invalidf("Options.Batch", "is %d; 1 to 10,000 are possible", o.Batch)
	case o.CacheBytes < 0:
		return fault.Invalidf("Options.CacheBytes", "is negative")
	case o.Limits.MaxContext < 0 || o.Limits.MaxContext > statechart.MaxDocument:
		return fault.Invalidf("Options.Limits.MaxContext", "must be between 0 and %d, got %d", statechart.MaxDocument, o.Limits.MaxContext)
	case o.Limits.MaxEvents < 0:
		return fault.Invalidf("Options.Limits.MaxEvents", "must not be negative, got %d", o.Limits.MaxEvents)
	case o.Limits.MaxOutputs < 0:
		return fault.Invalidf("Options.Limits.MaxOutputs", "must not be negative, got %d", o.Limits.MaxOutputs)
	case o.Poll < time.Millisecond:
		return fault.Invalidf("Options.Poll", "is %v; at least 1ms is needed", o.Poll)
	}
	return nil
}

// read runs statements on one snapshot of the database.
func (a *Actors) read(ctx context.Context, stmts ...sqldb.Stmt) error {
	ctx, cancel := context.WithTimeout(ctx, a.rt.Timeout)
	defer cancel()
	tx, err := a.rt.DB.Begin(ctx, sqldb.Read)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	return bare(tx.Run(ctx, stmts...))
}
