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

// maxGroup is how many jobs share a transaction at most.
const maxGroup = 64

// lane commits the jobs of some actors, in groups and without added delay: a
// job that arrives while the lane is idle is committed at once, those that
// arrive meanwhile share the next transaction. All jobs of an actor take the
// same lane, so that they neither wait for each other's locks nor overtake.
//
// A lane has a goroutine while it has jobs.
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

// commit does a job in a transaction that it may share with others.
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
		return <-r.done // it is being committed: its outcome matters more than the time
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

// serve commits groups until nobody waits.
func (l *lane) serve() {
	for group := l.next(); group != nil; group = l.next() {
		l.settle(group)
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

// settle brings every job of the group to its outcome. No job fails for the
// sake of a neighbour: if the group cannot be committed, each runs alone.
func (l *lane) settle(group []*request) {
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

// together commits jobs in one transaction.
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

// acting runs do and records the acts of the jobs that have changed something.
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

// changed reports whether the job was done. One that exceeded a limit was: its actor
// has failed.
func (j *job) changed() bool {
	var limit *statechart.LimitError
	return j.err == nil || errors.As(j.err, &limit)
}
