package fsm

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/internal/edge"
)

// DefaultConcurrency is the maximum number of instances of a queue that a process
// runs concurrently if it is not told otherwise.
const DefaultConcurrency = 100

// served are the queues that a process serves, and the dispatchers that listen to
// them.
type served struct {
	mu          sync.Mutex
	queues      []*queue
	subscribers []*subscriber
}

// subscriber is a dispatcher that wants to know of work in every queue.
type subscriber struct {
	fn      func(due time.Time)
	cancels []func()
}

// all returns the queues that are served now.
func (s *served) all() []*queue {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.queues)
}

// add serves another queue, unless it is served already.
func (s *served) add(name string, make func() *queue) *queue {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.ContainsFunc(s.queues, func(q *queue) bool { return q.name == name }) {
		return nil
	}
	q := make()
	s.queues = append(s.queues, q)
	for _, sub := range s.subscribers {
		sub.cancels = append(sub.cancels, q.Subscribe(sub.fn))
	}
	return q
}

func (s *served) subscribe(fn func(due time.Time)) (cancel func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sub := &subscriber{fn: fn}
	for _, q := range s.queues {
		sub.cancels = append(sub.cancels, q.Subscribe(fn))
	}
	s.subscribers = append(s.subscribers, sub)
	return func() {
		s.mu.Lock()
		s.subscribers = slices.DeleteFunc(s.subscribers, func(other *subscriber) bool { return other == sub })
		cancels := sub.cancels
		sub.cancels = nil
		s.mu.Unlock()
		for _, cancel := range cancels {
			cancel()
		}
	}
}

// ServeQueue makes this process serve another queue from now on, with the maximum
// number of instances that run concurrently; 0 means DefaultConcurrency. A queue
// that is served already stays as it is.
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
	if m.served.add(name, func() *queue { return newQueue(m, name, concurrency) }) != nil {
		m.rt.Hub.Tell(topic(name), time.Time{})
	}
	return nil
}

// Queues returns the names of the queues that this process serves.
func (m *Machines) Queues() []string {
	var names []string
	for _, q := range m.served.all() {
		names = append(names, q.name)
	}
	slices.Sort(names)
	return names
}

// group returns the queues as one processor.
func (m *Machines) group() dispatch.Starter {
	queues := m.served.all()
	processors := make([]dispatch.Processor, len(queues))
	for i, q := range queues {
		processors[i] = q
	}
	group, _ := dispatch.Group(processors...) // there is at least one
	return group.(dispatch.Starter)
}

// Namespace implements dispatch.Processor.
func (m *Machines) Namespace() string { return m.group().Namespace() }

// Subscribe implements dispatch.Source.
func (m *Machines) Subscribe(fn func(due time.Time)) (cancel func()) { return m.served.subscribe(fn) }

// Process implements dispatch.Processor. It also waits for the ends of instances that
// have passed their deadline, and of trees.
func (m *Machines) Process(ctx context.Context) (int, error) {
	for total := 0; ; {
		n, err := m.group().Process(ctx)
		if total += n; !m.ends.wait(ctx) || err != nil {
			return total, err
		}
	}
}

// NextWakeAt implements dispatch.Processor.
func (m *Machines) NextWakeAt(ctx context.Context) (time.Time, error) {
	return m.group().NextWakeAt(ctx)
}

// Start implements dispatch.Starter.
func (m *Machines) Start(ctx context.Context) (int, error) { return m.group().Start(ctx) }

// Drain implements dispatch.Starter.
func (m *Machines) Drain(ctx context.Context) error {
	err := errors.Join(m.group().Drain(ctx), m.ends.drain(ctx))
	return errors.Join(err, m.flusher.close(ctx))
}
