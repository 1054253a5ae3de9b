// Package dispatch decides when due work is run.
//
// A Processor knows one kind of durable work: how to run what is due, and when
// something will be due next. A dispatcher drives it: Poller looks at regular
// intervals, Waker sleeps until exactly the next due time. Both are woken
// when work is committed in this process and, on PostgreSQL and SQLite, in others.
//
//	d, err := dispatch.NewPoller(hooks, nil)
//	…
//	d.Start()
//	defer d.Stop(ctx)
//
// Several dispatchers, in one process or in many, may drive the same work: it
// is claimed, so each piece runs once.
package dispatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure/fault"
)

// Processor runs one kind of durable work.
type Processor interface {
	// Namespace names the work, for messages.
	Namespace() string
	// Process runs everything that is due now and returns how many pieces it
	// ran, successful or not. It must be safe for concurrent use.
	Process(ctx context.Context) (int, error)
	// NextWakeAt returns when work will be due next, by this process's clock.
	// It is in the past if some is due, and zero if there is none. A time that
	// comes with an error counts too: it is what is known.
	NextWakeAt(ctx context.Context) (time.Time, error)
}

// Starter is a Processor that can begin due work without waiting for it. The
// dispatchers prefer it, so that a slow piece of work delays nobody.
type Starter interface {
	Processor
	// Start begins what is due, as far as there is room, and returns how many
	// pieces were begun.
	Start(ctx context.Context) (int, error)
	// Drain stops beginning work and waits for what was begun, at most until
	// ctx is done.
	Drain(ctx context.Context) error
}

// Source is a Processor that knows when work arrives for it.
type Source interface {
	// Subscribe calls fn when work has arrived: with its due time, or with
	// the zero time if it is due now. fn returns at once.
	Subscribe(fn func(due time.Time)) (cancel func())
}

// group runs several processors as one.
type group []Processor

// Group returns a processor that runs all of the given ones. An error of one
// does not keep the others from running.
func Group(processors ...Processor) (Processor, error) {
	if slices.Contains(processors, nil) {
		return nil, fault.Invalidf("processor", "is nil")
	}
	switch len(processors) {
	case 0:
		return nil, fault.Invalidf("group", "has no processors")
	case 1:
		return processors[0], nil
	}
	return group(processors), nil
}

// Namespace returns the namespaces of the group, with commas between.
func (g group) Namespace() string {
	names := make([]string, len(g))
	for i, p := range g {
		names[i] = p.Namespace()
	}
	return strings.Join(names, ",")
}

// Process runs all processors at the same time.
func (g group) Process(ctx context.Context) (int, error) {
	return g.each(ctx, Processor.Process)
}

// Start begins the due work of all processors.
func (g group) Start(ctx context.Context) (int, error) {
	return g.each(ctx, func(p Processor, ctx context.Context) (int, error) { return start(ctx, p) })
}

// each calls run for all processors at the same time and adds up the results.
func (g group) each(ctx context.Context, run func(Processor, context.Context) (int, error)) (int, error) {
	type result struct {
		n   int
		err error
	}
	results := make(chan result, len(g))
	for _, p := range g {
		go func() {
			n, err := guard(func() (int, error) { return run(p, ctx) })
			if err != nil {
				err = fmt.Errorf("%s: %w", p.Namespace(), err)
			}
			results <- result{n, err}
		}()
	}
	total := 0
	var errs []error
	for range g {
		r := <-results
		total += r.n
		errs = append(errs, r.err)
	}
	return total, errors.Join(errs...)
}

// NextWakeAt returns the earliest wake of all processors that know theirs,
// beside the errors of the others.
func (g group) NextWakeAt(ctx context.Context) (time.Time, error) {
	var earliest time.Time
	var errs []error
	for _, p := range g {
		at, err := nextWakeAt(ctx, p)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", p.Namespace(), err))
		}
		earliest = earlier(earliest, at)
	}
	return earliest, errors.Join(errs...)
}

// nextWakeAt asks a processor for its next wake. A panic is an error.
func nextWakeAt(ctx context.Context, p Processor) (at time.Time, err error) {
	_, err = guard(func() (n int, err error) {
		at, err = p.NextWakeAt(ctx)
		return 0, err
	})
	return at, err
}

// earlier returns the earlier of two times; the zero time is never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// Subscribe subscribes to all processors that know when work arrives.
func (g group) Subscribe(fn func(due time.Time)) (cancel func()) {
	var cancels []func()
	for _, p := range g {
		cancels = append(cancels, subscribe(p, fn))
	}
	return func() {
		for _, cancel := range cancels {
			cancel()
		}
	}
}

// Drain drains all processors within the same time.
func (g group) Drain(ctx context.Context) error {
	_, err := g.each(ctx, func(p Processor, ctx context.Context) (int, error) { return 0, drain(ctx, p) })
	return err
}

func start(ctx context.Context, p Processor) (int, error) {
	if s, ok := p.(Starter); ok {
		return s.Start(ctx)
	}
	return p.Process(ctx)
}

func drain(ctx context.Context, p Processor) error {
	if s, ok := p.(Starter); ok {
		return s.Drain(ctx)
	}
	return nil
}

func subscribe(p Processor, fn func(time.Time)) (cancel func()) {
	if s, ok := p.(Source); ok {
		return s.Subscribe(fn)
	}
	return func() {}
}

// logError is what OnError is by default.
func logError(err error) { slog.Error("dispatch due work", "error", err) }
