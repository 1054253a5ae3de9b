package fsm

import (
	"context"
	"slices"

	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/work"
	"github.com/perdure/perdure/retry"
)

// endTarget is an unfinished instance that must be finished from outside: cancelled, or
// failed because of its deadline.
type endTarget struct {
	id     string
	status Status
	reason string
	// by is the parent because of whose end the instance is finished. A retry of that
	// parent reopens it. Empty: none.
	by string
	// root is the instance whose end started this.
	root string
}

// taking finishes many instances in one transaction. It never waits for a lock: an
// instance that another transaction has locked is skipped until the next time.
type taking struct {
	machines *Machines
	tx       sqldb.Runner
	wakeups  *work.Wakeups

	targets map[string]endTarget
	order   []string // ids, in the given order
	locked  map[string]store.Unfinished
	leases  map[string]bool // tokens of locked leases

	gone    map[string]bool   // instances that were finished before
	removed map[string]bool   // removed from their place: ready, waiting, barrier, unrouted
	queued  map[string]bool   // subset of removed: were in the queue of their partition
	holders map[string]string // the newest lease of instances without a place

	// handled are the instances that are finished or continue with their cancel step, now
	// or before.
	handled map[string]bool
	// interrupted are the claims that were revoked.
	interrupted []store.Held
}

func newTaking(m *Machines, tx sqldb.Runner, all []endTarget, wakeups *work.Wakeups) *taking {
	t := &taking{
		machines: m, tx: tx, wakeups: wakeups, targets: map[string]endTarget{}, locked: map[string]store.Unfinished{}, leases: map[string]bool{},
		gone: map[string]bool{}, removed: map[string]bool{}, queued: map[string]bool{}, holders: map[string]string{}, handled: map[string]bool{},
	}
	for _, d := range all {
		t.targets[d.id] = d
		t.order = append(t.order, d.id)
	}
	return t
}

// run finishes the instances.
func (t *taking) run(ctx context.Context) error {
	if len(t.order) == 0 {
		return nil
	}
	if err := t.lock(ctx); err != nil || len(t.locked) == 0 {
		return err
	}
	if err := t.lockRelated(ctx); err != nil {
		return err
	}
	if err := t.remove(ctx); err != nil {
		return err
	}
	return t.tx.Run(ctx, t.writes()...)
}

// lock locks leases before instances, as outcomes do, and reads the locked instances.
func (t *taking) lock(ctx context.Context) error {
	st := t.machines.rt.Store
	var ids []string
	err := t.tx.Run(ctx,
		st.TakeLeasesOf(t.order, func(token string) { t.leases[token] = true }),
		st.Instances().Take(t.order, func(id string) { ids = append(ids, id) }),
	)
	if err != nil || len(ids) == 0 {
		return err
	}
	return t.tx.Run(ctx, st.ReadUnfinished(ids, func(e store.Unfinished) { t.locked[e.ID] = e }), st.FinishedAmong(ids, func(id string) { t.gone[id] = true }))
}

// lockRelated locks the partitions and barriers that change with the instances. An
// instance is skipped if another transaction has locked its partition or barrier.
func (t *taking) lockRelated(ctx context.Context) error {
	st := t.machines.rt.Store
	var keys, parents []string
	for _, e := range t.locked {
		if e.Partition != nil {
			keys = append(keys, *e.Partition)
		}
		if e.Parent != nil {
			parents = append(parents, *e.Parent)
		}
	}
	partitions, barriers, free := map[string]bool{}, map[string]bool{}, map[string]bool{}
	var stmts []sqldb.Stmt
	if len(keys) > 0 {
		stmts = append(stmts, st.TakePartitions(distinct(keys), func(key string) { partitions[key] = true }))
	}
	if len(parents) > 0 {
		parents = distinct(parents)
		stmts = append(stmts, st.TakeBarriers(parents, func(p string) { free[p] = true }), st.FindBarriers(parents, func(p string) { barriers[p] = true }))
	}
	if len(stmts) == 0 {
		return nil
	}
	if err := t.tx.Run(ctx, stmts...); err != nil {
		return err
	}
	for id, e := range t.locked {
		if e.Partition != nil && !partitions[*e.Partition] && !t.gone[id] || e.Parent != nil && barriers[*e.Parent] && !free[*e.Parent] {
			delete(t.locked, id)
		}
	}
	return nil
}

func distinct(all []string) []string {
	slices.Sort(all)
	return slices.Compact(all)
}

// remove removes the instances from their places and finds the leases of the others.
func (t *taking) remove(ctx context.Context) error {
	st := t.machines.rt.Store
	var ids []string
	var members, stay []store.PartitionMember // stay: instances that are compensated
	for _, id := range t.order {
		e, ok := t.locked[id]
		if !ok || t.gone[id] || e.CancelReason != nil {
			continue
		}
		ids = append(ids, id)
		member := store.PartitionMember{Key: edge.Value(e.Partition), ID: id}
		switch {
		case e.Partition == nil:
		case compensates(e):
			stay = append(stay, member)
		default:
			members = append(members, member)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	stmts := st.RemoveInstances(ids, members, t.machines.rt.Now(), func(id string) { t.removed[id] = true }, func(id string) { t.removed[id], t.queued[id] = true, true })
	if len(stay) > 0 {
		stmts = append(stmts, st.QueuedMembers(stay, func(id string) { t.removed[id], t.queued[id] = true, true }))
	}
	stmts = append(stmts, st.HeldInstances(ids, func(h store.Held) {
		if _, newer := t.holders[h.ID]; !newer {
			t.holders[h.ID] = h.Token
		}
	}))
	return t.tx.Run(ctx, stmts...)
}

// writes returns the statements that finish the instances that were removed, or that a
// locked lease holds.
func (t *taking) writes() []sqldb.Stmt {
	m := t.machines
	st, now := m.rt.Store, m.rt.Now()
	end := ending{rt: m.rt, wakeups: t.wakeups}
	compensating := compensating{machines: m}
	cut := map[store.Held]string{}
	var trees []store.TreeEnd
	for _, id := range t.order {
		e, ok := t.locked[id]
		token := t.holders[id]
		switch {
		case !ok:
			continue
		case t.gone[id], e.CancelReason != nil:
			t.handled[id] = true
			continue
		case t.removed[id]:
		case t.leases[token]:
			held := store.Held{ID: id, Token: token}
			t.interrupted, cut[held] = append(t.interrupted, held), t.targets[id].reason
		default:
			continue // it is moving from one place to another
		}
		t.handled[id] = true
		d := t.targets[id]
		if compensates(e) {
			compensating.add(e, d, t.queued[id], !t.removed[id])
			t.wakeups.Woken(e.Queue)
			continue
		}
		if t.queued[id] { // it was not the head of its partition: the head stays
			e.Partition = nil
		}
		end.add(e.Instance, d.status, nil, nil, &d.reason)
		end.endedBy(d.by)
		if e.Fanout > 0 {
			trees = append(trees, treeOf(e.Instance, d.root, d.reason))
		}
	}
	var stmts []sqldb.Stmt
	if len(t.interrupted) > 0 {
		stmts = append(stmts, recordCut(st, cut, now)...)
		stmts = append(stmts, st.InterruptAll(t.interrupted))
	}
	stmts = append(append(stmts, end.statements(now)...), compensating.statements(now)...)
	if len(trees) > 0 {
		stmts = append(stmts, st.InsertTreeEnds(trees, takeover, now))
	}
	return stmts
}

// recordCut records the interrupted attempts, grouped by lease and reason.
func recordCut(st *store.Store, cut map[store.Held]string, now store.Now) []sqldb.Stmt {
	type group struct{ token, reason string }
	groups := map[group][]string{}
	for held, reason := range cut {
		g := group{held.Token, reason}
		groups[g] = append(groups[g], held.ID)
	}
	var stmts []sqldb.Stmt
	for g, ids := range groups {
		stmts = append(stmts, st.Instances().RecordTaken(g.token, ids, retry.Cancelled, g.reason, now)...)
	}
	return stmts
}

// treeOf returns the row that finishes the children of a finished instance.
func treeOf(i store.Instance, root, reason string) store.TreeEnd {
	return store.TreeEnd{Parent: i.ID, First: 1, Last: i.Fanout, Kind: store.TreeEnded, Root: root, Reason: reason}
}

// because returns the reason for the end of a child.
func because(r store.TreeEnd) string {
	if r.Kind == store.TreeCancelled {
		return edge.Message("cancelled by parent " + r.Parent + ": " + r.Reason)
	}
	return edge.Message("parent " + r.Parent + " finished: " + r.Reason)
}
