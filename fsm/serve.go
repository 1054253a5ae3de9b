package fsm

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/work"
)

// DefaultConcurrency is the default maximum number of instances of a queue that a process
// runs concurrently.
const DefaultConcurrency = 100

// ServeQueue makes this process serve another queue from now on. concurrency is the
// maximum number of instances that run concurrently; 0 means DefaultConcurrency. A queue
// that is already served does not change.
func (m *Machines) ServeQueue(name string, concurrency int) error {
	if concurrency == 0 {
		concurrency = DefaultConcurrency
	}
	if err := edge.Name("queue", name); err != nil {
		return err
	}
	if err := validConcurrency(name, concurrency); err != nil {
		return err
	}
	if m.serve(name, concurrency) {
		m.rt.Hub.Notify(topic(name), time.Time{})
	}
	return nil
}

func (m *Machines) serve(name string, concurrency int) bool {
	o := work.QueueOptions{Name: name, Concurrency: concurrency, Names: m.names}
	if room := m.options.Room; room != nil {
		o.Room = func(running int) int { return room(name, running) }
	}
	return m.runner.Serve(o)
}

// Wake makes the dispatchers claim instances that were due while Options.Room was 0.
func (m *Machines) Wake() { m.runner.Freed() }

// Queues returns the names of the queues that this process serves.
func (m *Machines) Queues() []string {
	var names []string
	for _, q := range m.runner.Queues() {
		names = append(names, q.Name())
	}
	slices.Sort(names)
	return names
}

// Namespace implements dispatch.Processor.
func (m *Machines) Namespace() string { return m.runner.Namespace() }

// Subscribe implements dispatch.Source.
func (m *Machines) Subscribe(fn func(due time.Time)) (cancel func()) { return m.runner.Subscribe(fn) }

// Process implements dispatch.Processor. It also waits until instances that have passed
// their deadline, and trees, are finished.
func (m *Machines) Process(ctx context.Context) (int, error) {
	for total := 0; ; {
		n, err := m.runner.Process(ctx)
		if total += n; !m.ends.wait(ctx) || err != nil {
			return total, err
		}
	}
}

// NextWakeAt implements dispatch.Processor.
func (m *Machines) NextWakeAt(ctx context.Context) (time.Time, error) {
	return m.runner.NextWakeAt(ctx)
}

// Start implements dispatch.Starter.
func (m *Machines) Start(ctx context.Context) (int, error) { return m.runner.Start(ctx) }

// Drain implements dispatch.Starter.
func (m *Machines) Drain(ctx context.Context) error {
	return errors.Join(m.runner.Drain(ctx), m.ends.drain(ctx))
}
