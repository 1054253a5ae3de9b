package fsm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/core"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/unit"
)

const (
	// maxFlush is how many outcomes share a transaction at most.
	maxFlush = 1000
	// flushTimeout bounds one transaction of outcomes.
	flushTimeout = 30 * time.Second
	// lastWords is how long outcomes are waited for at least when we stop.
	lastWords = 2 * time.Second
)

// settlement is what becomes of a claim.
type settlement struct {
	decision *decision
	inline   bool  // the claim goes on with the next step
	release  bool  // not started: back to the queue
	unroute  bool  // unknown here: parked for another process
	known    bool  // of unroute: the definition is known, the step is not
	sealed   error // cannot be read here: back to the queue, for later

	repark bool // it was retried: back to what it waited for when it ended

	execution *execution
	then      func(error)
	stale     bool
	taken     bool     // of stale: the instance was cancelled
	late      []string // names of signals that keep the instance from ending
}

// flusher commits outcomes in groups, without added delay: one that arrives
// while nothing is being committed goes at once, the others go together next.
type flusher struct {
	machines *Machines

	mu      sync.Mutex
	queue   []*settlement
	leases  map[string]int // claims that each of our leases still holds
	running bool
	idle    *sync.Cond
	// resolver returns claims whose outcome was not written.
	resolver *core.Resolver
}

func newFlusher(m *Machines) *flusher {
	f := &flusher{machines: m, leases: map[string]int{}}
	f.idle = sync.NewCond(&f.mu)
	f.resolver = core.NewResolver(f.wake)
	return f
}

// lease notes how many claims a new lease has, to remove it with the last one.
func (f *flusher) lease(token string, claims int) {
	if claims == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.leases[token] = claims
}

// settle commits what becomes of a claim and then calls then. It does not wait. A
// claim that is no longer ours is core.ErrLost, or core.ErrTaken if its instance was
// cancelled.
func (f *flusher) settle(e *execution, s settlement, then func(error)) {
	s.execution, s.then = e, then
	f.mu.Lock()
	defer f.mu.Unlock()
	f.queue = append(f.queue, &s)
	if !f.running {
		f.running = true
		go f.loop()
	}
}

// loop flushes until nothing is left. While those of one group are told, the next
// is being committed.
func (f *flusher) loop() {
	var telling sync.WaitGroup
	for group := f.next(&telling); group != nil; group = f.next(&telling) {
		tell := f.flush(group)
		telling.Wait()
		telling.Go(tell)
	}
}

// next returns the next group, or nil when nothing is left and all have been told.
func (f *flusher) next(telling *sync.WaitGroup) []*settlement {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.queue) == 0 { // who is told may come with the next outcome
		f.mu.Unlock()
		telling.Wait()
		f.mu.Lock()
	}
	n := min(len(f.queue), maxFlush)
	if n == 0 {
		f.queue, f.running = nil, false
		f.idle.Broadcast()
		return nil
	}
	group := f.queue[:n:n]
	f.queue = f.queue[n:]
	return group
}

// close waits for the outcomes on their way until ctx is done, and in any case for
// a moment: the last ones are those of work that was told to stop.
func (f *flusher) close(ctx context.Context) error {
	moment, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
	defer cancel()
	defer context.AfterFunc(ctx, f.wake)()
	defer context.AfterFunc(moment, f.wake)()
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.busy() && (ctx.Err() == nil || moment.Err() == nil) {
		f.idle.Wait()
	}
	f.resolver.Abandon()
	if f.busy() {
		return ctx.Err()
	}
	return nil
}

// busy reports whether outcomes are not settled. The lock must be held.
func (f *flusher) busy() bool { return f.running || f.resolver.Busy() }

// wake has close look again.
func (f *flusher) wake() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.idle.Broadcast()
}

// flush commits a group and returns what tells everybody of it. If it has to wait for
// a row that another transaction has locked, the group is set aside.
func (f *flusher) flush(group []*settlement) (tell func()) {
	tell, locked := f.commit(group, lockWait)
	if locked {
		f.setAside(group)
	}
	return tell
}

// commit commits a group and returns what tells everybody of it, or that it would have
// to wait for a locked row longer than wait; 0 is no limit. An error that is one
// outcome's own must not hurt the others, so the group is then committed one by one.
func (f *flusher) commit(group []*settlement, wait time.Duration) (tell func(), locked bool) {
	var news news
	err := f.try(group, &news, wait)
	if err == nil {
		f.forget(group)
		return func() {
			settled(group)
			news.publish(f.machines.rt)
		}, false
	}
	var uncertain *sqldb.Uncertain
	switch {
	case store.IsLocked(err):
		return func() {}, true
	case errors.As(err, &uncertain), sqldb.IsUnavailable(err), sqldb.IsTransient(err), errors.Is(err, context.DeadlineExceeded):
		f.resolve(group, fmt.Errorf("commit outcome: %w", err))
	case len(group) == 1 && sqldb.Refused(err):
		group[0].then(f.surrender(group[0], err))
	case len(group) == 1:
		f.resolve(group, fmt.Errorf("commit outcome: %w", err))
	default:
		for _, s := range group {
			f.flush([]*settlement{s})()
		}
	}
	return func() {}, false
}

// surrender ends an instance whose outcome the database refuses: trying it again
// would be a loop. It returns why, so that nobody goes on with the instance.
func (f *flusher) surrender(s *settlement, cause error) error {
	cause = fmt.Errorf("commit outcome: %w", cause)
	if s.release || s.unroute || s.sealed != nil || s.decision.outcome.kind == kindFail {
		return cause
	}
	s.decision, s.inline = failed(cause), false
	var news news
	if err := f.try([]*settlement{s}, &news, 0); err != nil {
		return errors.Join(cause, err)
	}
	f.forget([]*settlement{s})
	news.publish(f.machines.rt)
	if s.stale {
		return s.loss()
	}
	return cause
}

// loss returns why a stale outcome was dropped.
func (s *settlement) loss() error {
	if s.taken {
		return core.ErrTaken
	}
	return core.ErrLost
}

// settled reports a committed group.
func settled(group []*settlement) {
	for _, s := range group {
		if s.stale {
			s.then(s.loss())
			continue
		}
		s.then(nil)
	}
}

// repeatable reports whether a transaction may be run again: nothing was written.
func repeatable(err error) bool {
	var uncertain *sqldb.Uncertain
	return !errors.As(err, &uncertain) && (sqldb.IsTransient(err) || sqldb.IsUnavailable(err))
}

// try commits a group in one transaction, again after a deadlock, a lost connection
// or a full disk, for about as long as the leases last: what was done need not be done
// again because the database was away for a while.
func (f *flusher) try(group []*settlement, news *news, wait time.Duration) error {
	until := clock.System.Now().Add(f.machines.options.Lease)
	for attempt := 1; ; attempt++ {
		err := f.transact(group, news, wait)
		if err == nil || !repeatable(err) || store.IsLocked(err) || clock.System.Now().After(until) {
			return err
		}
		unit.Pause(context.Background(), attempt)
	}
}

func (f *flusher) transact(group []*settlement, news *news, wait time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
	defer cancel()
	m := f.machines
	tx, err := m.rt.DB.Begin(ctx, sqldb.Write)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	interrupted, err := f.verify(ctx, tx, group, wait)
	if err != nil {
		return err
	}
	cancelled, spent, err := f.handOver(ctx, tx, interrupted)
	if err != nil {
		return err
	}
	w := newWriting(m, news)
	w.ends.finishes = make([]store.Finish, 0, len(group))
	for _, s := range group {
		if !s.stale {
			w.add(s)
		} else if slices.Contains(cancelled, s.execution.instance.ID) {
			news.woken(s.execution.queue)
		}
	}
	w.released = append(w.released, cancelled...)
	stmts := w.statements()
	if len(interrupted) > 0 {
		stmts = append(stmts, m.rt.Store.DropInterrupts(interrupted))
	}
	if empty := append(f.emptied(group), spent...); len(empty) > 0 {
		stmts = append(stmts, m.rt.Store.DropLeases(empty))
	}
	return tx.Commit(ctx, stmts...)
}

// verify locks the leases of the group and marks the outcomes whose claim is no
// longer held.
func (f *flusher) verify(ctx context.Context, tx sqldb.Runner, group []*settlement, wait time.Duration) ([]store.Held, error) {
	var tokens []string
	held := make([]store.Held, len(group))
	alive, interrupted := map[string]bool{}, map[store.Held]bool{}
	for i, s := range group {
		held[i] = store.Held{ID: s.execution.instance.ID, Token: s.execution.token}
		if _, known := alive[s.execution.token]; !known {
			alive[s.execution.token] = false
			tokens = append(tokens, s.execution.token)
		}
	}
	var drop []store.Held
	stmts := append(f.machines.rt.Store.LimitLocks(wait),
		f.machines.rt.Store.ShareLeases(tokens, func(token string) { alive[token] = true }),
		f.machines.rt.Store.Interrupted(tokens, func(h store.Held) { interrupted[h] = true }),
	)
	late := map[string][]string{}
	if ends := endings(group); len(ends) > 0 {
		stmts = append(stmts, f.machines.rt.Store.LateSignals(ends, func(id, name string) { late[id] = append(late[id], name) })...)
	}
	err := tx.Run(ctx, stmts...)
	for i, s := range group {
		s.late = late[held[i].ID]
		if interrupted[held[i]] {
			drop = append(drop, held[i])
		}
		s.taken = interrupted[held[i]]
		s.stale = !alive[held[i].Token] || s.taken
	}
	return drop, err
}

// emptied returns the leases that hold nothing once the group is committed.
func (f *flusher) emptied(group []*settlement) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	ends := map[string]int{}
	for _, s := range group {
		if !s.inline || s.stale {
			ends[s.execution.token]++
		}
	}
	var empty []string
	for token, n := range ends {
		if f.leases[token] <= n {
			empty = append(empty, token)
		}
	}
	return empty
}

// forget counts the claims of a committed group out.
func (f *flusher) forget(group []*settlement) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range group {
		if s.inline && !s.stale {
			continue
		}
		if f.leases[s.execution.token]--; f.leases[s.execution.token] <= 0 {
			delete(f.leases, s.execution.token)
		}
	}
}

func jsonText(v any) *string {
	raw, _ := json.Marshal(v) // names and numbers only
	text := string(raw)
	return &text
}
