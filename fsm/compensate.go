package fsm

import (
	"context"
	"time"

	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
)

// handOverTime is the time that a process has, in addition to the lease, to notice a
// cancellation and to stop the running step. The cancel step does not run before that
// time has passed, unless the process has handed the instance over.
const handOverTime = patience + 5*time.Second

// compensating gathers instances that continue with their cancel step.
type compensating struct {
	machines    *Machines
	all         []store.Compensation
	ready       []string
	leases      []store.CancelLease
	deadlines   []store.Deadline
	trees       []store.TreeEnd
	transitions []store.Transition
}

// compensates reports whether the cancellation of an instance runs its cancel step.
func compensates(e store.Unfinished) bool { return e.CancelStep != nil && e.CancelReason == nil }

// add adds an instance that was removed from its place. queued is true if it stays in the
// queue of its partition, running if one of its steps is still running.
func (c *compensating) add(e store.Unfinished, d endTarget, queued, running bool) {
	c.all = append(c.all, store.Compensation{ID: e.ID, Step: *e.CancelStep, Reason: d.reason})
	switch {
	case queued:
	case running:
		c.leases = append(c.leases, store.CancelLease{Token: c.machines.rt.NewID(), Queue: e.Queue, ID: e.ID})
	default:
		c.ready = append(c.ready, e.ID)
	}
	if e.Deadline != nil {
		c.deadlines = append(c.deadlines, store.Deadline{At: *e.Deadline, ID: e.ID})
	}
	if e.Fanout > 0 {
		c.trees = append(c.trees, store.TreeEnd{Parent: e.ID, First: 1, Last: e.Fanout, Kind: store.TreeCancelled, Root: d.root, Reason: d.reason})
	}
	reason := d.reason
	c.transitions = append(c.transitions, store.Transition{
		Instance: e.ID, Step: e.Step, Outcome: "cancel", Next: e.CancelStep, Attempt: e.Attempt, Crashes: e.Crashes, Error: &reason,
	})
}

// statements returns the statements that let the instances continue.
func (c *compensating) statements(now store.Now) []sqldb.Stmt {
	if len(c.all) == 0 {
		return nil
	}
	st := c.machines.rt.Store
	stmts := []sqldb.Stmt{st.CompensateInstances(c.all, now), st.InsertTransitions(c.machines.runner.ID, c.transitions, now)}
	if len(c.ready) > 0 {
		stmts = append(stmts, st.Instances().Ready(c.ready))
	}
	if len(c.leases) > 0 {
		stmts = append(stmts, st.InsertCancelLeases(c.leases, c.machines.options.Lease+handOverTime, now))
	}
	if len(c.deadlines) > 0 {
		stmts = append(stmts, st.DropDeadlines(c.deadlines))
	}
	if len(c.trees) > 0 {
		stmts = append(stmts, st.InsertTreeEnds(c.trees, takeover, now))
	}
	return stmts
}

// handOver finds the instances of interrupted claims whose running step has returned and
// that now continue with their cancel step. It returns the leases that hold them for
// that.
func (m *Machines) handOver(ctx context.Context, tx sqldb.Runner, interrupted []store.Held) (ids, tokens []string, err error) {
	all := make([]string, len(interrupted))
	for i, h := range interrupted {
		all[i] = h.ID
	}
	err = tx.Run(ctx, m.rt.Store.TakeCancelLeases(all, func(h store.Held) { ids, tokens = append(ids, h.ID), append(tokens, h.Token) }))
	return ids, tokens, err
}
