package fsm

import (
	"context"
	"errors"
	"fmt"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/unit"
	"github.com/perdure/perdure/internal/work"
	"github.com/perdure/perdure/retry"
)

// Cancel ends an instance and its children, and theirs. If a step of one of them is
// running, its context is cancelled and its outcome is dropped: immediately in this
// process, within a second in others.
//
// The instance itself ends in one transaction; an error means that it has not ended.
// Its children end in further transactions, set by set. Cancel returns when all have
// ended. If ctx is done before that, Cancel returns nil too: processes that serve
// state machines end the rest.
func (m *Machines) Cancel(ctx context.Context, id, reason string) error {
	if !validID(id) {
		return fault.Invalidf("instance id", "is not a UUID in lower case")
	}
	return m.end(ctx, id, Cancelled, edge.Message(reason), false)
}

// Terminate is Cancel without compensation: the instance ends even if its definition
// has a cancel step, and if that is running. So do its children, except that theirs
// run if they have one.
func (m *Machines) Terminate(ctx context.Context, id, reason string) error {
	if !validID(id) {
		return fault.Invalidf("instance id", "is not a UUID in lower case")
	}
	return m.end(ctx, id, Cancelled, edge.Message(reason), true)
}

// maxInUnit is the number of children that CancelIn ends in the transaction of its
// unit.
const maxInUnit = 1000

// CancelIn is Cancel as part of a unit of work, which fails if the instance cannot
// be cancelled. Up to 1,000 children end in the transaction of the unit. Processes
// that serve state machines end the rest after it is committed.
func (m *Machines) CancelIn(tx *perdure.Tx, id, reason string) error {
	return m.endIn(tx, id, reason, false)
}

// TerminateIn is Terminate as part of a unit of work, like CancelIn.
func (m *Machines) TerminateIn(tx *perdure.Tx, id, reason string) error {
	return m.endIn(tx, id, reason, true)
}

func (m *Machines) endIn(tx *perdure.Tx, id, reason string, terminate bool) error {
	if !validID(id) {
		return host.In(tx).Fail(fault.Invalidf("instance id", "is not a UUID in lower case"))
	}
	run, err := host.In(tx).Runner()
	if err != nil {
		return err
	}
	r := rootEnd{machines: m, tx: run, news: &work.News{}, terminate: terminate}
	err = r.end(tx.Context(), id, Cancelled, edge.Message(reason))
	for left := maxInUnit; err == nil && r.tree && left > 0; {
		p := &piece{machines: m, tx: run, news: r.news}
		if err = p.run(tx.Context(), id); err == nil {
			r.interrupted = append(r.interrupted, p.interrupted()...)
			r.tree = p.taken > 0 && p.skipped == 0
			left -= max(p.handled, 1)
		}
	}
	if errors.Is(err, errMoved) { // the unit is run again
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

// maxEnds is how often the end of an instance that keeps moving is tried.
const maxEnds = 20

// errMoved says that an instance moved to another place while it was being ended.
var errMoved = errors.New("instance moved meanwhile")

// end ends an instance from outside, whatever it is doing, and then its children.
func (m *Machines) end(ctx context.Context, id string, status Status, reason string, terminate bool) error {
	if err := m.record(ctx); err != nil {
		return err
	}
	for attempt := 1; ; attempt++ {
		r, err := m.tryEnd(ctx, id, status, reason, terminate)
		if err == nil {
			r.announce()
			if r.tree {
				m.endChildren(ctx, id)
			}
			return nil
		}
		if !errors.Is(err, errMoved) && !sqldb.IsTransient(err) || attempt == maxEnds {
			return fmt.Errorf("end instance %s: %w", id, err)
		}
		unit.Pause(ctx, attempt)
	}
}

// endChildren ends the tree under an instance that has ended. What fails or takes
// longer than ctx is left to the processes that serve state machines.
func (m *Machines) endChildren(ctx context.Context, id string) {
	err := m.endTree(ctx, id)
	if err == nil {
		return
	}
	if ctx.Err() == nil {
		m.options.OnError(fmt.Errorf("end children of instance %s: %w", id, err))
	}
	m.ends.kick()
}

func (m *Machines) tryEnd(ctx context.Context, id string, status Status, reason string, terminate bool) (*rootEnd, error) {
	ctx, cancel := context.WithTimeout(ctx, m.rt.Timeout)
	defer cancel()
	r := &rootEnd{machines: m, news: &work.News{}, terminate: terminate}
	return r, unit.Once(ctx, m.rt.DB, sqldb.Write, func(tx sqldb.Tx) error {
		r.tx = tx
		return m.rt.Store.Act(ctx, tx, func() error { return r.end(ctx, id, status, reason) })
	})
}

// rootEnd ends one instance from outside, and waits for the locks that it needs.
type rootEnd struct {
	machines *Machines
	tx       sqldb.Runner
	news     *work.News

	interrupted []store.Held
	tree        bool // it may have live children
	terminate   bool // also an instance that has a cancel step
}

// announce tells the dispatchers and the steps that run here.
func (r *rootEnd) announce() {
	r.machines.runner.Publish(r.news)
	r.machines.interruptHere(r.interrupted)
}

// end takes the lock of a lease before that of the instance, as outcomes do, and
// then finds the instance in exactly one place.
func (r *rootEnd) end(ctx context.Context, id string, status Status, reason string) error {
	st := r.machines.rt.Store
	var token, ended string
	var leased, queued bool
	var removed int64
	var instance store.Instance
	var doom store.Doomed
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
		st.DoomedInstances([]string{id}, func(d store.Doomed) { doom = d }),
	}
	if err := r.tx.Run(ctx, stmts...); err != nil {
		return err
	}
	if ended != "" {
		return stateError(id, Status(ended))
	}
	if !r.terminate && doom.CancelReason != nil {
		return nil // it is being compensated
	}
	compensate := !r.terminate && compensates(doom)
	if err := r.tx.Run(ctx, r.remove(doom, compensate, &removed, &queued)...); err != nil {
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
		c.add(doom, doomed{id: id, reason: reason, root: id}, queued, removed == 0)
		r.tree = instance.Fanout > 0
		r.news.Woken(doom.Queue)
		return r.tx.Run(ctx, c.statements(r.machines.rt.Now())...)
	}
	if queued { // it was not at the head of its partition: the head stays
		instance.Partition = nil
	}
	now := r.machines.rt.Now()
	end := ending{rt: r.machines.rt, news: r.news}
	end.add(instance, status, nil, nil, &reason)
	stmts = end.statements(now)
	if r.tree = instance.Fanout > 0; r.tree {
		stmts = append(stmts, st.InsertTreeEnds([]store.TreeEnd{treeOf(instance, id, reason)}, takeover, now))
	}
	return r.tx.Run(ctx, stmts...)
}

// remove returns the statements that take the instance out of its place. One that is
// compensated stays in the queue of its partition.
func (r *rootEnd) remove(e store.Doomed, compensate bool, removed *int64, queued *bool) []sqldb.Stmt {
	st := r.machines.rt.Store
	stmts := st.RemoveInstance(e.ID, r.machines.rt.Now(), compensate, removed, queued)
	if !compensate || e.Partition == nil {
		return stmts
	}
	return append(stmts, st.QueuedMembers([]store.PartitionMember{{Key: *e.Partition, ID: e.ID}}, func(string) { *removed, *queued = 1, true }))
}

// interrupt takes an instance that is in no other place away from the lease that
// is locked. That lease holds it only if it is still the newest one: a step
// of the instance may have ended, and the next been claimed, before the lock. The
// attempt that this cuts short is recorded.
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
