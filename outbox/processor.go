package outbox

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/core"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/retry"
)

// HandlerOptions configure a Processor. The zero value of every field is its default.
type HandlerOptions struct {
	// Batch is the maximum number of entries that are read under one lease. With
	// HandleBatches, it is also the largest batch. Default: DefaultLimit.
	Batch int
	// Lease is the time for which the lease of a process is valid without a heartbeat.
	// Handlers may run longer: heartbeats renew the lease while they run. After a crash,
	// another process takes over when the lease has expired. Minimum: 1 second. Default:
	// 30 seconds.
	Lease time.Duration
	// Retry is the retry policy of an entry whose handler fails. Default: retry.Default.
	Retry retry.Policy
	// ContinueAfterDead makes the consumer continue after an entry that has become a dead
	// letter. Default: false. The consumer stops there until an operator retries or skips
	// the entry, so that no entry is handled before an earlier one.
	ContinueAfterDead bool
	// MaxCrashes is the number of crashes after which an entry becomes a dead letter.
	// Default: 5.
	MaxCrashes int
	// Timeout is the time limit of one call of the handler. Default: 5 minutes.
	Timeout time.Duration
	// OnError receives background errors, of heartbeats and of committing outcomes.
	// Default: log them.
	OnError func(error)
	// Random returns numbers in [0, 1) for the jitter of retries. Default:
	// math/rand/v2.Float64.
	Random func() float64
}

func (o *HandlerOptions) withDefaults() HandlerOptions {
	var options HandlerOptions
	if o != nil {
		options = *o
	}
	edge.Default(&options.Batch, DefaultLimit)
	edge.Default(&options.Lease, 30*time.Second)
	edge.Default(&options.MaxCrashes, 5)
	edge.Default(&options.Timeout, 5*time.Minute)
	if options.Retry.IsZero() {
		options.Retry = retry.Default
	}
	if options.OnError == nil {
		options.OnError = func(err error) { slog.Error("process outbox entries", "error", err) }
	}
	if options.Random == nil {
		options.Random = rand.Float64
	}
	return options
}

func (o HandlerOptions) validate() error {
	switch {
	case o.Batch < 1 || o.Batch > MaxLimit:
		return fault.Invalidf("HandlerOptions.Batch", "must be 1 to %d, got %d", MaxLimit, o.Batch)
	case o.Lease < time.Second:
		return fault.Invalidf("HandlerOptions.Lease", "must be at least 1s, got %v", o.Lease)
	case o.MaxCrashes < 1:
		return fault.Invalidf("HandlerOptions.MaxCrashes", "must be at least 1, got %d", o.MaxCrashes)
	case o.Timeout < 0:
		return fault.Invalidf("HandlerOptions.Timeout", "must not be negative, got %v", o.Timeout)
	}
	return o.Retry.Validate()
}

// Processor handles the entries of a consumer. It is a dispatch.Processor: a dispatcher
// runs it.
//
// Entries are handled in order, each at least once. Several processes may serve a
// consumer; one of them handles entries at a time. It has a lease, and the position moves
// only under this lease. Another process takes over when the lease is released, or when
// it expires after a crash.
type Processor struct {
	outbox  *Outbox
	name    string
	options HandlerOptions
	// handle handles all entries of a batch if whole is set, otherwise one entry.
	handle   func(ctx context.Context, entries []Entry) error
	whole    bool
	id       string // of this processor in leases
	worker   *core.Worker
	resolver *core.Resolver
	quiet    quiet
}

// Handle returns a processor that calls fn for every entry after the consumer's position,
// in order:
//
//	index, err := eng.Outbox().Register(ctx, "search-index", outbox.Stamp{})
//	…
//	p, err := index.Handle(func(ctx context.Context, entry outbox.Entry) error { … }, nil)
//	…
//	d, err := dispatch.NewWaker(p, nil)
//	d.Start()
//	defer d.Stop(ctx)
//
// If fn returns an error, the entry is retried by HandlerOptions.Retry, and later entries
// wait. retry.Stop and retry.After apply. An entry without attempts left becomes a dead
// letter: see HandlerOptions.ContinueAfterDead, DeadLetters, RetryDead and SkipDead.
//
// A crash can repeat the entries that were handled since the position was stored, so fn
// must be idempotent. The stamp is the idempotency key. With perdure.CommitWith, fn
// commits rows together with the position: exactly once.
func (c *Consumer) Handle(fn func(ctx context.Context, entry Entry) error, options *HandlerOptions) (*Processor, error) {
	if fn == nil {
		return nil, fault.Invalidf("handler", "is nil")
	}
	return c.processor(func(ctx context.Context, entries []Entry) error { return fn(ctx, entries[0]) }, false, options)
}

// HandleBatches is Handle for a function that handles several entries together. The
// entries are in order, and there is at least one. If fn returns an error, all of them
// are retried, one at a time at first. So the error of one entry makes only this entry a
// dead letter.
func (c *Consumer) HandleBatches(fn func(ctx context.Context, entries []Entry) error, options *HandlerOptions) (*Processor, error) {
	if fn == nil {
		return nil, fault.Invalidf("handler", "is nil")
	}
	return c.processor(fn, true, options)
}

func (c *Consumer) processor(fn func(context.Context, []Entry) error, whole bool, options *HandlerOptions) (*Processor, error) {
	o := options.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	p := &Processor{outbox: c.outbox, name: c.name, options: o, handle: fn, whole: whole, id: newID()}
	p.resolver = core.NewResolver(func() {})
	p.worker = core.NewWorker(core.Kind{
		Name: "consumer", Claim: p.claim, Begin: p.begin, Extend: p.extend, Release: p.release, Next: p.next,
	}, core.Options{Queue: c.name, Workers: c.outbox.host.Workers, Concurrency: 1, Lease: o.Lease, Clock: c.outbox.clock, OnError: o.OnError})
	return p, nil
}

func newID() string { return uuid.Must(uuid.NewV7()).String() }

// Namespace returns the name of the consumer, for messages.
func (p *Processor) Namespace() string { return "consumer " + p.name }

// Process handles all entries that can be handled now. It returns the number of batches.
func (p *Processor) Process(ctx context.Context) (int, error) { return p.worker.Process(ctx) }

// Start starts to handle entries, if there are any and no other process handles them, and
// does not wait.
func (p *Processor) Start(ctx context.Context) (int, error) { return p.worker.Start(ctx) }

// Drain waits for the running handler, at most until ctx is done, stores the position and
// releases the lease, so that another process takes over immediately.
func (p *Processor) Drain(ctx context.Context) error {
	err := p.worker.Drain(ctx)
	p.resolver.Abandon()
	p.outbox.WakeConsumer(p.name)
	return err
}

// NextWakeAt returns the time at which entries can be handled: now if some wait, the time
// of the next attempt after a failure, or the end of another process's lease. It returns
// the zero time if nothing waits.
func (p *Processor) NextWakeAt(ctx context.Context) (time.Time, error) {
	wait, ok, err := p.worker.Next(ctx)
	if err != nil || !ok {
		return time.Time{}, err
	}
	return p.outbox.clock.Now().Add(wait), nil
}

// Subscribe calls fn when entries were committed, when an operator changed the consumer,
// and when a batch ends while more entries wait.
func (p *Processor) Subscribe(fn func(due time.Time)) (cancel func()) {
	arrived := func(due time.Time) {
		p.quiet.forget()
		fn(due)
	}
	cancels := []func(){
		p.worker.OnFree(func() { arrived(time.Time{}) }),
		p.outbox.subscribe(topic, arrived),
		p.outbox.subscribe(consumerTopic(p.name), arrived),
	}
	return func() {
		for _, cancel := range cancels {
			cancel()
		}
	}
}

// consumerTopic is the topic of wake-ups for one consumer.
func consumerTopic(name string) string { return "consumer/" + name }

// WakeConsumer wakes the processes that serve a consumer.
func (o *Outbox) WakeConsumer(name string) {
	if o.host.Hub != nil {
		o.host.Hub.Publish(consumerTopic(name), time.Time{})
	}
}
