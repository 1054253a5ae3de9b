package fsm

import (
	"context"
	"slices"

	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
)

// reopened returns the row that reopens the children of a retried instance.
func reopened(i *store.Instance, root string) store.TreeEnd {
	return store.TreeEnd{Parent: i.ID, First: 1, Last: i.Fanout, Kind: store.TreeReopened, Root: root, Reason: "retried"}
}

// joinAgain returns the barrier of a retried instance that was waiting for children. The
// children are counted when all of them are reopened.
func joinAgain(i *store.Instance) store.Barrier {
	return store.Barrier{
		Parent: i.ID, Fanout: i.Fanout, Pending: store.Uncounted, Until: i.Wait.Until, Timeout: i.Wait.Timeout(), CancelRest: i.Wait.Rest,
	}
}

// reopen reopens children that were finished because their parent finished.
func (p *piece) reopen(ctx context.Context, rows []store.TreeEnd) error {
	if len(rows) == 0 {
		return nil
	}
	st := p.machines.rt.Store
	byRow, seqs := bySeq(rows)
	var children []store.TreeChild
	if err := p.tx.Run(ctx, st.ClosedTreeChildren(seqs, reopenChildren, func(c store.TreeChild) { children = append(children, c) })); err != nil {
		return err
	}
	handled := map[string]bool{}
	if err := p.reopenChildren(ctx, byRow, children, handled); err != nil {
		return err
	}
	passes := p.passes(seqs, byRow, children, reopenChildren, handled)
	if err := p.recount(ctx, byRow, &passes); err != nil {
		return err
	}
	return p.tx.Run(ctx, p.store(passes.over, passes.on)...)
}

// reopenChildren reopens children, except those that other transactions have locked.
func (p *piece) reopenChildren(ctx context.Context, rows map[int64]store.TreeEnd, children []store.TreeChild, handled map[string]bool) error {
	if len(children) == 0 {
		return nil
	}
	st := p.machines.rt.Store
	ids := make([]string, len(children))
	root := map[string]string{}
	for i, c := range children {
		ids[i], root[c.ID] = c.ID, rows[c.Seq].Root
	}
	var reads []sqldb.Stmt
	byRoot := map[string][]store.Instance{}
	read := func(i *store.Instance) { byRoot[root[i.ID]] = append(byRoot[root[i.ID]], *i) }
	err := p.tx.Run(ctx, st.Instances().Take(ids, func(id string) { handled[id] = true }))
	for _, id := range ids {
		if handled[id] {
			reads = append(reads, st.GetInstance(id, read))
		}
	}
	ended := map[string]bool{}
	if err == nil && len(reads) > 0 {
		err = p.tx.Run(ctx, append(reads, st.FinishedAmong(ids, func(id string) { ended[id] = true }))...)
	}
	for root, instances := range byRoot {
		if err == nil {
			err = p.reopenOf(ctx, root, instances, ended)
		}
	}
	return err
}

// reopenOf reopens instances of one tree. It skips instances that another transaction has
// retried before they could be locked.
func (p *piece) reopenOf(ctx context.Context, root string, instances []store.Instance, ended map[string]bool) error {
	var closed []store.Instance
	for _, i := range instances {
		if ended[i.ID] {
			closed = append(closed, i)
		}
	}
	r := reopening{machines: p.machines, tx: p.tx, root: root}
	enter, taken, err := r.all(ctx, closed)
	if err != nil {
		return err
	}
	if len(taken) > 0 {
		kept := make([]string, 0, len(taken))
		for id := range taken {
			kept = append(kept, id)
		}
		enter = append(enter, p.machines.rt.Store.KeepEnded(kept))
	}
	p.reopened = true
	return p.tx.Run(ctx, enter...)
}

// recount counts the children at the barriers of parents whose children are all reopened.
// A row is kept if another transaction has locked the barrier or the parent.
func (p *piece) recount(ctx context.Context, rows map[int64]store.TreeEnd, passes *passes) error {
	if len(passes.over) == 0 {
		return nil
	}
	st := p.machines.rt.Store
	var parents, waiting, locked, counted []string
	for _, seq := range passes.over {
		parents = append(parents, rows[seq].Parent)
	}
	err := p.tx.Run(ctx, st.FindBarriers(parents, func(id string) { waiting = append(waiting, id) }))
	if err != nil || len(waiting) == 0 {
		return err
	}
	// Lock order: instances before barriers, as in taking.
	err = p.tx.Run(ctx, st.Instances().Take(waiting, func(id string) { locked = append(locked, id) }))
	if err == nil && len(locked) > 0 {
		err = p.tx.Run(ctx, st.TakeBarriers(locked, func(id string) { counted = append(counted, id) }))
	}
	if err == nil && len(counted) > 0 {
		err = p.tx.Run(ctx, st.Recount(counted, p.machines.rt.Now(), p.wakeups.Woken)...)
	}
	if err != nil {
		return err
	}
	var over []int64
	for _, seq := range passes.over {
		if parent := rows[seq].Parent; slices.Contains(waiting, parent) && !slices.Contains(counted, parent) {
			passes.on = append(passes.on, store.TreePass{Seq: seq})
			p.skipped++
			continue
		}
		over = append(over, seq)
	}
	passes.over = over
	return nil
}
