package unit

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
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
	// maxAlone is the maximum number of attempts of a unit that runs alone, or of a group,
	// that fails with a transient error, such as a deadlock or a lost connection.
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
//
// A unit never waits for a row that another unit needs. A group waits only briefly for a
// locked row. Then the unit that needs the row leaves the group, and its caller commits it
// in a transaction of its own; see apart.
type Committer struct {
	// Writer applies the units.
	Writer
	// Timeout bounds one transaction of a group. A unit is bounded by the context of its
	// caller.
	Timeout time.Duration

	mu     sync.Mutex
	queue  []*job
	ready  *sync.Cond
	closed bool
	lanes  sync.WaitGroup

	jams     jams
	slots    chan struct{} // permissions to wait for a locked row in a transaction
	starting atomic.Int32  // lanes that wait for the start of a transaction
	holder   atomic.Pointer[string]

	stats counters
}

// The states of a job. A job is sealed while COMMIT may be sent. Until then its caller may
// leave.
const (
	running int32 = iota
	sealed
	left
)

// job is a unit that is queued or being committed.
type job struct {
	unit  *Unit
	ctx   context.Context
	done  chan error
	state atomic.Int32
}

// Start starts the lanes that serve Commit, as many as the database can use.
func (c *Committer) Start() {
	c.ready = sync.NewCond(&c.mu)
	c.slots = make(chan struct{}, apartSlots)
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
// cancelled before COMMIT is sent, nothing is written and Commit returns immediately. If
// a lock of another transaction is the reason, the error is a *fault.Locked.
func (c *Committer) Commit(ctx context.Context, u *Unit) error {
	if c.emits(u) {
		if err := u.prepare(); err != nil {
			return err
		}
	}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		row, blocked := c.jams.blocking(u)
		if !blocked {
			err := c.together(ctx, u)
			var locked *blockedError
			if !errors.As(err, &locked) {
				return err
			}
			row = locked.row
		}
		if err := c.apart(ctx, u, row); !errors.Is(err, errAgain) {
			return err
		}
	}
}

// together commits the unit in a group. It returns a *blockedError if another transaction
// has locked a row of the unit.
func (c *Committer) together(ctx context.Context, u *Unit) error {
	j := &job{unit: u, ctx: ctx, done: make(chan error, 1)}
	if err := c.enqueue(j); err != nil {
		return err
	}
	select {
	case err := <-j.done:
		return err
	case <-ctx.Done():
		if c.withdraw(j) || j.leave() {
			return c.explain(ctx)
		}
		return <-j.done
	}
}

// leave reports whether the caller may leave, because COMMIT cannot have been sent. Then the
// job is not committed.
func (j *job) leave() bool { return j.state.CompareAndSwap(running, left) }

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
	wait := groupWait
	for attempt := 1; len(group) > 1; {
		err := c.try(group, wait)
		if sendOutcome(group, err) {
			group = nil
			break
		}
		if group = present(group); errors.Is(err, errLeft) {
			continue
		}
		var failed *UnitError
		switch {
		case sqldb.IsCertification(err): // it belongs to all units, whichever statement has met it
			attempt++
			Yield(context.Background(), c.Store.DB(), attempt, err)
		case sqldb.IsLocked(err) && errors.As(err, &failed):
			group, wait = c.unblock(group, failed), groupRetry
		case sqldb.IsTransient(err) && !errors.As(err, &failed) && attempt < maxAlone:
			attempt++ // it belongs to no unit: the counter is locked, or the connection was lost
			Pause(context.Background(), attempt)
		case sqldb.IsLocked(err): // the counter
			deliver(append(group, evicted...), err)
			return
		case sqldb.IsTransient(err) || failed == nil || len(evicted) == maxEvictions:
			c.each(append(group, evicted...))
			return
		default:
			evicted = append(evicted, failed.job)
			group = without(group, failed.job)
		}
	}
	c.each(append(group, evicted...))
}

// each commits units one by one.
func (c *Committer) each(group []*job) {
	for _, j := range group {
		c.commitSingle(j)
	}
}

// commitSingle commits one unit in its own transaction, retrying transient errors.
func (c *Committer) commitSingle(j *job) {
	for attempt := 1; j.state.Load() != left; attempt++ {
		err := c.try([]*job{j}, groupWait)
		if errors.Is(err, errLeft) || sendOutcome([]*job{j}, err) {
			return
		}
		var failed *UnitError
		switch {
		case sqldb.IsLocked(err) && errors.As(err, &failed):
			c.unblock([]*job{j}, failed)
			return
		case !sqldb.IsTransient(err) || attempt >= maxAlone && !sqldb.IsCertification(err):
			j.done <- bare(err)
			return
		}
		Yield(j.ctx, c.Store.DB(), attempt, err)
	}
}

// errLeft is the error of a group in which callers have left before COMMIT was sent.
var errLeft = errors.New("a caller has left")

// try runs the group in one transaction. It waits at most wait for each locked row.
func (c *Committer) try(group []*job, wait time.Duration) (err error) {
	begun := clock.System.Now()
	defer func() { c.stats.count(len(group), clock.System.Now().Sub(begun), err) }()
	ctx, cancel := context.WithTimeout(context.Background(), c.Timeout)
	defer cancel()
	defer c.Watch()()
	tx, err := c.begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	units := make([]*Unit, len(group))
	for i, j := range group {
		units[i] = j.unit
	}
	last, err := c.Apply(ctx, tx, units, How{Arrays: true, Rows: wait, Counter: patience(group)})
	if err != nil {
		return c.attributeJob(err, group)
	}
	if !c.seal(group) {
		return errLeft
	}
	err = tx.Commit(ctx, last...)
	if err == nil {
		c.holder.Store(nil)
	} else if !sqldb.IsUncertain(err) {
		c.unseal(group)
	}
	return c.attributeJob(err, group)
}

func (c *Committer) begin(ctx context.Context) (sqldb.Tx, error) {
	c.starting.Add(1)
	defer c.starting.Add(-1)
	return c.Store.DB().Begin(ctx, sqldb.Group)
}

// sendOutcome sends the outcome to all units of a group if they have the same outcome:
// committed or uncertain. It reports whether it did.
func sendOutcome(group []*job, err error) bool {
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

// bare removes the wrapping error that only the committer needs.
func bare(err error) error {
	var e *UnitError
	if errors.As(err, &e) {
		return e.Err
	}
	return err
}
