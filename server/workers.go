package server

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/perdure/perdure/dispatch"
)

// workers are the dispatchers that run.
type workers struct {
	mu      sync.Mutex
	running []*dispatch.Alarm
	stopped bool
}

// Start begins to run due work, if the process has the role of a worker. A second
// Start changes nothing.
func (s *Server) Start() error {
	s.workers.mu.Lock()
	defer s.workers.mu.Unlock()
	if s.workers.running != nil || s.workers.stopped || !s.has(Worker) {
		return nil
	}
	for _, p := range s.processors() {
		d, err := dispatch.NewAlarm(p, &dispatch.AlarmOptions{OnError: s.options.OnError, Clock: s.eng.Runtime().Clock})
		if err != nil {
			return fmt.Errorf("dispatch %s: %w", p.Namespace(), err)
		}
		s.workers.running = append(s.workers.running, d)
	}
	if err := s.announce(); err != nil {
		s.workers.running = nil
		return err
	}
	for _, d := range s.workers.running {
		d.Start()
	}
	return nil
}

// announce makes the machines known, so that they can be started at once.
func (s *Server) announce() error {
	ctx, cancel := context.WithTimeout(context.Background(), s.eng.Runtime().Timeout)
	defer cancel()
	return s.machines.Announce(ctx)
}

func (s *Server) processors() []dispatch.Processor {
	all := []dispatch.Processor{s.machines}
	for _, h := range s.options.Hooks {
		all = append(all, h)
	}
	if s.options.Tasks != nil {
		all = append(all, s.options.Tasks)
	}
	return append(all, s.options.Processors...)
}

// Stop ends the claiming of work and waits for what runs, at most until ctx is
// done; what has not ended by then is claimed by others when its lease expires. A
// server that was stopped goes on answering requests, and cannot be started again.
func (s *Server) Stop(ctx context.Context) error {
	s.workers.mu.Lock()
	running := s.workers.running
	s.workers.running, s.workers.stopped = nil, true
	s.workers.mu.Unlock()
	errs := make([]error, len(running))
	var all sync.WaitGroup
	for i, d := range running {
		all.Go(func() { errs[i] = d.Stop(ctx) })
	}
	all.Wait()
	return errors.Join(errs...)
}
