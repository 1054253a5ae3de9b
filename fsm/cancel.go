package fsm

import (
	"context"
	"errors"
	"fmt"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/unit"
	"github.com/perdure/perdure/internal/work"
	"github.com/perdure/perdure/retry"
)

// Cancel cancels an instance and its descendants. If one of them is running a step, the
// step's context is cancelled and its outcome is dropped: immediately in this process,
// within a second in others.
//
// The instance itself is cancelled in one transaction; an error means that it is not
// cancelled. Its descendants are cancelled in further transactions of bounded size.
// Cancel returns when all are finished. If ctx is done before that, Cancel also returns
// nil: processes that serve state machines cancel the rest.
func (m *Machines) Cancel(ctx context.Context, id, reason string) error {
	if !validID(id) {
		return unknown(id)
	}
	return m.end(ctx, id, Cancelled, edge.Message(reason), false)
}

// Terminate is Cancel without compensation: the instance is finished even if its
// definition has a cancel step, and even if that step is running. Its children are
// cancelled; children with a cancel step run it.
func (m *Machines) Terminate(ctx context.Context, id, reason string) error {
	if !validID(id) {
		return unknown(id)
	}
	return m.end(ctx, id, Cancelled, edge.Message(reason), true)
}

// maxInUnit is the maximum number of children that CancelIn finishes in the transaction
// of its unit.
const maxInUnit = 1000

// CancelIn is Cancel as part of a unit of work, which fails if the instance cannot be
// cancelled. Up to 1,000 children are cancelled in the transaction of the unit. Processes
// that serve state machines cancel the rest after the commit.
func (m *Machines) CancelIn(tx *perdure.Tx, id, reason string) error {
	return m.endIn(tx, id, reason, false)
}

// TerminateIn is Terminate as part of a unit of work, like CancelIn.
func (m *Machines) TerminateIn(tx *perdure.Tx, id, reason string) error {
	return m.endIn(tx, id, reason, true)
}

func (m *Machines) endIn(tx *perdure.Tx, id, reason string, terminate bool) error {
	if !validID(id) {
		return host.In(tx).Fail(unknown(id))
	}
	run, err := host.In(tx).Runner()
	if err != nil {
		return err
	}
	r := rootEnd{machines: m, tx: run, wakeups: &work.Wakeups{}, terminate: terminate}
	err = r.end(tx.Context(), id, Cancelled, edge.Message(reason))
	for left := maxInUnit; err == nil && r.tree && left > 0; {
		p := &piece{machines: m, tx: run, wakeups: r.wakeups}
		if err = p.run(tx.Context(), id); err == nil {
			r.interrupted = append(r.interrupted, p.interrupted()...)
			r.tree = p.taken > 0 && p.skipped == 0
			left -= max(p.handled, 1)
		}
	}
	if errors.Is(err, errMoved) { // the unit runs again
		err = &sqldb.Transient{Err: err}
	}
	if err != nil {
		return host.In(tx).Fail(err)
	}
	return host.In(tx).Attach(func() {
		r.announce()
		m.ends.kick()
	})
}

// maxEnds is the maximum number of attempts to finish an instance that keeps moving.
const maxEnds = 20

// errMoved reports that an instance moved to another place while it was being finished.
var errMoved = errors.New("instance moved concurrently")

// end finishes an instance from outside, in any live status, and then its descendants.
func (m *Machines) end(ctx context.Context, id string, status Status, reason string, terminate bool) error {
	if err := m.record(ctx); err != nil {
		return err
	}
	for attempt := 1; ; attempt++ {
		var r *rootEnd
		err := unit.Overtakable(ctx, m.rt.DB, func() (err error) {
			r, err = m.tryEnd(ctx, id, status, reason, terminate)
			return err
		})
		if err == nil {
			r.announce()
			if r.tree {
				m.endChildren(ctx, id)
			}
			return nil
		}
		if !errors.Is(err, errMoved) && !sqldb.IsTransient(err) || attempt == maxEnds {
			return fmt.Errorf("finish instance %s: %w", id, err)
		}
		unit.Pause(ctx, attempt)
	}
}

// endChildren finishes the descendants of a finished instance. Descendants that remain
// after an error, or when ctx is done, are left to the processes that serve state
// machines.
func (m *Machines) endChildren(ctx context.Context, id string) {
	err := m.endTree(ctx, id)
	if err == nil {
		return
	}
	if ctx.Err() == nil {
		m.options.OnError(fmt.Errorf("finish children of instance %s: %w", id, err))
	}
	m.ends.kick()
}

func (m *Machines) tryEnd(ctx context.Context, id string, status Status, reason string, terminate bool) (*rootEnd, error) {
	ctx, cancel := context.WithTimeout(ctx, m.rt.Timeout)
	defer cancel()
	r := &rootEnd{machines: m, wakeups: &work.Wakeups{}, terminate: terminate}
	return r, unit.Once(ctx, m.rt.DB, sqldb.Write, func(tx sqldb.Tx) error {
		r.tx = tx
		return m.rt.Store.Act(ctx, tx, func() error { return r.end(ctx, id, status, reason) })
	})
}

// rootEnd finishes one instance from outside. It waits for the locks that it needs.
type rootEnd struct {
	machines *Machines
	tx       sqldb.Runner
	wakeups  *work.Wakeups

	interrupted []store.Held
	tree        bool // the instance may have live children
	terminate   bool // skip the cancel step
}

// announce wakes the dispatchers and interrupts the affected steps of this process.
func (r *rootEnd) announce() {
	r.machines.runner.Publish(r.wakeups)
	r.machines.interruptHere(r.interrupted)
}

// end locks the lease before the instance, as outcomes do. After that the instance is in
// exactly one place.
func (r *rootEnd) end(ctx context.Context, id string, status Status, reason string) error {
	st := r.machines.rt.Store
	var token, ended string
	var leased, queued bool
	var removed int64
	var instance store.Instance
	var found store.Unfinished
	if err := r.tx.Run(ctx, st.LeaseOf(id, func(t string) { token = t })); err != nil {
		return err
	}
	if token != "" {
		if err := r.tx.Run(ctx, st.TakeLease(token, func(string) { leased = true })); err != nil {
			return err
		}
	}
	stmts := []sqldb.Stmt{
		st.LockInstances([]string{id}), st.FinishedStatus(id, func(s string) { ended = s }),
		st.GetInstance(id, func(i *store.Instance) { instance = *i }),
		st.ReadUnfinished([]string{id}, func(d store.Unfinished) { found = d }),
	}
	if err := r.tx.Run(ctx, stmts...); err != nil {
		return err
	}
	if ended != "" {
		return stateError(id, Status(ended))
	}
	if !r.terminate && found.CancelReason != nil {
		return nil // it is already being compensated
	}
	compensate := !r.terminate && compensates(found)
	if err := r.tx.Run(ctx, r.remove(found, compensate, &removed, &queued)...); err != nil {
		return err
	}
	if removed == 0 {
		if !leased {
			return errMoved
		}
		if err := r.interrupt(ctx, store.Held{ID: id, Token: token}, reason); err != nil {
			return err
		}
	}
	if compensate {
		c := compensating{machines: r.machines}
		c.add(found, endTarget{id: id, reason: reason, root: id}, queued, removed == 0)
		r.tree = instance.Fanout > 0
		r.wakeups.Woken(found.Queue)
		return r.tx.Run(ctx, c.statements(r.machines.rt.Now())...)
	}
	if queued { // it was not the head of its partition: the head stays
		instance.Partition = nil
	}
	now := r.machines.rt.Now()
	end := ending{rt: r.machines.rt, wakeups: r.wakeups}
	end.add(instance, status, nil, nil, &reason)
	stmts = end.statements(now)
	if r.tree = instance.Fanout > 0; r.tree {
		stmts = append(stmts, st.InsertTreeEnds([]store.TreeEnd{treeOf(instance, id, reason)}, takeover, now))
	}
	return r.tx.Run(ctx, stmts...)
}

// remove returns the statements that remove the instance from its place. An instance that
// is compensated stays in the queue of its partition.
func (r *rootEnd) remove(e store.Unfinished, compensate bool, removed *int64, queued *bool) []sqldb.Stmt {
	st := r.machines.rt.Store
	stmts := st.RemoveInstance(e.ID, r.machines.rt.Now(), compensate, removed, queued)
	if !compensate || e.Partition == nil {
		return stmts
	}
	return append(stmts, st.QueuedMembers([]store.PartitionMember{{Key: *e.Partition, ID: e.ID}}, func(string) { *removed, *queued = 1, true }))
}

// interrupt removes an instance that has no place from the locked lease. The lease holds
// the instance only if it is still the newest one: the step may have finished, and the
// next step may have been claimed, before the lock. interrupt records the interrupted
// attempt.
func (r *rootEnd) interrupt(ctx context.Context, h store.Held, reason string) error {
	newest, st := "", r.machines.rt.Store
	if err := r.tx.Run(ctx, st.LeaseOf(h.ID, func(token string) { newest = token })); err != nil {
		return err
	}
	if newest != h.Token {
		return errMoved
	}
	r.interrupted = append(r.interrupted, h)
	return r.tx.Run(ctx, append(st.Instances().RecordTaken(h.Token, []string{h.ID}, retry.Cancelled, reason, r.machines.rt.Now()), st.Interrupt(h))...)
}
