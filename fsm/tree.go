package fsm

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/perdure/perdure/internal/failpoint"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/unit"
	"github.com/perdure/perdure/internal/work"
)

const (
	// treeRows is the maximum number of rows, and treeChildren the maximum number of
	// children, that one transaction handles.
	treeRows     = 50
	treeChildren = 500
	// reopenChildren is the maximum number of children that one transaction reopens.
	reopenChildren = 100
	// takeover is the time after which another process continues a tree that a process
	// has started to handle.
	takeover = time.Second
)

// piece is one transaction that handles children of trees.
type piece struct {
	machines *Machines
	tx       sqldb.Runner
	wakeups  *work.Wakeups
	rows     []store.TreeEnd
	taking   *taking

	// taken is the number of rows that were not locked. handled is the number of children
	// that were handled. skipped is the number of children that other transactions have
	// locked, plus the number of rows that wait for other rows.
	taken, handled, skipped int
	reopened                bool // children were reopened
}

// endPiece handles a bounded number of children: of one tree, or of all trees if root
// is empty.
func (m *Machines) endPiece(ctx context.Context, root string) (*piece, error) {
	ctx, cancel := context.WithTimeout(ctx, m.rt.Timeout)
	defer cancel()
	var p *piece
	err := unit.Overtakable(ctx, m.rt.DB, func() error {
		p = &piece{machines: m, wakeups: &work.Wakeups{}}
		return unit.Once(ctx, m.rt.DB, sqldb.Write, func(tx sqldb.Tx) error {
			p.tx = tx
			return p.run(ctx, root)
		})
	})
	if err != nil {
		return nil, err
	}
	p.announce()
	return p, failpoint.Hit("fsm.tree.piece")
}

// announce wakes the dispatchers and interrupts the affected steps of this process.
func (p *piece) announce() {
	p.machines.runner.Publish(p.wakeups)
	if p.reopened {
		p.machines.rt.Hub.PublishAll()
	}
	p.machines.interruptHere(p.interrupted())
}

// interrupted returns the claims that were revoked.
func (p *piece) interrupted() []store.Held {
	if p.taking == nil {
		return nil
	}
	return p.taking.interrupted
}

func (p *piece) run(ctx context.Context, root string) error {
	err := p.tx.Run(ctx, p.machines.rt.Store.TakeTreeEnds(root, treeRows, func(r store.TreeEnd) { p.rows = append(p.rows, r) }))
	if err != nil || len(p.rows) == 0 {
		return err
	}
	slices.SortFunc(p.rows, func(a, b store.TreeEnd) int { return cmp.Compare(a.Seq, b.Seq) })
	p.taken = len(p.rows)
	var over []int64 // obsolete rows: their parent was reopened
	var cancel, reopen []store.TreeEnd
	for _, r := range p.rows {
		switch {
		case r.Blocked:
			p.skipped++
		case r.Kind == store.TreeEnded && r.Lives:
			over = append(over, r.Seq)
		case r.Kind == store.TreeReopened:
			reopen = append(reopen, r)
		default:
			cancel = append(cancel, r)
		}
	}
	if err := p.reopen(ctx, reopen); err != nil {
		return err
	}
	return p.cancel(ctx, cancel, over)
}

// cancel finishes live children of the rows. It also deletes the obsolete rows in over.
func (p *piece) cancel(ctx context.Context, rows []store.TreeEnd, over []int64) error {
	st := p.machines.rt.Store
	byRow, seqs := bySeq(rows)
	var children []store.TreeChild
	if len(seqs) > 0 {
		if err := p.tx.Run(ctx, st.LiveTreeChildren(seqs, treeChildren, func(c store.TreeChild) { children = append(children, c) })); err != nil {
			return err
		}
	}
	all := make([]endTarget, len(children))
	for i, c := range children {
		r := byRow[c.Seq]
		all[i] = endTarget{id: c.ID, status: Cancelled, reason: because(r), root: r.Root}
		if r.Kind == store.TreeEnded {
			all[i].by = r.Parent
		}
	}
	p.taking = newTaking(p.machines, p.tx, all, p.wakeups)
	if err := p.taking.run(ctx); err != nil {
		return err
	}
	passes := p.passes(seqs, byRow, children, treeChildren, p.taking.handled)
	return p.tx.Run(ctx, p.store(append(over, passes.over...), passes.on)...)
}

// bySeq returns rows by their numbers, and the numbers in order.
func bySeq(rows []store.TreeEnd) (byRow map[int64]store.TreeEnd, seqs []int64) {
	byRow = map[int64]store.TreeEnd{}
	for _, r := range rows {
		byRow[r.Seq], seqs = r, append(seqs, r.Seq)
	}
	return byRow, seqs
}

// passes has the rows of a piece that are complete (over) and that continue (on).
type passes struct {
	over []int64
	on   []store.TreePass
}

// passes decides which rows are complete. A row is complete when a pass from the first
// child has found no child, or has handled every child that it found. If the piece has
// found as many children as it may handle, the last row continues after the last child.
// Later rows were not examined.
func (p *piece) passes(seqs []int64, rows map[int64]store.TreeEnd, children []store.TreeChild, limit int, handled map[string]bool) (out passes) {
	last, skipped := map[int64]store.TreeChild{}, map[int64]int{}
	for _, c := range children {
		last[c.Seq] = c
		if handled[c.ID] {
			p.handled++
		} else {
			skipped[c.Seq]++
			p.skipped++
		}
	}
	cut := int64(-1)
	if len(children) == limit {
		cut = children[len(children)-1].Seq
	}
	for _, seq := range seqs {
		switch {
		case seq == cut:
			fanout, ordinal := last[seq].Fanout, last[seq].Ordinal
			out.on = append(out.on, store.TreePass{Seq: seq, Fanout: &fanout, Ordinal: &ordinal})
			return out
		case skipped[seq] == 0 && !rows[seq].Begun:
			out.over = append(out.over, seq)
		default: // start again from the first child, to reach the skipped ones
			out.on = append(out.on, store.TreePass{Seq: seq})
		}
	}
	return out
}

// store returns the statements that write the rows back.
func (p *piece) store(over []int64, on []store.TreePass) []sqldb.Stmt {
	st := p.machines.rt.Store
	var stmts []sqldb.Stmt
	if len(over) > 0 {
		stmts = append(stmts, st.DropTreeEnds(over))
	}
	if len(on) > 0 {
		stmts = append(stmts, st.AdvanceTreeEnds(on, takeover, p.machines.rt.Now()))
	}
	return stmts
}

// endTree finishes the descendants of a finished instance, until none is left or ctx is
// done. Other processes may help, and they continue if this process stops.
func (m *Machines) endTree(ctx context.Context, root string) error {
	for idle := 1; ; idle++ {
		p, err := m.endPiece(ctx, root)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && !sqldb.IsTransient(err):
			return err
		case err == nil && p.taken == 0:
			left := false
			if err := m.read(ctx, m.rt.Store.TreeEndsLeft(root, func() { left = true })); err != nil || !left {
				return err
			}
		case err == nil && (p.handled > 0 || p.skipped == 0):
			idle = 0
			continue
		}
		unit.Pause(ctx, idle)
	}
}
