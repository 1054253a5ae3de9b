package work

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/core"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/seal"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/unit"
)

const (
	// sweepLimit is the largest number of expired rows of each kind that one claim
	// handles.
	sweepLimit = 100
	// sweepPause is the longest time for which expired rows wait while no caller knows of them,
	// or while there is a backlog of due items.
	sweepPause = 100 * time.Millisecond
)

// Queue runs the items of one queue. It is a dispatch.Starter.
type Queue struct {
	runner *Runner
	name   string
	worker *core.Worker
	// suspects is the number of suspects that run in this queue, at most suspectSlots.
	suspects     atomic.Int64
	suspectSlots int

	backlog bool      // the last claim reached its limit and found no due suspects
	swept   time.Time // time when expired rows were last handled
	// fullScans counts the Process calls in flight, which must handle everything that is due.
	// overdue is set if next found work that is past due.
	fullScans atomic.Int64
	overdue   atomic.Bool
	// lanes are the lanes of the queue that had items when they were last looked for.
	lanes atomic.Pointer[[]string]
}

// QueueOptions configure a Queue. All fields except Label and Room are required.
type QueueOptions struct {
	Name string
	// Label is the name that users see. Empty: Name.
	Label string
	// Concurrency is the maximum number of items that run concurrently.
	Concurrency int
	// Names returns the names of the work that this process can run.
	Names func() []string
	// Room returns how many more items may be claimed now: see core.Options. It may be nil.
	Room func(running int) int
}

func newQueue(r *Runner, o QueueOptions) *Queue {
	q := &Queue{runner: r, name: o.Name, suspectSlots: (o.Concurrency + 1) / 2}
	kind := core.Kind{
		Name: r.kind.Name, Claim: q.claim, Begin: q.begin, Extend: q.extend, Taken: q.taken, Release: q.release, Next: q.next, Sweep: r.kind.Sweep,
	}
	if r.kind.Spread {
		kind.Return = q.moveAway
	}
	if r.kind.Rows != nil {
		kind.Extend, kind.Taken, kind.AwaitOutcomes = q.extendRows, nil, r.awaitOutcomes
	}
	q.worker = core.NewWorker(kind, core.Options{
		Queue: cmp.Or(o.Label, o.Name), Workers: r.Runtime.Workers, Names: o.Names,
		Concurrency: o.Concurrency, Room: o.Room, Lease: r.options.Lease, Clock: r.Runtime.Clock, OnError: r.options.OnError, Outage: &r.outage,
		SweepEvery: r.options.SweepEvery,
	})
	return q
}

// Name returns the name of the queue.
func (q *Queue) Name() string { return q.name }

// Namespace implements dispatch.Processor.
func (q *Queue) Namespace() string { return q.runner.kind.Topic(q.name) }

// Process implements dispatch.Processor.
func (q *Queue) Process(ctx context.Context) (int, error) {
	q.fullScans.Add(1)
	defer q.fullScans.Add(-1)
	return q.worker.Process(ctx)
}

// Start implements dispatch.Starter.
func (q *Queue) Start(ctx context.Context) (int, error) { return q.worker.Start(ctx) }

// Drain implements dispatch.Starter.
func (q *Queue) Drain(ctx context.Context) error { return q.worker.Drain(ctx) }

// NextWakeAt implements dispatch.Processor.
func (q *Queue) NextWakeAt(ctx context.Context) (time.Time, error) {
	wait, ok, err := q.worker.Next(ctx)
	if err != nil || !ok {
		return time.Time{}, err
	}
	return q.runner.Runtime.Clock.Now().Add(wait), nil
}

// Subscribe implements dispatch.Source.
func (q *Queue) Subscribe(fn func(due time.Time)) (cancel func()) {
	enough := q.worker.OnFree(func() { fn(time.Time{}) })
	unsubscribe := q.runner.Runtime.Hub.Subscribe(q.runner.kind.Topic(q.name), fn)
	return func() {
		enough()
		unsubscribe()
	}
}

// claim handles expired rows and claims due items. It is not called concurrently.
func (q *Queue) claim(ctx context.Context, limit int, lease time.Duration) (claims []*core.Claim, err error) {
	if prepare := q.runner.kind.Prepare; prepare != nil {
		if err := prepare(ctx); err != nil {
			return nil, err
		}
	}
	if q.runner.kind.Rows != nil {
		return q.takeRows(ctx, limit, lease)
	}
	now := clock.System.Now()
	calm := q.fullScans.Load() == 0 && !q.overdue.Load()
	if (q.backlog || calm) && now.Sub(q.swept) < sweepPause {
		claims, err = q.take(ctx, limit, lease)
		q.backlog = len(claims) == limit
		if err != nil || len(claims) > 0 || calm {
			return claims, err
		}
	}
	q.swept = now
	q.overdue.Store(false)
	suspects, err := q.expire(ctx)
	if err != nil {
		return nil, err
	}
	claims, err = q.takeWith(ctx, suspects, limit, lease)
	q.backlog = len(claims) == limit && !suspects
	return claims, err
}

// takeWith claims due items under one lease, and suspects, if any, under a separate lease.
func (q *Queue) takeWith(ctx context.Context, suspects bool, limit int, lease time.Duration) (claims []*core.Claim, err error) {
	if suspects { // before the others: a backlog must not starve them
		if claims, err = q.takeSuspects(ctx, limit, lease); err != nil {
			return nil, err
		}
	}
	if len(claims) == limit {
		return claims, nil
	}
	others, err := q.take(ctx, limit-len(claims), lease)
	if err != nil && len(claims) > 0 { // the claimed suspects must run
		q.runner.options.OnError(err)
		return claims, nil
	}
	return append(claims, others...), err
}

// Take claims due items as a dispatcher does.
func (q *Queue) Take(ctx context.Context, limit int, lease time.Duration) ([]*core.Claim, error) {
	if q.runner.kind.Rows != nil {
		return q.takeRows(ctx, limit, lease)
	}
	return q.take(ctx, limit, lease)
}

// take claims due items. On a cluster, two nodes may claim the same items, and one of them
// fails when it commits.
func (q *Queue) take(ctx context.Context, limit int, lease time.Duration) ([]*core.Claim, error) {
	claims, err := q.takeLanes(ctx, limit, lease)
	if err != nil || len(claims) == limit {
		return claims, err
	}
	limit -= len(claims)
	if q.runner.kind.Spread && len(q.worker.Held()) > 0 {
		limit += surplus
	}
	var others []*core.Claim
	err = unit.Overtakable(ctx, nil, func() (err error) {
		others, err = q.takeOnce(ctx, limit, lease)
		return err
	})
	if err != nil && len(claims) > 0 { // those that were claimed must run
		q.runner.options.OnError(err)
		return claims, nil
	}
	return append(claims, others...), err
}

func (q *Queue) takeOnce(ctx context.Context, limit int, lease time.Duration) ([]*core.Claim, error) {
	r := q.runner
	tx, err := r.Runtime.DB.Begin(ctx, sqldb.Claim)
	if err != nil {
		return nil, err
	}
	defer tx.Rollback()
	claim := q.newClaim(limit, lease)
	if q.idle(claim) {
		return nil, nil
	}
	return q.lease(ctx, tx, claim, func(found func(store.Claimed)) []sqldb.Stmt {
		return r.family().Claim(claim, r.Runtime.Now(), found)
	}, func(*Item) {})
}

func (q *Queue) newClaim(limit int, lease time.Duration) store.Claim {
	c := q.source()
	c.Worker, c.Token, c.Lease, c.Limit = q.runner.ID, q.runner.newToken(), lease, limit
	return c
}

// source returns a claim that has only the queue and its lanes.
func (q *Queue) source() store.Claim {
	c := store.Claim{Queue: q.name}
	if lanes := q.runner.kind.Lanes; lanes != nil {
		c.Lanes = q.withRoom(lanes(q.name))
	}
	return c
}

// idle reports whether this process can run no item of the queue.
func (q *Queue) idle(c store.Claim) bool { return q.runner.kind.Lanes != nil && len(c.Lanes) == 0 }

// lease runs the statements of a claim, reads the rows that the kind needs and commits.
func (q *Queue) lease(ctx context.Context, tx sqldb.Tx, c store.Claim, stmts func(found func(store.Claimed)) []sqldb.Stmt, with func(*Item)) ([]*core.Claim, error) {
	r := q.runner
	var items []*Item
	skipped := r.Runtime.Store.SkipsForeign()
	err := tx.Run(ctx, stmts(func(row store.Claimed) {
		i := &Item{ID: row.ID, Row: row.Row, parent: row.Parent, Queue: q.name, Token: c.Token, Skipped: skipped, queue: q}
		i.Claim = &core.Claim{ID: i.ID, Public: row.Public, Token: c.Token, Work: i, Due: row.Due}
		if with(i); !i.suspect { // suspects have slots of their own
			i.Claim.Name, i.Claim.System = r.kind.Share(i)
		}
		items = append(items, i)
	})...)
	if err != nil || len(items) == 0 {
		return nil, err
	}
	var reads []sqldb.Stmt
	if r.kind.Read != nil {
		reads = r.kind.Read(items)
	}
	if err := tx.Commit(ctx, reads...); err != nil {
		if !sqldb.IsCertification(err) {
			r.resolveClaim(c.Token)
		}
		return nil, err
	}
	claims := make([]*core.Claim, len(items))
	for i, item := range items {
		claims[i] = item.Claim
	}
	r.Leased(c.Token, len(claims))
	return claims, nil
}

// begin makes the kind execute an item.
func (q *Queue) begin(ctx context.Context, c *core.Claim) {
	i := c.Work.(*Item)
	q.runner.kind.Begin(context.WithValue(ctx, itemKey{}, i), i)
}

// End finishes the claim of an item. The kind calls it once, after the decision about the item
// was committed or has failed.
func (r *Runner) End(i *Item, err error) {
	i.queue.ended(i)
	i.Claim.End(err)
}

// Unreadable returns an item that cannot be read here. An item whose key this process does not
// have is released unchanged, and later claims skip such items. Other items are postponed by
// delay.
func (r *Runner) Unreadable(i *Item, cause error, delay time.Duration) {
	then := func(err error) { r.End(i, err) }
	r.options.OnError(fmt.Errorf("run %s %s: %w", r.kind.Name, i.Claim.Public, cause))
	if seal.IsForeign(cause) && !i.Skipped {
		r.Runtime.Store.SkipForeign()
		r.Release(i, then)
		return
	}
	r.Postpone(i, edge.Message(cause.Error()), delay, then)
}

// extend renews the leases of the claims.
func (q *Queue) extend(ctx context.Context, claims []*core.Claim, lease time.Duration) ([]*core.Claim, error) {
	r := q.runner
	gone := map[string]*bool{}
	for _, c := range claims {
		gone[c.Token] = new(bool)
	}
	var stmts []sqldb.Stmt
	for _, token := range slices.Sorted(maps.Keys(gone)) { // the order in which outcomes lock them
		stmts = append(stmts, r.Runtime.Store.ExtendLease(token, lease, r.Runtime.Now(), gone[token]))
	}
	if err := r.Transact(ctx, func(tx sqldb.Tx) error { return tx.Run(ctx, stmts...) }); err != nil {
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

// taken returns the claims of items that were cancelled.
func (q *Queue) taken(ctx context.Context, claims []*core.Claim) ([]*core.Claim, error) {
	byToken := map[string][]*core.Claim{}
	var tokens []string
	for _, c := range claims {
		if byToken[c.Token] == nil {
			tokens = append(tokens, c.Token)
		}
		byToken[c.Token] = append(byToken[c.Token], c)
	}
	var taken []*core.Claim
	err := q.runner.Look(ctx, q.runner.Runtime.Store.Interrupted(tokens, func(h store.Held) {
		for _, c := range byToken[h.Token] {
			if c.ID == h.ID {
				taken = append(taken, c)
			}
		}
	}))
	return taken, err
}

// release returns claims that were not started, all in one group.
func (q *Queue) release(_ context.Context, claims []*core.Claim) error {
	errs := make(chan error, len(claims))
	for _, c := range claims {
		i := c.Work.(*Item)
		q.ended(i)
		q.runner.Release(i, func(err error) { errs <- err })
	}
	var all []error
	for range claims {
		all = append(all, <-errs)
	}
	return errors.Join(all...)
}

func (q *Queue) next(ctx context.Context) (wait time.Duration, ok bool, err error) {
	stmts := q.runner.kind.Next(q.source(), q.least(), func(d time.Duration) {
		if !ok || d < wait {
			wait, ok = d, true
		}
	})
	stmts = append(stmts, q.findLanes(func(d time.Duration) {
		if !ok || d < wait {
			wait, ok = d, true
		}
	})...)
	err = q.runner.Look(ctx, stmts...)
	if ok && wait <= 0 {
		q.overdue.Store(true)
	}
	return wait, ok, err
}
