package fsm

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure/internal/core"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/unit"
)

// sweepLimit is how many expired things of each kind one claim looks after.
const sweepLimit = 100

// queue runs the instances of one queue.
type queue struct {
	machines *Machines
	name     string
	worker   *core.Worker
	suspects suspects
}

func newQueue(m *Machines, name string, concurrency int) *queue {
	q := &queue{machines: m, name: name}
	q.worker = core.NewWorker(core.Kind{
		Name: "instance", Claim: q.claim, Run: q.run, Extend: q.extend, Release: q.release, Next: q.next, Sweep: m.sweep,
	}, core.Options{
		Queue: name, Workers: m.rt.Workers,
		Concurrency: concurrency, Lease: m.options.Lease, Clock: m.rt.Clock, OnError: m.options.OnError,
		SweepEvery: min(max(m.options.Retention/10, time.Minute), time.Hour),
	})
	return q
}

// Namespace implements dispatch.Processor.
func (q *queue) Namespace() string { return topic(q.name) }

// Process implements dispatch.Processor.
func (q *queue) Process(ctx context.Context) (int, error) { return q.worker.Process(ctx) }

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

// claim sees to what has expired and takes due instances under one lease, and a
// suspect under a lease of its own: if it takes its process down again, nobody else
// is blamed.
func (q *queue) claim(ctx context.Context, limit int, lease time.Duration) ([]*core.Claim, error) {
	if err := q.machines.record(ctx); err != nil {
		return nil, err
	}
	suspects, err := q.machines.expire(ctx, q.name)
	if err != nil {
		return nil, err
	}
	var claims []*core.Claim
	if suspects { // before the others: a backlog must not keep them from their turn
		if claims, err = q.suspects.take(ctx, q, lease); err != nil {
			return nil, err
		}
	}
	if len(claims) == limit {
		return claims, nil
	}
	others, err := q.take(ctx, limit-len(claims), lease, false)
	if err != nil && len(claims) > 0 { // the suspect is to be run
		q.machines.options.OnError(err)
		return claims, nil
	}
	return append(claims, others...), err
}

func (q *queue) take(ctx context.Context, limit int, lease time.Duration, suspects bool) ([]*core.Claim, error) {
	m, token := q.machines, q.machines.rt.NewID()
	var instances []store.Instance
	inbox := map[string][]store.Signal{}
	err := m.transact(ctx, func(tx sqldb.Tx) error {
		claim := store.InstanceClaim{Queue: q.name, Worker: m.id, Token: token, Lease: lease, Limit: limit, Suspects: suspects}
		err := tx.Run(ctx, m.rt.Store.ClaimInstances(claim, m.rt.Now(), func(i store.Instance) { instances = append(instances, i) })...)
		if err != nil || len(instances) == 0 {
			return err
		}
		ids := make([]string, len(instances))
		for i, instance := range instances {
			ids[i] = instance.ID
		}
		return tx.Run(ctx, m.rt.Store.Inbox(ids, func(g store.Signal) { inbox[g.Target] = append(inbox[g.Target], g) }))
	})
	if err != nil {
		return nil, err
	}
	m.flusher.lease(token, len(instances))
	claims := make([]*core.Claim, len(instances))
	for i, instance := range instances {
		e := &execution{machines: m, options: m.options, instance: instance, queue: q.name, token: token, suspect: suspects, inbox: inbox[instance.ID]}
		claims[i] = &core.Claim{ID: instance.ID, Token: token, Work: e, Due: instance.Due}
	}
	return claims, nil
}

// run executes steps of an instance, one after the other while they lead on,
// and commits each before the next.
func (q *queue) run(ctx context.Context, c *core.Claim) error {
	m, e := q.machines, c.Work.(*execution)
	defer q.suspects.ended(e)
	for steps := 1; ; steps++ {
		machine := m.lookup(e.instance.FSM, e.instance.Version)
		if machine == nil { // aside, for a process that knows it
			return m.flusher.settle(e, settlement{unroute: true})
		}
		if !machine.has(e.instance.Step) {
			return m.flusher.settle(e, settlement{decision: failed(fmt.Errorf("fsm %s version %d has no step %q", e.instance.FSM, e.instance.Version, e.instance.Step))})
		}
		decided, err := machine.execute(ctx, e)
		if cause := context.Cause(ctx); errors.Is(cause, core.ErrLost) {
			return cause
		} else if err != nil && errors.Is(cause, core.ErrStopping) {
			return m.flusher.settle(e, settlement{release: true})
		} else if isSealed(err) {
			m.options.OnError(fmt.Errorf("run instance %s: %w", e.instance.ID, err))
			return m.flusher.settle(e, settlement{sealed: err})
		} else if err != nil {
			decided = failed(err)
		}
		c.Failed = decided.err != ""
		inline := decided.outcome.kind == kindNext && steps < m.options.InlineSteps && ctx.Err() == nil
		if err := m.flusher.settle(e, settlement{decision: decided, inline: inline}); err != nil || !inline {
			return err
		}
		e.advance(decided)
	}
}

// extend renews the leases that the claims belong to. Claims of instances that
// were cancelled are lost.
func (q *queue) extend(ctx context.Context, claims []*core.Claim, lease time.Duration) ([]*core.Claim, error) {
	m := q.machines
	tokens := map[string]*bool{}
	var stmts []sqldb.Stmt
	held := make([]store.Held, len(claims))
	for i, c := range claims {
		held[i] = store.Held{ID: c.ID, Token: c.Token}
		if tokens[c.Token] == nil {
			tokens[c.Token] = new(bool)
			stmts = append(stmts, m.rt.Store.ExtendLease(c.Token, lease, m.rt.Now(), tokens[c.Token]))
		}
	}
	cancelled := map[store.Held]bool{}
	stmts = append(stmts, m.rt.Store.Interrupted(held, func(h store.Held) { cancelled[h] = true }))
	if err := m.transact(ctx, func(tx sqldb.Tx) error { return tx.Run(ctx, stmts...) }); err != nil {
		return nil, err
	}
	var lost []*core.Claim
	for i, c := range claims {
		if *tokens[c.Token] || cancelled[held[i]] {
			lost = append(lost, c)
		}
	}
	return lost, nil
}

// release gives claims back that were not started, all in one flush.
func (q *queue) release(_ context.Context, claims []*core.Claim) error {
	errs := make(chan error, len(claims))
	for _, c := range claims {
		q.suspects.ended(c.Work.(*execution))
		go func() { errs <- q.machines.flusher.settle(c.Work.(*execution), settlement{release: true}) }()
	}
	var all []error
	for range claims {
		all = append(all, <-errs)
	}
	return errors.Join(all...)
}

func (q *queue) next(ctx context.Context) (wait time.Duration, ok bool, err error) {
	m := q.machines
	sooner := func(d time.Duration) {
		if !ok || d < wait {
			wait, ok = d, true
		}
	}
	err = m.read(ctx, m.rt.Store.NextInstance(q.name, m.definitions(), !q.suspects.busy.Load(), m.rt.Now(), sooner), m.rt.Store.NextSchedule(m.rt.Now(), sooner))
	return wait, ok, err
}

// transact runs fn in a transaction on a connection that is kept for us.
func (m *Machines) transact(ctx context.Context, fn func(sqldb.Tx) error) error {
	tx, err := m.rt.DB.Begin(ctx, sqldb.Urgent)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := fn(tx); err != nil {
		return err
	}
	return tx.Commit(ctx)
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
