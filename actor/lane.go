package actor

import (
	"context"
	"errors"
	"hash/maphash"
	"sync"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/audit"
	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/tracing"
	"github.com/perdure/perdure/statechart"
)

// maxGroup is the maximum number of jobs that share a transaction.
const maxGroup = 64

// lane commits the jobs of a subset of the actors, in groups and without added delay. A job
// that arrives while the lane is idle is committed immediately. Jobs that arrive while it
// commits share the next transaction. All jobs of an actor use the same lane, so they neither
// wait for each other's locks nor overtake each other.
//
// A lane has a goroutine only while it has jobs.
type lane struct {
	actors *Actors

	mu    sync.Mutex
	queue []*request
	busy  bool
}

type request struct {
	job  *job
	done chan error
}

var laneSeed = maphash.MakeSeed()

func (a *Actors) lane(ref Ref) *lane {
	return a.lanes[maphash.Comparable(laneSeed, ref)%uint64(len(a.lanes))]
}

// commit runs a job in a transaction that it may share with other jobs.
func (a *Actors) commit(ctx context.Context, j *job) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	j.trace = tracing.Of(ctx)
	if !j.aside {
		j.act = audit.Of(ctx)
	}
	l, r := a.lane(j.ref), &request{job: j, done: make(chan error, 1)}
	l.enqueue(r)
	select {
	case err := <-r.done:
		return err
	case <-ctx.Done():
		if l.withdraw(r) {
			return ctx.Err()
		}
		return <-r.done // it is being committed: wait for its outcome even after ctx is done
	}
}

func (l *lane) enqueue(r *request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queue = append(l.queue, r)
	if !l.busy {
		l.busy = true
		go l.serve()
	}
}

func (l *lane) withdraw(r *request) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, waiting := range l.queue {
		if waiting == r {
			l.queue = append(l.queue[:i:i], l.queue[i+1:]...)
			return true
		}
	}
	return false
}

// serve commits groups until the queue is empty.
func (l *lane) serve() {
	for group := l.next(); group != nil; group = l.next() {
		l.commitGroup(group)
	}
}

func (l *lane) next() []*request {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := min(len(l.queue), maxGroup)
	if n == 0 {
		l.busy = false
		return nil
	}
	group := l.queue[:n:n]
	l.queue = append([]*request(nil), l.queue[n:]...)
	return group
}

// commitGroup commits every job of the group. No job fails because of another job in the group: if
// the group cannot be committed, each job is committed separately.
func (l *lane) commitGroup(group []*request) {
	err := l.actors.together(context.Background(), group)
	var uncertain *fault.Uncertain
	if err == nil || len(group) == 1 || errors.As(err, &uncertain) {
		for _, r := range group {
			r.finish(err)
		}
		return
	}
	for _, r := range group {
		r.finish(l.actors.together(context.Background(), []*request{r}))
	}
}

func (r *request) finish(err error) {
	if err == nil {
		err = r.job.err
	}
	r.done <- err
}

// together commits the jobs of a group in one transaction.
func (a *Actors) together(ctx context.Context, group []*request) error {
	jobs := make([]*job, len(group))
	for i, r := range group {
		jobs[i] = r.job
	}
	var b *batch
	err := a.eng.Update(ctx, func(tx *perdure.Tx) error {
		b = a.newBatch(host.In(tx))
		return acting(tx, jobs, func() error { return b.do(jobs) })
	})
	if err == nil {
		b.remember()
	}
	return err
}

// acting runs do and records the audited acts of the jobs that changed something.
func acting(tx *perdure.Tx, jobs []*job, do func() error) error {
	for _, j := range jobs {
		if j.act != nil && j.act.ReadBefore != nil {
			if err := host.In(tx).Attach(nil, j.act.ReadBefore()...); err != nil {
				return err
			}
		}
	}
	if err := do(); err != nil {
		return err
	}
	for _, j := range jobs {
		if j.act == nil || !j.changed() {
			continue
		}
		host.In(tx).Act(j.act)
		if j.act.ReadAfter != nil {
			if err := host.In(tx).Attach(nil, j.act.ReadAfter()...); err != nil {
				return err
			}
		}
	}
	return nil
}

// changed reports whether the job changed its actor. A job that exceeded a limit did: its actor
// has failed.
func (j *job) changed() bool {
	var limit *statechart.LimitError
	return j.err == nil || errors.As(j.err, &limit)
}
