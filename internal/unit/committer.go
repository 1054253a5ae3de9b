package unit

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/sqldb"
)

const (
	// maxGroup is the maximum number of units that share a transaction.
	maxGroup = 64
	// maxGroupStmts bounds the statements of a group, so that large units do not delay
	// the other units in the group.
	maxGroupStmts = 1024
	// outboxLanes is the maximum number of lanes with the outbox. Only one group at a
	// time holds the counter, while the next group applies its statements. More lanes
	// would only make the groups smaller.
	outboxLanes = 2
	// maxEvictions is the maximum number of failing units that are removed from a group.
	// After the next failure, the units run one by one.
	maxEvictions = 3
	// maxAlone is the maximum number of attempts of a unit that runs alone and fails with
	// a transient error, such as a deadlock or a lost connection.
	maxAlone = 5
)

// Committer commits units in groups, without added delay. A unit that arrives while a
// lane is idle is committed immediately. Units that arrive while all lanes are busy share
// the next transaction.
//
// A unit never fails because of another unit in its group. When a unit fails, the group
// is rolled back and run again without it, and the failing unit runs alone to get its own
// error. There are no savepoints: rolling back to a savepoint would also roll back a
// reservation made after it.
type Committer struct {
	// Writer applies the units.
	Writer
	// Timeout bounds one transaction.
	Timeout time.Duration

	mu     sync.Mutex
	queue  []*job
	ready  *sync.Cond
	closed bool
	lanes  sync.WaitGroup

	stats counters
}

// job is a unit that is queued or being committed.
type job struct {
	unit *Unit
	done chan error
}

// Start starts the lanes that serve Commit, as many as the database can use.
func (c *Committer) Start() {
	c.ready = sync.NewCond(&c.mu)
	lanes := max(c.Store.DB().Dialect().Lanes, 1)
	if c.Outbox {
		lanes = min(lanes, outboxLanes)
	}
	for range lanes {
		c.lanes.Go(c.lane)
	}
}

// Close lets the lanes commit the queued units and waits for them. Their transactions are
// bounded by Timeout.
func (c *Committer) Close() {
	c.mu.Lock()
	c.closed = true
	c.ready.Broadcast()
	c.mu.Unlock()
	c.lanes.Wait()
}

// Commit commits the unit and returns when its outcome is known. If the context is
// cancelled, a queued unit is removed from the queue. If the unit is already being
// committed, Commit waits for its outcome, because the caller needs to know it.
func (c *Committer) Commit(ctx context.Context, u *Unit) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if c.emits(u) {
		if err := u.prepare(); err != nil {
			return err
		}
	}
	j := &job{unit: u, done: make(chan error, 1)}
	if err := c.enqueue(j); err != nil {
		return err
	}
	select {
	case err := <-j.done:
		return err
	case <-ctx.Done():
		if c.withdraw(j) {
			return ctx.Err()
		}
		return <-j.done
	}
}

func (c *Committer) enqueue(j *job) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return fault.ErrClosed
	}
	c.queue = append(c.queue, j)
	c.ready.Signal()
	return nil
}

func (c *Committer) withdraw(j *job) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, waiting := range c.queue {
		if waiting == j {
			c.queue = append(c.queue[:i], c.queue[i+1:]...)
			return true
		}
	}
	return false
}

// lane commits groups until the committer is closed and its queue is empty.
func (c *Committer) lane() {
	for {
		group := c.take()
		if group == nil {
			return
		}
		c.commit(group)
	}
}

func (c *Committer) take() []*job {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.queue) == 0 {
		if c.closed {
			return nil
		}
		c.ready.Wait()
	}
	n, stmts := 0, 0
	for n < len(c.queue) && n < maxGroup {
		stmts += len(c.queue[n].unit.Stmts)
		if n > 0 && stmts > maxGroupStmts {
			break
		}
		n++
	}
	group := c.queue[:n:n]
	c.queue = append([]*job(nil), c.queue[n:]...)
	return group
}

// commit commits the units of a group and reports the outcome of each.
func (c *Committer) commit(group []*job) {
	var evicted []*job
	for len(group) > 1 {
		err := c.try(group)
		if settled(group, err) {
			group = nil
			break
		}
		culprit := culprit(err)
		if culprit < 0 || len(evicted) == maxEvictions {
			break
		}
		evicted = append(evicted, group[culprit])
		group = append(append([]*job(nil), group[:culprit]...), group[culprit+1:]...)
	}
	for _, j := range append(group, evicted...) {
		c.alone(j)
	}
}

// alone commits one unit in its own transaction, retrying transient errors.
func (c *Committer) alone(j *job) {
	for attempt := 1; ; attempt++ {
		err := c.try([]*job{j})
		if settled([]*job{j}, err) {
			return
		}
		if !sqldb.IsTransient(err) || attempt == maxAlone {
			j.done <- bare(err)
			return
		}
		Pause(context.Background(), attempt)
	}
}

// try runs the group in one transaction.
func (c *Committer) try(group []*job) (err error) {
	begun := clock.System.Now()
	defer func() { c.stats.count(len(group), clock.System.Now().Sub(begun), err) }()
	ctx, cancel := context.WithTimeout(context.Background(), c.Timeout)
	defer cancel()
	tx, err := c.Store.DB().Begin(ctx, sqldb.Write)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	units := make([]*Unit, len(group))
	for i, j := range group {
		units[i] = j.unit
	}
	last, err := c.Apply(ctx, tx, units, true)
	if err != nil {
		return err
	}
	return tx.Commit(ctx, last...)
}

// settled sends the outcome to all units of a group if they have the same outcome:
// committed or uncertain. It reports whether it did.
func settled(group []*job, err error) bool {
	var uncertain *sqldb.Uncertain
	if err != nil && !errors.As(err, &uncertain) {
		return false
	}
	for _, j := range group {
		if err == nil {
			j.done <- nil
			continue
		}
		j.done <- &fault.Uncertain{Unit: j.unit.ID, Err: uncertain.Err}
	}
	return true
}

// culprit returns the index of the unit that made the group fail, or -1 if the error does
// not belong to a single unit.
func culprit(err error) int {
	var e *CulpritError
	if sqldb.IsTransient(err) || !errors.As(err, &e) {
		return -1
	}
	return e.Unit
}

// bare removes the wrapping error that only the committer needs.
func bare(err error) error {
	var e *CulpritError
	if errors.As(err, &e) {
		return e.Err
	}
	return err
}

// Pause waits before the next attempt of a transaction. The wait is random (full jitter),
// so that competing transactions do not collide again. Its upper bound is 4 ms after the
// first attempt and doubles with each attempt, up to 200 ms. Pause waits in real time,
// regardless of the engine's clock, because the database needs the time.
func Pause(ctx context.Context, attempt int) {
	ceiling := min(2*time.Millisecond<<min(attempt, 10), 200*time.Millisecond)
	timer := clock.System.NewTimer(rand.N(ceiling) + time.Microsecond)
	defer timer.Stop()
	select {
	case <-timer.C():
	case <-ctx.Done():
	}
}
