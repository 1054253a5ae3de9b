package server

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/internal/host"
)

// workers are the running dispatchers and the heartbeats of the process.
type workers struct {
	mu      sync.Mutex
	started bool
	stopped bool
	running []*dispatch.Waker
	node    *node
	drains  sync.WaitGroup
}

// Start starts to run due work, if the process has the role Worker, and to send heartbeats.
// A second Start changes nothing.
func (s *Server) Start() error {
	w := &s.workers
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.started || w.stopped {
		return nil
	}
	if s.has(Worker) {
		if err := s.announce(); err != nil {
			return err
		}
		running, err := s.dispatchers()
		if err != nil {
			return err
		}
		w.running = running
	}
	n, err := s.newNode()
	if err != nil {
		return err
	}
	n.drain = func() { w.drains.Go(s.drainSoon) }
	w.node, w.started = n, true
	for _, d := range w.running {
		d.Start()
	}
	if s.has(Worker) {
		s.remote.Start()
		s.pull.Start()
	}
	n.start()
	return nil
}

// announce records the definitions, so that instances of them can be started immediately.
func (s *Server) announce() error {
	ctx, cancel := context.WithTimeout(context.Background(), host.Of(s.eng).Timeout)
	defer cancel()
	return s.machines.Announce(ctx)
}

func (s *Server) dispatchers() ([]*dispatch.Waker, error) {
	var all []*dispatch.Waker
	for _, p := range s.processors() {
		d, err := dispatch.NewWaker(p, &dispatch.WakerOptions{OnError: s.options.OnError, Clock: host.Of(s.eng).Clock})
		if err != nil {
			return nil, fmt.Errorf("dispatch %s: %w", p.Namespace(), err)
		}
		all = append(all, d)
	}
	return all, nil
}

// processors returns the processors of this process.
func (s *Server) processors() []dispatch.Processor {
	all := []dispatch.Processor{s.machines}
	for _, h := range s.options.Hooks {
		all = append(all, h)
	}
	if s.options.Tasks != nil {
		all = append(all, s.options.Tasks)
	}
	all = append(all, s.options.Alarms, s.options.Actors)
	return append(all, s.options.Processors...)
}

// drainTimeout bounds a drain that an operator has requested.
const drainTimeout = 5 * time.Minute

// drainSoon stops the dispatchers at the request of an administrator. The process continues
// to serve requests.
func (s *Server) drainSoon() {
	ctx, cancel := context.WithTimeout(context.Background(), drainTimeout)
	defer cancel()
	if err := s.endWork(ctx); err != nil {
		s.options.OnError(fmt.Errorf("drain: %w", err))
	}
}

// endWork stops the dispatchers.
func (s *Server) endWork(ctx context.Context) error {
	s.workers.mu.Lock()
	running := s.workers.running
	s.workers.running = nil
	s.workers.mu.Unlock()
	errs := make([]error, len(running)+1)
	var all sync.WaitGroup
	if s.pull != nil {
		all.Go(func() { errs[len(running)] = s.pull.Stop(ctx) })
	}
	for i, d := range running {
		all.Go(func() { errs[i] = d.Stop(ctx) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// Stop stops claiming work and waits for running work, at most until ctx is done. Other
// processes claim unfinished work when its lease expires. Stop ends the streams, so that
// their clients connect to another server. A stopped server continues to serve requests,
// and cannot be started again.
func (s *Server) Stop(ctx context.Context) error {
	s.workers.mu.Lock()
	n, first := s.workers.node, !s.workers.stopped
	s.workers.stopped = true
	s.workers.mu.Unlock()
	err := s.endWork(ctx)
	s.api.EndStreams()
	if first {
		s.remote.Close()
	}
	if n != nil && first {
		n.stop()
		s.workers.drains.Wait()
	}
	return err
}
