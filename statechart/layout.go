package statechart

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// size measures a state and its descendants, innermost first.
func (d *drawing) size(n *node) {
	b := &d.boxes[n.order]
	if n.kind == history {
		b.w, b.h = 30, 30
		return
	}
	b.lines = boxLines(n)
	b.w, b.h = minWide, titleHigh+float64(len(b.lines))*lineHigh
	if len(b.lines) > 0 {
		b.h += 6
	}
	b.w = max(b.w, textWide(n.key, titleChar)+28)
	for _, l := range b.lines {
		b.w = max(b.w, textWide(l, charWide)+24)
	}
	for _, c := range n.states {
		d.size(c)
	}
	if len(n.states) > 0 {
		d.sizeAround(n)
	}
}

// sizeAround computes the size of a state from its child states.
func (d *drawing) sizeAround(n *node) {
	b := &d.boxes[n.order]
	if n.kind == parallel {
		b.columns = stacked(n)
	} else {
		b.columns = d.ranked(n)
	}
	for i, column := range b.columns {
		for j, c := range column {
			d.boxes[c.order].column, d.boxes[c.order].row = i, j
		}
	}
	d.gaps(n)
	wide, high := 0.0, 0.0
	for i, column := range b.columns {
		w, h := 0.0, 0.0
		for j, c := range column {
			w = max(w, d.boxes[c.order].w)
			h += d.boxes[c.order].h
			if j > 0 {
				h += d.rowGap(n)
			}
		}
		b.widths = append(b.widths, w)
		wide += w + b.gaps[i]
		high = max(high, h)
	}
	left := pad
	if n.kind != parallel {
		left += dotWide
	}
	d.rooms(n)
	b.w = max(b.w, left+wide+pad)
	b.h += pad/2 + b.above + high + b.below + pad
}

func (d *drawing) rowGap(n *node) float64 {
	if n.kind == parallel {
		return dashGap * 2
	}
	return rowGap
}

// stacked arranges the regions of a parallel state below each other.
func stacked(n *node) [][]*node {
	columns := [][]*node{n.regions}
	if len(n.histories) > 0 {
		columns = append(columns, n.histories)
	}
	return columns
}

// ranked arranges the child states of a compound state in columns by their distance from the
// initial state.
func (d *drawing) ranked(n *node) [][]*node {
	next := map[*node][]*node{}
	for _, a := range d.inside[n] {
		if from, to := childToward(n, a.from), childToward(n, a.to); from != to {
			next[from] = append(next[from], to)
		}
	}
	rank, deepest := map[*node]int{}, 0
	visit := func(first *node, at int) {
		queue := []*node{first}
		rank[first] = at
		for len(queue) > 0 {
			c := queue[0]
			queue = queue[1:]
			deepest = max(deepest, rank[c])
			for _, o := range next[c] {
				if _, ok := rank[o]; !ok {
					rank[o] = rank[c] + 1
					queue = append(queue, o)
				}
			}
		}
	}
	if n.initial != nil {
		visit(n.initial, 0)
	}
	for _, c := range n.states {
		if _, ok := rank[c]; !ok {
			visit(c, min(1, deepest))
		}
	}
	columns := make([][]*node, deepest+1)
	for _, c := range n.states {
		columns[rank[c]] = append(columns[rank[c]], c)
	}
	return d.untangle(slices.DeleteFunc(columns, func(c []*node) bool { return len(c) == 0 }), next)
}

// untangle orders each column by the sources of its arrows.
func (d *drawing) untangle(columns [][]*node, next map[*node][]*node) [][]*node {
	row := map[*node]float64{}
	for i, column := range columns {
		sum, count := map[*node]float64{}, map[*node]float64{}
		if i > 0 {
			for _, p := range columns[i-1] {
				counted := map[*node]bool{}
				for _, c := range next[p] {
					if !counted[c] {
						counted[c] = true
						sum[c], count[c] = sum[c]+row[p], count[c]+1
					}
				}
			}
		}
		weight := map[*node]float64{}
		for j, c := range column {
			weight[c] = float64(j)
			if count[c] > 0 {
				weight[c] = sum[c] / count[c]
			}
		}
		slices.SortStableFunc(column, func(a, b *node) int { return cmp.Compare(weight[a], weight[b]) })
		for j, c := range column {
			row[c] = float64(j) - float64(len(column)-1)/2
		}
	}
	return columns
}

// childToward returns the child of n that is other or contains it.
func childToward(n, other *node) *node {
	for other != nil && other.parent != n {
		other = other.parent
	}
	return other
}

// gaps reserves space for labels between columns.
func (d *drawing) gaps(n *node) {
	b := &d.boxes[n.order]
	b.gaps = make([]float64, len(b.columns))
	for i := range len(b.columns) - 1 {
		b.gaps[i] = 46
	}
	for _, a := range d.inside[n] {
		switch i, j, _, _ := d.columns(a); {
		case j == i+1:
			b.gaps[i] = max(b.gaps[i], min(a.labelWide()+34, 300))
		case j == i && a.from != a.to:
			b.gaps[i] = max(b.gaps[i], min(a.labelWide()+44, 300))
		}
	}
}

// home returns the state in whose area an arrow is drawn. It returns nil for an arrow between a
// state and one of its descendants.
func (a *arrow) home() *node {
	if a.from == a.to {
		return a.from.parent
	}
	n := commonAncestor(a.from, a.to)
	if n == a.from || n == a.to {
		return nil
	}
	return n
}

// rooms reserves space for arrows that pass above or below the columns.
func (d *drawing) rooms(n *node) {
	b := &d.boxes[n.order]
	for _, a := range d.inside[n] {
		i, j, _, _ := d.columns(a)
		span := 0.0
		for k := min(i, j); k < max(i, j); k++ {
			span += b.widths[k] + b.gaps[k]
		}
		room := 0.75*archReach(span) + lineHigh*float64(len(a.labels))/2
		switch {
		case a.from == a.to:
			b.above = max(b.above, 24)
		case j > i+1 || j < i && !d.lastInColumn(a):
			b.above = max(b.above, room)
		case j < i:
			b.below = max(b.below, room)
		}
	}
}

func (a *arrow) labelWide() float64 {
	w := 0.0
	for _, l := range a.labels {
		w = max(w, textWide(l, charWide))
	}
	return w
}

// place sets the positions of a state and its descendants.
func (d *drawing) place(n *node, x, y float64) {
	b := &d.boxes[n.order]
	b.x, b.y = x, y
	d.limit.w, d.limit.h = max(d.limit.w, x+b.w), max(d.limit.h, y+b.h)
	if len(n.states) == 0 {
		return
	}
	d.stretch(n)
	top := y + b.h - pad - b.below - d.inner(n)
	cx := x + pad
	if n.kind != parallel {
		cx += dotWide
	}
	for i, column := range b.columns {
		cy := top + (d.inner(n)-d.columnHigh(n, column))/2 // columns are centered; their states are left-aligned
		for _, c := range column {
			d.place(c, cx, cy)
			cy += d.boxes[c.order].h + d.rowGap(n)
		}
		cx += b.widths[i] + b.gaps[i]
	}
}

// stretch gives the regions of a parallel state the same width.
func (d *drawing) stretch(n *node) {
	if n.kind != parallel {
		return
	}
	b := &d.boxes[n.order]
	wide := b.w - 2*pad
	for i := 1; i < len(b.widths); i++ {
		wide -= b.widths[i] + b.gaps[i-1]
	}
	b.widths[0] = max(b.widths[0], wide)
	for _, c := range n.regions {
		d.boxes[c.order].w = b.widths[0]
	}
}

// inner returns the height of the highest column.
func (d *drawing) inner(n *node) float64 {
	h := 0.0
	for _, column := range d.boxes[n.order].columns {
		h = math.Max(h, d.columnHigh(n, column))
	}
	return h
}

func (d *drawing) columnHigh(n *node, column []*node) float64 {
	h := d.rowGap(n) * float64(len(column)-1)
	for _, c := range column {
		h += d.boxes[c.order].h
	}
	return h
}

// boxLines returns the text lines of a box: actions, invocations, tags, and the transitions
// that stay in the state.
func boxLines(n *node) []string {
	var lines []string
	add := func(what string, names []string) {
		if len(names) > 0 {
			lines = append(lines, shorten(what+" "+strings.Join(names, ", "), 48))
		}
	}
	add("entry /", actionTexts(n.entry))
	add("exit /", actionTexts(n.exit))
	for _, inv := range n.invokes {
		add("invoke", []string{inv.src})
	}
	for _, t := range n.outgoing() {
		if len(t.targets) == 0 || len(t.targets) == 1 && t.targets[0] == n && !t.reenter {
			add(t.text, []string{""})
		}
	}
	add("tags:", n.tags)
	return lines
}
