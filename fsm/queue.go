package fsm

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/core"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/unit"
)

const (
	// sweepLimit is how many expired things of each kind one claim looks after.
	sweepLimit = 100
	// sweepPause is how long expired things wait at most while nobody knows of
	// them, or there is a backlog of due instances.
	sweepPause = 100 * time.Millisecond
)

// queue runs the instances of one queue.
type queue struct {
	machines *Machines
	name     string
	worker   *core.Worker
	// suspects run in this queue, at most suspectSlots.
	suspects     atomic.Int64
	suspectSlots int

	backlog bool      // the last claim left something, and no suspects
	swept   time.Time // when expired things were last seen to
	// thorough counts the callers who want everything seen to that is due, and
	// overdue says that something is that should have been.
	thorough atomic.Int64
	overdue  atomic.Bool
}

func newQueue(m *Machines, name string, concurrency int) *queue {
	q := &queue{machines: m, name: name, suspectSlots: (concurrency + 1) / 2}
	q.worker = core.NewWorker(core.Kind{
		Name: "instance", Claim: q.claim, Begin: q.begin, Extend: q.extend, Taken: q.taken, Release: q.release, Next: q.next, Sweep: m.sweep,
	}, core.Options{
		Queue: name, Workers: m.rt.Workers, Names: m.names,
		Concurrency: concurrency, Lease: m.options.Lease, Clock: m.rt.Clock, OnError: m.options.OnError, Outage: &m.outage,
		SweepEvery: min(max(m.options.Retention/10, time.Minute), time.Hour),
	})
	return q
}

// Namespace implements dispatch.Processor.
func (q *queue) Namespace() string { return topic(q.name) }

// Process implements dispatch.Processor.
func (q *queue) Process(ctx context.Context) (int, error) {
	q.thorough.Add(1)
	defer q.thorough.Add(-1)
	return q.worker.Process(ctx)
}

// Start implements dispatch.Starter.
func (q *queue) Start(ctx context.Context) (int, error) { return q.worker.Start(ctx) }

// Drain implements dispatch.Starter.
func (q *queue) Drain(ctx context.Context) error { return q.worker.Drain(ctx) }

// NextWakeAt implements dispatch.Processor.
func (q *queue) NextWakeAt(ctx context.Context) (time.Time, error) {
	wait, ok, err := q.worker.Next(ctx)
	if err != nil || !ok {
		return time.Time{}, err
	}
	return q.machines.rt.Clock.Now().Add(wait), nil
}

// Subscribe implements dispatch.Source.
func (q *queue) Subscribe(fn func(due time.Time)) (cancel func()) {
	enough := q.worker.OnFree(func() { fn(time.Time{}) })
	unsubscribe := q.machines.rt.Hub.Subscribe(topic(q.name), fn)
	return func() {
		enough()
		unsubscribe()
	}
}

// claim sees to what has expired and takes due instances. It is not called twice
// at once.
func (q *queue) claim(ctx context.Context, limit int, lease time.Duration) (claims []*core.Claim, err error) {
	if err := q.machines.record(ctx); err != nil {
		return nil, err
	}
	now := clock.System.Now()
	calm := q.thorough.Load() == 0 && !q.overdue.Load()
	if (q.backlog || calm) && now.Sub(q.swept) < sweepPause {
		claims, err = q.take(ctx, limit, lease)
		q.backlog = len(claims) == limit
		if err != nil || len(claims) > 0 || calm {
			return claims, err
		}
	}
	q.swept = now
	q.overdue.Store(false)
	suspects, err := q.machines.expire(ctx, q.name)
	if err != nil {
		return nil, err
	}
	claims, err = q.takeWith(ctx, suspects, limit, lease)
	q.backlog = len(claims) == limit && !suspects
	return claims, err
}

// takeWith claims due instances under one lease, and suspects, if there are, under
// a lease of their own.
func (q *queue) takeWith(ctx context.Context, suspects bool, limit int, lease time.Duration) (claims []*core.Claim, err error) {
	if suspects { // before the others: a backlog must not keep them from their turn
		if claims, err = q.takeSuspects(ctx, limit, lease); err != nil {
			return nil, err
		}
	}
	if len(claims) == limit {
		return claims, nil
	}
	others, err := q.take(ctx, limit-len(claims), lease)
	if err != nil && len(claims) > 0 { // the suspects are to be run
		q.machines.options.OnError(err)
		return claims, nil
	}
	return append(claims, others...), err
}

func (q *queue) take(ctx context.Context, limit int, lease time.Duration) ([]*core.Claim, error) {
	m := q.machines
	tx, err := m.rt.DB.Begin(ctx, sqldb.Claim)
	if err != nil {
		return nil, err
	}
	defer tx.Rollback()
	claim := q.newClaim(limit, lease)
	return q.lease(ctx, tx, claim, func(found func(*store.Instance)) []sqldb.Stmt {
		return m.rt.Store.ClaimInstances(claim, m.rt.Now(), found)
	}, func(*execution) {})
}

func (q *queue) newClaim(limit int, lease time.Duration) store.InstanceClaim {
	return store.InstanceClaim{Queue: q.name, Worker: q.machines.id, Token: q.machines.rt.NewID(), Lease: lease, Limit: limit}
}

// lease runs the statements of a claim, reads the signals of the claimed instances
// and commits.
func (q *queue) lease(ctx context.Context, tx sqldb.Tx, c store.InstanceClaim, stmts func(found func(*store.Instance)) []sqldb.Stmt, with func(*execution)) ([]*core.Claim, error) {
	m := q.machines
	var claims []*core.Claim
	skipped := m.rt.Store.SkipsForeign()
	err := tx.Run(ctx, stmts(func(i *store.Instance) {
		e := &execution{machines: m, instance: i, queue: q.name, token: c.Token, skipped: skipped}
		with(e)
		e.claim = &core.Claim{ID: i.ID, Token: c.Token, Work: e, Due: i.Due}
		claims = append(claims, e.claim)
	})...)
	if err != nil || len(claims) == 0 {
		return nil, err
	}
	signals := map[string][]store.Signal{}
	if err := tx.Commit(ctx, q.inbox(claims, signals)); err != nil {
		m.flusher.resolveClaim(c.Token)
		return nil, err
	}
	for _, c := range claims {
		c.Work.(*execution).inbox = signals[c.ID]
	}
	m.flusher.lease(c.Token, len(claims))
	return claims, nil
}

// inbox returns the statement that reads the signals of claimed instances.
func (q *queue) inbox(claims []*core.Claim, signals map[string][]store.Signal) sqldb.Stmt {
	ids := make([]string, len(claims))
	for i, c := range claims {
		ids[i] = c.ID
	}
	return q.machines.rt.Store.Inbox(ids, func(g store.Signal) { signals[g.Target] = append(signals[g.Target], g) })
}

// begin executes steps of an instance, one after the other while they lead on,
// and commits each before the next.
func (q *queue) begin(ctx context.Context, c *core.Claim) { q.step(ctx, c, 1) }

// step executes the next step of an instance, the n-th in a row.
func (q *queue) step(ctx context.Context, c *core.Claim, n int) {
	m, e := q.machines, c.Work.(*execution)
	machine := m.lookup(e.instance.FSM, e.instance.Version)
	switch {
	case e.instance.Wait != nil && n == 1:
		q.settle(c, settlement{repark: true})
	case machine == nil: // aside, for a process that knows it
		q.settle(c, settlement{unroute: true})
	case !machine.has(e.instance.Step): // of a newer binary, perhaps
		q.settle(c, settlement{unroute: true, known: true})
	default:
		e.history, e.began = machine.keepsHistory(), m.rt.Clock.Now()
		machine.execute(ctx, e, func(decided *decision, err error) { q.decided(ctx, c, n, decided, err) })
	}
}

// decided commits the outcome of a step and goes on if it leads on.
func (q *queue) decided(ctx context.Context, c *core.Claim, n int, decided *decision, err error) {
	m, e := q.machines, c.Work.(*execution)
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, core.ErrTaken): // the outcome is dropped, and the claim ends
		q.settle(c, settlement{release: true})
		return
	case errors.Is(cause, core.ErrLost):
		q.lose(c, cause)
		return
	case err != nil && errors.Is(cause, core.ErrStopping):
		q.settle(c, settlement{release: true})
		return
	case isUnreadable(err):
		m.options.OnError(fmt.Errorf("run instance %s: %w", e.instance.ID, err))
		q.settle(c, m.settleUnread(e, err))
		return
	case err != nil:
		decided = failed(err)
	}
	c.Failed = decided.err != "" && decided.outcome.kind != kindStop
	s := settlement{decision: decided, execution: e, then: func(err error) { q.end(c, err) }}
	if decided.outcome.kind == kindNext && n < m.options.InlineSteps && ctx.Err() == nil {
		s.inline, s.then = true, func(err error) { q.advanced(ctx, c, n, decided, err) }
	}
	if len(decided.outcome.with) > 0 {
		q.settleWith(ctx, c, n, s)
		return
	}
	m.flusher.settle(e, s, s.then)
}

// advanced continues with the next step after an inline outcome was committed.
func (q *queue) advanced(ctx context.Context, c *core.Claim, n int, decided *decision, err error) {
	if err != nil {
		q.end(c, err)
		return
	}
	c.Go(func() {
		c.Work.(*execution).advance(decided)
		q.step(ctx, c, n+1)
	})
}

// settle commits what becomes of a claim, and ends it.
func (q *queue) settle(c *core.Claim, s settlement) {
	q.machines.flusher.settle(c.Work.(*execution), s, func(err error) { q.end(c, err) })
}

// lose ends a claim that this process could not keep. If no other process has taken
// the instance over, it is returned.
func (q *queue) lose(c *core.Claim, cause error) {
	s := &settlement{execution: c.Work.(*execution), then: func(err error) { q.end(c, err) }}
	q.machines.flusher.resolve([]*settlement{s}, cause)
}

func (q *queue) end(c *core.Claim, err error) {
	q.ended(c.Work.(*execution))
	c.End(err)
}

// extend renews the leases that the claims belong to.
func (q *queue) extend(ctx context.Context, claims []*core.Claim, lease time.Duration) ([]*core.Claim, error) {
	m := q.machines
	gone := map[string]*bool{}
	var stmts []sqldb.Stmt
	for _, c := range claims {
		if gone[c.Token] == nil {
			gone[c.Token] = new(bool)
			stmts = append(stmts, m.rt.Store.ExtendLease(c.Token, lease, m.rt.Now(), gone[c.Token]))
		}
	}
	err := m.transact(ctx, func(tx sqldb.Tx) error { return tx.Run(ctx, stmts...) })
	if err != nil {
		return nil, err
	}
	var lost []*core.Claim
	for _, c := range claims {
		if *gone[c.Token] {
			lost = append(lost, c)
		}
	}
	return lost, nil
}

// taken returns the claims of instances that were cancelled.
func (q *queue) taken(ctx context.Context, claims []*core.Claim) ([]*core.Claim, error) {
	byToken := map[string][]*core.Claim{}
	var tokens []string
	for _, c := range claims {
		if byToken[c.Token] == nil {
			tokens = append(tokens, c.Token)
		}
		byToken[c.Token] = append(byToken[c.Token], c)
	}
	var taken []*core.Claim
	m := q.machines
	err := m.read(ctx, m.rt.Store.Interrupted(tokens, func(h store.Held) {
		for _, c := range byToken[h.Token] {
			if c.ID == h.ID {
				taken = append(taken, c)
			}
		}
	}))
	return taken, err
}

// release gives claims back that were not started, all in one flush.
func (q *queue) release(_ context.Context, claims []*core.Claim) error {
	errs := make(chan error, len(claims))
	for _, c := range claims {
		e := c.Work.(*execution)
		q.ended(e)
		q.machines.flusher.settle(e, settlement{release: true}, func(err error) { errs <- err })
	}
	var all []error
	for range claims {
		all = append(all, <-errs)
	}
	return errors.Join(all...)
}

// least returns the smallest batch limit of a suspect that could be claimed now,
// and 0 if none could.
func (q *queue) least() int {
	if int(q.suspects.Load()) >= q.suspectSlots {
		return 0
	}
	return q.machines.lane.Least()
}

func (q *queue) next(ctx context.Context) (wait time.Duration, ok bool, err error) {
	m := q.machines
	sooner := func(d time.Duration) {
		if !ok || d < wait {
			wait, ok = d, true
		}
	}
	err = m.read(ctx, m.rt.Store.NextInstance(q.name, m.definitions(), q.least(), m.rt.Now(), sooner), m.rt.Store.NextSchedule(m.rt.Now(), sooner))
	if ok && wait <= 0 {
		q.overdue.Store(true)
	}
	return wait, ok, err
}

// transact runs fn in a transaction on a connection that is kept for us.
func (m *Machines) transact(ctx context.Context, fn func(sqldb.Tx) error) error {
	return unit.Once(ctx, m.rt.DB, sqldb.Urgent, fn)
}

// maxReads is how often a read whose connection was lost is tried.
const maxReads = 10

// read runs statements on a snapshot, again on another connection if theirs was
// lost before it gave a row.
func (m *Machines) read(ctx context.Context, stmts ...sqldb.Stmt) error {
	ctx, cancel := context.WithTimeout(ctx, m.rt.Timeout)
	defer cancel()
	seen := false
	for i := range stmts {
		if row := stmts[i].Row; row != nil {
			stmts[i].Row = func(scan sqldb.Scan) error { seen = true; return row(scan) }
		}
	}
	for attempt := 1; ; attempt++ {
		err := m.readOnce(ctx, stmts)
		if err == nil || seen || !sqldb.IsTransient(err) || attempt == maxReads || ctx.Err() != nil {
			return err
		}
		unit.Pause(ctx, attempt)
	}
}

func (m *Machines) readOnce(ctx context.Context, stmts []sqldb.Stmt) error {
	tx, err := m.rt.DB.Begin(ctx, sqldb.Read)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	return tx.Run(ctx, stmts...)
}
