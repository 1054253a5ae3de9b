package fsm

import (
	"context"
	"time"

	"github.com/perdure/perdure/internal/failpoint"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/unit"
)

const (
	// treeRows is the number of rows, and treeChildren the number of children, that
	// one transaction handles at most.
	treeRows     = 50
	treeChildren = 500
	// takeover is the time after which another process continues with a tree that a
	// process has begun.
	takeover = time.Second
)

// piece is one transaction that handles children of trees.
type piece struct {
	machines *Machines
	tx       sqldb.Runner
	news     *news
	rows     []store.TreeEnd
	taking   *taking

	// taken is the number of rows that were free, handled the number of children
	// that were handled, skipped the number that others have locked.
	taken, handled, skipped int
	// full says that there may be more than this piece has looked at.
	full bool
}

// endPiece handles a bounded number of children: of one tree, or of all trees if root
// is empty.
func (m *Machines) endPiece(ctx context.Context, root string) (*piece, error) {
	ctx, cancel := context.WithTimeout(ctx, m.rt.Timeout)
	defer cancel()
	p := &piece{machines: m, news: &news{}}
	err := unit.Once(ctx, m.rt.DB, sqldb.Write, func(tx sqldb.Tx) error {
		p.tx = tx
		return p.run(ctx, root)
	})
	if err != nil {
		return nil, err
	}
	p.announce()
	return p, failpoint.Hit("fsm.tree.piece")
}

// announce tells the dispatchers and the steps that run here.
func (p *piece) announce() {
	p.news.publish(p.machines.rt)
	p.machines.interruptHere(p.interrupted())
}

// interrupted returns the claims that were taken away.
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
	p.taken, p.full = len(p.rows), len(p.rows) == treeRows
	return p.cancel(ctx, p.rows)
}

// cancel ends live children of the rows.
func (p *piece) cancel(ctx context.Context, rows []store.TreeEnd) error {
	st := p.machines.rt.Store
	var over []int64 // rows about nothing: the end of their parent was taken back
	byRow := map[int64]store.TreeEnd{}
	var seqs []int64
	for _, r := range rows {
		if r.Kind == store.TreeEnded && r.Lives {
			over = append(over, r.Seq)
			continue
		}
		byRow[r.Seq], seqs = r, append(seqs, r.Seq)
	}
	var children []store.TreeChild
	if len(seqs) > 0 {
		if err := p.tx.Run(ctx, st.LiveTreeChildren(seqs, treeChildren, func(c store.TreeChild) { children = append(children, c) })); err != nil {
			return err
		}
	}
	all := make([]doomed, len(children))
	for i, c := range children {
		r := byRow[c.Seq]
		all[i] = doomed{id: c.ID, status: Cancelled, reason: because(r), root: r.Root}
		if r.Kind == store.TreeEnded {
			all[i].by = r.Parent
		}
	}
	p.taking = newTaking(p.machines, p.tx, all, p.news)
	if err := p.taking.run(ctx); err != nil {
		return err
	}
	passes := p.passes(seqs, byRow, children, p.taking.handled)
	return p.tx.Run(ctx, p.store(append(over, passes.over...), passes.on)...)
}

// passes is what becomes of the rows of a piece.
type passes struct {
	over []int64
	on   []store.TreePass
}

// passes decides which rows are over. A row is over when a pass from the first child
// on has found no child, or has handled all that it found. If the piece is full, the
// last row that it came to continues after the last child, and the rows after that
// one were not looked at.
func (p *piece) passes(seqs []int64, rows map[int64]store.TreeEnd, children []store.TreeChild, handled map[string]bool) (out passes) {
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
	if len(children) == treeChildren {
		cut, p.full = children[len(children)-1].Seq, true
	}
	for _, seq := range seqs {
		switch {
		case seq == cut:
			fanout, ordinal := last[seq].Fanout, last[seq].Ordinal
			out.on = append(out.on, store.TreePass{Seq: seq, Fanout: &fanout, Ordinal: &ordinal})
			return out
		case skipped[seq] == 0 && !rows[seq].Begun:
			out.over = append(out.over, seq)
		default: // begin anew, to come to those that were skipped
			out.on = append(out.on, store.TreePass{Seq: seq})
			p.full = p.full || rows[seq].Begun
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

// endTree ends the children of an instance that has ended, and theirs, until none is
// left or ctx is done. Other processes may help, and continue if this one stops.
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
