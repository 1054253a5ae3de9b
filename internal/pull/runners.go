package pull

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/edge"
)

const (
	// most is the concurrency of a runner: the free slots of the workers limit it.
	most = 10_000
	// noLimit is the time limit of a handler: heartbeats bound the work of a worker.
	noLimit = 10 * 365 * 24 * time.Hour
)

// errForbidden is the error of work that is not in the scope of a token.
var errForbidden = errors.New("the token does not allow it")

// runner claims work of one kind for the workers.
type runner interface {
	dispatch.Processor
	// Wake makes its dispatcher look for due work.
	Wake()
}

// runners are the runners of this process. They are created when a worker first needs them.
type runners struct {
	broker *Broker

	mu       sync.Mutex
	all      map[string]runner
	wakers   []*dispatch.Waker
	started  bool
	stopped  bool
	machines *fsm.Machines
	served   map[string]int // the number of sessions that serve each key
	defined  map[definition]*defined
}

func (r *runners) open(b *Broker) {
	r.broker, r.all, r.served, r.defined = b, map[string]runner{}, map[string]int{}, map[definition]*defined{}
}

// add makes a session serve work.
func (r *runners) add(s *session, scope *auth.WorkerScope, serve Serve) error {
	if len(serve.Names) == 0 {
		return fault.Invalidf("names", "must have at least one name")
	}
	for _, name := range serve.Names {
		if err := edge.Name("name", name); err != nil {
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped {
		return errors.New("the server is stopping")
	}
	switch serve.Kind {
	case KindStep:
		return r.addSteps(s, scope, serve)
	case KindHook:
		return r.addHooks(s, scope, serve)
	case KindAlarm:
		return r.addAlarms(s, scope, serve)
	}
	return fault.Invalidf("kind", "must be step, hook or alarm, got %q", edge.Message(serve.Kind))
}

// serve records that a session serves a key of a runner. It returns true for the first session. The
// lock must be held.
func (r *runners) serve(s *session, runner, key string) bool {
	s.runners[runner] = true
	if s.keys[key] {
		return false
	}
	s.keys[key] = true
	r.served[key]++
	return r.served[key] == 1
}

// remove ends what a session serves.
func (r *runners) remove(s *session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key := range s.keys {
		if r.served[key]--; r.served[key] == 0 {
			delete(r.served, key)
			r.unhandle(key)
		}
	}
	clear(s.keys)
}

// run starts the dispatcher of a new runner. The lock must be held.
func (r *runners) run(name string, new runner) error {
	w, err := dispatch.NewWaker(new, &dispatch.WakerOptions{OnError: r.broker.options.OnError, Clock: r.broker.rt.Clock})
	if err != nil {
		return err
	}
	r.all[name] = new
	r.wakers = append(r.wakers, w)
	if r.started {
		w.Start()
	}
	return nil
}

// wake makes a runner look for due work.
func (r *runners) wake(name string) {
	r.mu.Lock()
	runner := r.all[name]
	r.mu.Unlock()
	if runner != nil {
		runner.Wake()
	}
}

// Start starts to claim work for workers.
func (b *Broker) Start() {
	b.mu.Lock()
	if b.started || b.stopping {
		b.mu.Unlock()
		return
	}
	b.started = true
	b.mu.Unlock()
	r := &b.runners
	r.mu.Lock()
	r.started = true
	for _, w := range r.wakers {
		w.Start()
	}
	r.mu.Unlock()
	b.watching.Go(b.guard)
}

// Stop stops claiming and waits for running work, at most until ctx is done. Then the rest is
// returned. Calls that wait are answered.
func (b *Broker) Stop(ctx context.Context) error {
	b.mu.Lock()
	first := !b.stopping
	b.stopping = true
	for _, w := range append([]*waiter{}, b.waiters...) {
		b.leave(w)
		w.answer()
	}
	b.mu.Unlock()
	r := &b.runners
	r.mu.Lock()
	r.stopped = true
	wakers := r.wakers
	r.mu.Unlock()
	errs := make([]error, len(wakers))
	var all sync.WaitGroup
	for i, w := range wakers {
		all.Go(func() { errs[i] = w.Stop(ctx) })
	}
	all.Wait()
	if first {
		close(b.watch)
	}
	b.watching.Wait()
	return errors.Join(errs...)
}

// guard ends the sessions of workers that have crashed.
func (b *Broker) guard() {
	for {
		timer := b.clock().NewTimer(guardEvery)
		select {
		case <-b.watch:
			timer.Stop()
			return
		case <-timer.C():
			b.check()
		}
	}
}
