package fsm

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/unit"
	"github.com/perdure/perdure/internal/work"
)

const (
	// maxOverdue is the maximum number of instances past their deadline that one
	// transaction finishes.
	maxOverdue = 100
	// failedDeadline is the delay before the next attempt to finish an instance, after an
	// attempt failed.
	failedDeadline = time.Second
	// maxIdle is the maximum number of consecutive rounds without progress.
	maxIdle = 50
	// maxRest is the longest pause after a transaction. The pause is as long as the
	// transaction took, so that other work comes first.
	maxRest = 50 * time.Millisecond
)

// ends finishes instances that have passed their deadline, and the children of finished
// instances. It runs outside the claim path, in transactions of bounded size, and only
// while there is something to finish.
type ends struct {
	machines *Machines

	mu      sync.Mutex
	serving bool // this process serves queues
	stopped bool
	running bool
	again   bool // run another round before stopping
	stop    context.CancelFunc
	idle    *sync.Cond
	rounds  int // rounds that changed something, since the last wait

	failing map[string]time.Time // instances that could not be finished, and the time of the next attempt
}

func newEnds(m *Machines) *ends {
	e := &ends{machines: m, failing: map[string]time.Time{}}
	e.idle = sync.NewCond(&e.mu)
	return e
}

// serve allows the process to finish trees, and starts if something is due.
func (e *ends) serve(due bool) {
	e.mu.Lock()
	e.serving = true
	e.mu.Unlock()
	if due {
		e.kick()
	}
}

// kick starts to look for work, if this process serves queues. It does not wait.
func (e *ends) kick() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.serving || e.stopped {
		return
	}
	if e.again = true; e.running {
		return
	}
	var ctx context.Context
	ctx, e.stop = context.WithCancel(context.Background())
	e.running = true
	go e.loop(ctx)
}

// wait waits until the loop stops or ctx is done, and reports whether a round has changed
// something since the last call.
func (e *ends) wait(ctx context.Context) bool {
	defer context.AfterFunc(ctx, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.idle.Broadcast()
	})()
	e.mu.Lock()
	defer e.mu.Unlock()
	for e.running && ctx.Err() == nil {
		e.idle.Wait()
	}
	changed := e.rounds > 0
	e.rounds = 0
	return changed
}

// drain stops the loop after the current transaction, and waits for it until ctx is done.
// Other processes continue.
func (e *ends) drain(ctx context.Context) error {
	e.mu.Lock()
	e.stopped = true
	if e.stop != nil {
		e.stop()
	}
	e.mu.Unlock()
	e.wait(ctx)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.running {
		return errors.New("drain finished instances: still running")
	}
	return nil
}

// next reports whether to run another round.
func (e *ends) next(ctx context.Context) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.again || ctx.Err() != nil {
		e.running = false
		e.stop()
		e.idle.Broadcast()
		return false
	}
	e.again = false
	return true
}

// loop runs until there is nothing left that this process can do now.
func (e *ends) loop(ctx context.Context) {
	for e.next(ctx) {
		for idle := 0; idle < maxIdle && ctx.Err() == nil; {
			began := clock.System.Now()
			changed, left, err := e.round(ctx)
			if err != nil && ctx.Err() == nil {
				e.machines.options.OnError(fmt.Errorf("finish instances: %w", err))
			}
			switch {
			case changed:
				idle = 0
				e.count()
				rest(ctx, min(clock.System.Now().Sub(began), maxRest))
			case left:
				idle++
				unit.Pause(ctx, idle)
			default:
				idle = maxIdle
			}
		}
	}
}

func (e *ends) count() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.rounds++
}

// rest waits in real time, because it relieves the database.
func rest(ctx context.Context, d time.Duration) {
	timer := clock.System.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
	case <-ctx.Done():
	}
}

// round finishes one set of overdue instances and handles one piece of the trees. left is
// true if other transactions have locked something that was found.
func (e *ends) round(ctx context.Context) (changed, left bool, err error) {
	changed, left, err = e.overdue(ctx)
	p, pieceErr := e.machines.endPiece(ctx, "")
	if pieceErr != nil {
		return changed, left || sqldb.IsTransient(pieceErr), errors.Join(err, pieceErr)
	}
	return changed || p.handled > 0 || p.taken > 0 && p.skipped == 0, left || p.skipped > 0, err
}

// overdue finishes instances that have passed their deadline, the earliest first.
func (e *ends) overdue(ctx context.Context) (changed, left bool, err error) {
	m := e.machines
	var ids []string
	err = m.read(ctx, m.rt.Store.ExpiredDeadlines(e.failed(), maxOverdue, m.rt.Now(), func(id string) { ids = append(ids, id) }))
	if err != nil || len(ids) == 0 {
		return false, false, err
	}
	handled, err := e.expire(ctx, ids)
	if err == nil {
		return handled > 0, handled < len(ids), nil
	}
	if sqldb.IsTransient(err) || ctx.Err() != nil {
		return false, true, err
	}
	var errs []error
	for _, id := range ids { // one instance's error must not block the others
		n, err := e.expire(ctx, []string{id})
		if err != nil {
			e.fail(id)
			errs = append(errs, fmt.Errorf("finish instance %s after its deadline: %w", id, err))
		}
		changed = changed || n > 0
	}
	return changed, false, errors.Join(errs...)
}

// expire finishes instances in one transaction and returns how many it handled.
func (e *ends) expire(ctx context.Context, ids []string) (int, error) {
	m := e.machines
	ctx, cancel := context.WithTimeout(ctx, m.rt.Timeout)
	defer cancel()
	all := make([]endTarget, len(ids))
	for i, id := range ids {
		all[i] = endTarget{id: id, status: Failed, reason: deadlineExceeded, root: id}
	}
	var p *piece
	err := unit.Overtakable(ctx, m.rt.DB, func() error {
		p = &piece{machines: m, wakeups: &work.Wakeups{}}
		return unit.Once(ctx, m.rt.DB, sqldb.Write, func(tx sqldb.Tx) error {
			p.taking = newTaking(m, tx, all, p.wakeups)
			return p.taking.run(ctx)
		})
	})
	if err != nil {
		return 0, err
	}
	p.announce()
	return len(p.taking.handled), nil
}

// deadlineExceeded is the error of an instance that has passed its deadline.
const deadlineExceeded = "deadline exceeded"

// failed returns the instances that could not be finished within the last failedDeadline.
func (e *ends) failed() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := clock.System.Now()
	ids := []string{}
	for id, until := range e.failing {
		if now.After(until) {
			delete(e.failing, id)
			continue
		}
		ids = append(ids, id)
	}
	return ids
}

func (e *ends) fail(id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.failing[id] = clock.System.Now().Add(failedDeadline)
}

// interruptHere cancels the contexts of steps that run in this process and whose claims
// were revoked.
func (m *Machines) interruptHere(held []store.Held) {
	if len(held) == 0 {
		return
	}
	lost := map[store.Held]bool{}
	for _, h := range held {
		lost[h] = true
	}
	m.runner.Lost(func(id, token string) bool { return lost[store.Held{ID: id, Token: token}] })
}
