package work

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/unit"
)

// queues are the queues that a process serves, and the dispatchers that listen to them.
type queues struct {
	mu          sync.Mutex
	all         []*Queue
	subscribers []*subscriber
}

// subscriber is a dispatcher that listens to every queue.
type subscriber struct {
	fn      func(due time.Time)
	cancels []func()
}

// served returns the queues that this process serves now.
func (r *Runner) served() []*Queue {
	r.queues.mu.Lock()
	defer r.queues.mu.Unlock()
	return slices.Clone(r.queues.all)
}

// Queues returns the queues that this process serves.
func (r *Runner) Queues() []*Queue { return r.served() }

// Held returns the names whose items have no room in the slots of their queues, see Kind.Share.
func (r *Runner) Held() []string {
	var names []string
	for _, q := range r.served() {
		names = append(names, q.worker.Held()...)
	}
	return names
}

// Serve makes this process serve another queue. It returns false if the queue is already
// served.
func (r *Runner) Serve(o QueueOptions) bool {
	r.queues.mu.Lock()
	defer r.queues.mu.Unlock()
	if slices.ContainsFunc(r.queues.all, func(q *Queue) bool { return q.name == o.Name }) {
		return false
	}
	q := newQueue(r, o)
	r.queues.all = append(r.queues.all, q)
	for _, sub := range r.queues.subscribers {
		sub.cancels = append(sub.cancels, q.Subscribe(sub.fn))
	}
	return true
}

// Subscribe implements dispatch.Source.
func (r *Runner) Subscribe(fn func(due time.Time)) (cancel func()) {
	r.queues.mu.Lock()
	defer r.queues.mu.Unlock()
	sub := &subscriber{fn: fn}
	for _, q := range r.queues.all {
		sub.cancels = append(sub.cancels, q.Subscribe(fn))
	}
	r.queues.subscribers = append(r.queues.subscribers, sub)
	return func() {
		r.queues.mu.Lock()
		r.queues.subscribers = slices.DeleteFunc(r.queues.subscribers, func(other *subscriber) bool { return other == sub })
		cancels := sub.cancels
		sub.cancels = nil
		r.queues.mu.Unlock()
		for _, cancel := range cancels {
			cancel()
		}
	}
}

// group returns the queues as one processor.
func (r *Runner) group() dispatch.Starter {
	queues := r.served()
	processors := make([]dispatch.Processor, len(queues))
	for i, q := range queues {
		processors[i] = q
	}
	group, _ := dispatch.Group(processors...) // there is at least one
	return group.(dispatch.Starter)
}

// Namespace implements dispatch.Processor.
func (r *Runner) Namespace() string { return r.group().Namespace() }

// Process implements dispatch.Processor.
func (r *Runner) Process(ctx context.Context) (int, error) { return r.group().Process(ctx) }

// NextWakeAt implements dispatch.Processor.
func (r *Runner) NextWakeAt(ctx context.Context) (time.Time, error) { return r.group().NextWakeAt(ctx) }

// Start implements dispatch.Starter.
func (r *Runner) Start(ctx context.Context) (int, error) { return r.group().Start(ctx) }

// Drain implements dispatch.Starter. It also waits for uncommitted outcomes.
func (r *Runner) Drain(ctx context.Context) error {
	return errors.Join(r.group().Drain(ctx), r.Close(ctx))
}

// Freed reports that the room of the queues has grown: see core.Options.Room.
func (r *Runner) Freed() {
	for _, q := range r.served() {
		q.worker.Freed()
	}
}

// Lost cancels the running items whose claims were revoked.
func (r *Runner) Lost(taken func(id, token string) bool) {
	for _, q := range r.served() {
		q.worker.Lose(taken)
	}
}

// maxReads is the maximum number of attempts of a read whose connection was lost.
const maxReads = 10

// Read runs statements on a snapshot. It retries on another connection if the connection was
// lost before it returned a row.
func (r *Runner) Read(ctx context.Context, stmts ...sqldb.Stmt) error {
	return r.read(ctx, sqldb.Read, stmts)
}

// Look is Read for a few rows that are found by indexes.
func (r *Runner) Look(ctx context.Context, stmts ...sqldb.Stmt) error {
	return r.read(ctx, sqldb.Look, stmts)
}

func (r *Runner) read(ctx context.Context, access sqldb.Access, stmts []sqldb.Stmt) error {
	ctx, cancel := context.WithTimeout(ctx, r.Runtime.Timeout)
	defer cancel()
	seen := false
	for i := range stmts {
		if row := stmts[i].Row; row != nil {
			stmts[i].Row = func(scan sqldb.Scan) error { seen = true; return row(scan) }
		}
	}
	for attempt := 1; ; attempt++ {
		err := r.readOnce(ctx, access, stmts)
		if err == nil || seen || !sqldb.IsTransient(err) || attempt == maxReads || ctx.Err() != nil {
			return err
		}
		unit.Pause(ctx, attempt)
	}
}

func (r *Runner) readOnce(ctx context.Context, access sqldb.Access, stmts []sqldb.Stmt) error {
	tx, err := r.Runtime.DB.Begin(ctx, access)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	return tx.Run(ctx, stmts...)
}
