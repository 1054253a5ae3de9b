// Package dispatch decides when processors run due work.
//
// A Processor runs the due work of one kind and reports when work will be due next. A
// dispatcher calls it: a Poller checks for due work at regular intervals, a Waker sleeps
// until exactly the next due time. Both are woken when work is committed in this process
// and, on PostgreSQL and SQLite, in other processes.
//
//	d, err := dispatch.NewPoller(hooks, nil)
//	…
//	d.Start()
//	defer d.Stop(ctx)
//
// Several dispatchers, in one process or in several, may run the same work. Each work
// item is claimed by only one of them.
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
	// Namespace returns a name of the work, for messages.
	Namespace() string
	// Process runs all work that is due now. It returns the number of work items that it
	// ran, successful or not. It must be safe for concurrent use.
	Process(ctx context.Context) (int, error)
	// NextWakeAt returns the time when work will be due next, by this process's clock. It
	// is in the past if work is due, and zero if there is no work. If NextWakeAt returns
	// a time together with an error, the time is also used.
	NextWakeAt(ctx context.Context) (time.Time, error)
}

// Starter is a Processor that can start due work without waiting for it. Dispatchers call
// Start rather than Process, so that a slow work item does not delay others.
type Starter interface {
	Processor
	// Start starts due work, up to the free capacity, and returns the number of started
	// work items.
	Start(ctx context.Context) (int, error)
	// Drain stops starting work and waits for running work, at most until ctx is done.
	Drain(ctx context.Context) error
}

// Source is a Processor that sends a wake-up when work arrives.
type Source interface {
	// Subscribe calls fn when work has arrived, with its due time, or with the zero time
	// if it is due now. fn must return immediately.
	Subscribe(fn func(due time.Time)) (cancel func())
}

// group runs several processors as one.
type group []Processor

// Group returns a processor that runs all given processors. An error of one does not
// prevent the others from running.
func Group(processors ...Processor) (Processor, error) {
	if slices.Contains(processors, nil) {
		return nil, fault.Invalidf("processor", "must not be nil")
	}
	switch len(processors) {
	case 0:
		return nil, fault.Invalidf("group", "must have at least one processor")
	case 1:
		return processors[0], nil
	}
	return group(processors), nil
}

// Namespace returns the namespaces of the group, comma-separated.
func (g group) Namespace() string {
	names := make([]string, len(g))
	for i, p := range g {
		names[i] = p.Namespace()
	}
	return strings.Join(names, ",")
}

// Process runs all processors concurrently.
func (g group) Process(ctx context.Context) (int, error) {
	return g.each(ctx, Processor.Process)
}

// Start starts the due work of all processors.
func (g group) Start(ctx context.Context) (int, error) {
	return g.each(ctx, func(p Processor, ctx context.Context) (int, error) { return start(ctx, p) })
}

// each calls run for all processors concurrently and adds up the results.
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

// NextWakeAt returns the earliest time that a processor returned, and the joined errors
// of all processors.
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

// nextWakeAt calls NextWakeAt of a processor. A panic becomes an error.
func nextWakeAt(ctx context.Context, p Processor) (at time.Time, err error) {
	_, err = guard(func() (n int, err error) {
		at, err = p.NextWakeAt(ctx)
		return 0, err
	})
	return at, err
}

// earlier returns the earlier of two times. The zero time means never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// Subscribe subscribes to all processors that are a Source.
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

// Drain drains all processors concurrently.
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

// logError is the default of OnError.
func logError(err error) { slog.Error("dispatch failed", "error", err) }
