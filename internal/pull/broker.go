package pull

import (
	"cmp"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/hook"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/work"
)

const (
	// DefaultLease is the time after which a worker without a heartbeat has crashed.
	DefaultLease = 30 * time.Second
	minLease     = time.Second
	maxLease     = 5 * time.Minute
	// maxHold is the longest time for which a call waits for work.
	maxHold = 25 * time.Second
	// maxBatch is the largest number of items in a call, maxSlots the largest number of slots.
	maxBatch = 200
	maxSlots = 10_000
	// maxServes is the largest number of entries and names in a session.
	maxServes = 1000
	// maxSessions is the largest number of sessions of one principal in this process.
	maxSessions = 1000
	// gather is the time for which claimed items are collected before they are handed out, so that
	// a batch is shared by all workers that wait.
	gather = time.Millisecond
	// patience is the time for which an item waits in this process for a worker that serves it.
	patience = 2 * time.Second
	// farewell is the time for which a cancelled item waits until its worker has stopped it.
	farewell = 8 * time.Second
	// kept is the number of answers that a session repeats.
	kept = 64
)

// ErrSession reports that a session does not exist. The worker must open another one.
var ErrSession = errors.New("the session does not exist")

// Options configure a Broker. All fields except Machines are required.
type Options struct {
	// Machines configures the state machines. Nil: the defaults.
	Machines *fsm.Options
	// SweepHooks is true if no other part of this process removes finished hooks.
	SweepHooks bool
	// OnError receives background errors.
	OnError func(error)
}

// Broker hands the work of this process to workers. It is safe for concurrent use.
type Broker struct {
	eng     *perdure.Engine
	rt      *host.Runtime
	options Options
	runners runners

	mu       sync.Mutex
	sessions map[string]*session
	tasks    map[string]*task // by token, from the claim to its end
	pending  []*task          // not handed out yet
	waiters  []*waiter        // in the order of their arrival
	assigned map[string]int   // tasks of each runner that are handed out
	dealing  bool
	started  bool
	stopping bool
	watch    chan struct{} // is closed by Stop
	watching sync.WaitGroup
	purged   time.Time
	hooks    map[string]*hook.Hooks // to trigger hooks, by namespace
}

// New returns a broker. No work is claimed before Start.
func New(eng *perdure.Engine, o Options) *Broker {
	b := &Broker{
		eng: eng, rt: host.Of(eng), options: o, sessions: map[string]*session{}, tasks: map[string]*task{}, assigned: map[string]int{},
		watch: make(chan struct{}), hooks: map[string]*hook.Hooks{},
	}
	b.runners.open(b)
	return b
}

// Open opens a session for a principal. scope limits what it may serve.
func (b *Broker) Open(principal string, scope *auth.WorkerScope, h Hello) (Welcome, error) {
	edge.Default(&h.Lease, DefaultLease)
	edge.Default(&h.Slots, 1)
	names := 0
	for _, s := range h.Serves {
		names += len(s.Names)
	}
	switch {
	case h.Slots < 1 || h.Slots > maxSlots:
		return Welcome{}, fault.Invalidf("slots", "must be between 1 and %d, got %d", maxSlots, h.Slots)
	case h.Lease < minLease || h.Lease > maxLease:
		return Welcome{}, fault.Invalidf("lease", "must be between %v and %v, got %v", minLease, maxLease, h.Lease)
	case len(h.Serves) == 0 || len(h.Serves) > maxServes || names > maxServes:
		return Welcome{}, fault.Invalidf("serves", "must have between 1 and %d entries and names", maxServes)
	}
	s := &session{
		broker: b, id: b.rt.NewID(), principal: principal, name: cmp.Or(h.Name, "worker"), lease: h.Lease, slots: h.Slots,
		keys: map[string]bool{}, runners: map[string]bool{}, tasks: map[string]*task{}, seen: clock.System.Now(),
	}
	w := Welcome{Session: s.id, Lease: h.Lease, Beat: h.Lease / 3, Hold: min(maxHold, h.Lease*5/6), Batch: maxBatch}
	for i, serve := range h.Serves {
		if err := b.runners.add(s, scope, serve); err != nil {
			w.Refused = append(w.Refused, refusal(i, err))
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	open := 0
	for _, other := range b.sessions {
		if other.principal == principal {
			open++
		}
	}
	if open >= maxSessions {
		b.runners.remove(s)
		return Welcome{}, fault.Invalidf("session", "a caller may have at most %d sessions", maxSessions)
	}
	b.sessions[s.id] = s
	return w, nil
}

func refusal(i int, err error) Refusal {
	var invalid *fault.Invalid
	code := "unavailable"
	switch {
	case errors.Is(err, errForbidden):
		code = "forbidden"
	case errors.As(err, &invalid):
		code = "invalid"
	}
	return Refusal{Serves: i, Code: code, Detail: err.Error()}
}

// find returns the session of a principal and records that its worker is alive.
func (b *Broker) find(id, principal string) (*session, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.sessions[id]
	if s == nil || s.principal != principal {
		return nil, ErrSession
	}
	s.seen = clock.System.Now()
	return s, nil
}

// Close ends a session. Its work is returned without an attempt.
func (b *Broker) Close(id, principal string) error {
	s, err := b.find(id, principal)
	if err != nil {
		return err
	}
	b.end(s, func(t *task) { t.finish(verdict{err: work.ErrReturned}) })
	return nil
}

// end removes a session and finishes its tasks.
func (b *Broker) end(s *session, finish func(*task)) {
	b.mu.Lock()
	if b.sessions[s.id] != s {
		b.mu.Unlock()
		return
	}
	delete(b.sessions, s.id)
	var left []*task
	for _, t := range s.tasks {
		left = append(left, t)
	}
	if s.waiter != nil {
		b.leave(s.waiter)
		close(s.waiter.over)
	}
	b.mu.Unlock()
	for _, t := range left {
		finish(t)
	}
	b.runners.remove(s)
}

// Release returns work that a worker has not started, without an attempt.
func (b *Broker) Release(id, principal string, tokens []string) error {
	s, err := b.find(id, principal)
	if err != nil {
		return err
	}
	for _, token := range tokens {
		if t := b.taskOf(s, token); t != nil {
			t.finish(verdict{err: work.ErrReturned})
		}
	}
	return nil
}

func (b *Broker) taskOf(s *session, token string) *task {
	b.mu.Lock()
	defer b.mu.Unlock()
	return s.tasks[token]
}

// Beat records that a worker is alive and runs these tokens. Work that it does not name was not
// received by it: it is returned after the second heartbeat.
func (b *Broker) Beat(id, principal string, running []string) (Pulse, error) {
	s, err := b.find(id, principal)
	if err != nil {
		return Pulse{}, err
	}
	b.mu.Lock()
	p := Pulse{State: b.state(), Cancel: s.cancels()}
	for _, token := range running {
		if s.tasks[token] == nil {
			p.Lost = append(p.Lost, token)
		}
	}
	var missing []*task
	old := clock.System.Now().Add(-s.lease / 6)
	for token, t := range s.tasks {
		if t.digest != "" || t.handed.After(old) || slices.Contains(running, token) {
			t.missing = 0
		} else if t.missing++; t.missing > 1 {
			missing = append(missing, t)
		}
	}
	b.mu.Unlock()
	for _, t := range missing {
		t.finish(verdict{err: work.ErrReturned})
	}
	return p, nil
}

// state returns the state that workers should have. The lock must be held.
func (b *Broker) state() string {
	if b.stopping || !b.started {
		return StateQuiet
	}
	return StateRun
}
