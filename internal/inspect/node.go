package inspect

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/perdure/perdure/internal/serving"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/unit"
)

// SampleEvery is the interval of samples.
const SampleEvery = 10 * time.Second

// Samples returns the finished work by interval, after a time.
func (i *Inspector) Samples(ctx context.Context, after time.Time) ([]store.Sample, error) {
	var all []store.Sample
	if err := i.read(ctx, i.rt.Store.Samples(after, func(s store.Sample) { all = append(all, s) })); err != nil {
		return nil, fmt.Errorf("read samples: %w", err)
	}
	return all, nil
}

// keepSamples is the retention of samples.
const keepSamples = 25 * time.Hour

// Sample counts the work that was finished in the last complete interval, unless another
// process has counted it. It may be called at any frequency.
func (i *Inspector) Sample(ctx context.Context) error {
	until := i.rt.Clock.Now().UTC().Truncate(SampleEvery)
	taken, err := i.Samples(ctx, until.Add(-SampleEvery))
	if err != nil || len(taken) > 0 && !taken[len(taken)-1].At.Before(until) {
		return err
	}
	var found []store.Sample
	if err := i.read(ctx, i.rt.Store.TakeSamples(store.Span{After: until.Add(-SampleEvery), Until: until}, func(s store.Sample) { found = append(found, s) })...); err != nil {
		return fmt.Errorf("count finished work: %w", err)
	}
	all, err := i.Overview(ctx)
	if err != nil {
		return err
	}
	stmts := []sqldb.Stmt{i.rt.Store.PurgeSamples(until.Add(-keepSamples))}
	for _, s := range found {
		for _, k := range all.Kinds {
			if k.Kind == s.Kind {
				s.Due = k.Due
			}
		}
		stmts = append(stmts, i.rt.Store.InsertSample(s))
	}
	return i.write(ctx, stmts...)
}

func (i *Inspector) write(ctx context.Context, stmts ...sqldb.Stmt) error {
	ctx, cancel := context.WithTimeout(ctx, i.rt.Timeout)
	defer cancel()
	return unit.Overtakable(ctx, i.rt.DB, func() error {
		return unit.Once(ctx, i.rt.DB, sqldb.Write, func(tx sqldb.Tx) error { return tx.Run(ctx, stmts...) })
	})
}

// EndOverdueSessions ends database sessions of task workers whose transactions take too
// long, on PostgreSQL. Such sessions can hold locks that other sessions wait for.
func (i *Inspector) EndOverdueSessions(ctx context.Context) error {
	if !i.rt.DB.Dialect().HasFunctions() {
		return nil
	}
	if err := i.write(ctx, i.rt.Store.EndOverdueSessions()); err != nil {
		return fmt.Errorf("close overdue sessions of workers: %w", err)
	}
	return nil
}

// Housekeep removes expired Idempotency-Keys and the rows of processes that have ended.
func (i *Inspector) Housekeep(ctx context.Context) error {
	var removed int64
	return i.write(ctx, i.rt.Store.PurgeRequests(keepKeys, 10_000, i.rt.Now(), &removed), i.rt.Store.PurgeNodes(keepNodes, i.rt.Now()))
}

const (
	keepKeys  = 24 * time.Hour
	keepNodes = time.Hour
)

// running returns the number of running work items of this process, queue by queue.
func (i *Inspector) running(ctx context.Context) []store.NodeQueue {
	var queues []queue
	for _, w := range i.rt.Workers.All() {
		at := slices.IndexFunc(queues, func(q queue) bool { return q.Kind == w.Kind() && q.Queue == w.Queue() })
		if at < 0 {
			at, queues = len(queues), append(queues, queue{NodeQueue: store.NodeQueue{Kind: w.Kind(), Queue: w.Queue(), Serves: []string{}}})
		}
		queues[at].Running += w.Stats().Running
		if shared, ok := w.(interface{ Held() []string }); ok {
			queues[at].Held = append(queues[at].Held, shared.Held()...)
		}
		if names, ok := w.Takes(ctx); ok {
			queues[at].take(names)
		}
	}
	all := make([]store.NodeQueue, len(queues))
	for n, q := range queues {
		all[n] = q.shown()
	}
	return all
}

// queue describes the workers of this process for one queue.
type queue struct {
	store.NodeQueue
	takes, every bool
}

// take adds the names that a worker claims. nil: all names.
func (q *queue) take(names []string) {
	q.takes, q.every = true, q.every || names == nil
	q.Serves = append(q.Serves, names...)
}

// shown returns the queue as it is stored.
func (q queue) shown() store.NodeQueue {
	q.Idle = !q.takes
	slices.Sort(q.Serves)
	q.Serves = slices.Compact(q.Serves)
	slices.Sort(q.Held)
	q.Held = slices.Compact(q.Held)
	if q.every {
		q.Serves = nil
	}
	return q.NodeQueue
}

// Beat records a heartbeat of a process and the amount of its running work. It reports
// whether an operator has requested that the process drains.
func (i *Inspector) Beat(ctx context.Context, n store.Node) (drain bool, err error) {
	n.Running = i.running(ctx)
	if err := i.write(ctx, i.rt.Store.BeatNode(n, i.rt.Now(), &drain)...); err != nil {
		return false, fmt.Errorf("write heartbeat: %w", err)
	}
	return drain, nil
}

// Leave removes the row of a process that ends.
func (i *Inspector) Leave(ctx context.Context, id string) error {
	return i.write(ctx, i.rt.Store.RemoveNode(id))
}

// Node is a process that runs, or ran until recently.
type Node struct {
	store.Node
	// Lost is true if the process has stopped sending heartbeats.
	Lost bool
}

// Nodes returns the processes, oldest first.
func (i *Inspector) Nodes(ctx context.Context) ([]Node, error) {
	var all []Node
	err := i.read(ctx, i.rt.Store.Nodes(i.rt.Now(), func(n store.Node, now time.Time) {
		all = append(all, Node{Node: n, Lost: !serving.Live(n, now)})
	}))
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	return all, nil
}

// Marks returns a mark for each kind. The mark changes when work of the kind changes.
func (i *Inspector) Marks(ctx context.Context) (map[string]string, error) {
	marks := map[string]string{}
	if err := i.read(ctx, i.rt.Store.Marks(func(kind, mark string) { marks[kind] = mark })); err != nil {
		return nil, fmt.Errorf("read changes: %w", err)
	}
	return marks, nil
}
