package statechart

import (
	"cmp"
	"math"
	"slices"
)

// route computes the path of each arrow and the position of its label.
func (d *drawing) route() {
	d.ports()
	for _, a := range d.arrows {
		d.putLabel(a)
	}
	for _, a := range d.arrows {
		for t := 0.0; t <= 1; t += 0.125 {
			p := a.on(t)
			d.limit.w, d.limit.h = max(d.limit.w, p.x), max(d.limit.h, p.y)
		}
		d.limit.w, d.limit.h = max(d.limit.w, a.label.x+a.label.w), max(d.limit.h, a.label.y+a.label.h)
	}
}

type side int

const (
	right side = iota
	left
	top
	bottom
)

// An end is the point where an arrow meets a box.
type end struct {
	a      *arrow
	start  bool
	toward float64 // position of the other end, along the side
}

// ports distributes the arrows that share a side of a box along that side.
func (d *drawing) ports() {
	type spot struct {
		n *node
		s side
	}
	var order []spot
	ends := map[spot][]end{}
	add := func(n *node, s side, e end) {
		k := spot{n, s}
		if _, ok := ends[k]; !ok {
			order = append(order, k)
		}
		ends[k] = append(ends[k], e)
	}
	sides := make(map[*arrow][2]side, len(d.arrows))
	for _, a := range d.arrows {
		out, in := d.sides(a)
		sides[a] = [2]side{out, in}
		f, t := d.boxes[a.from.order].center(), d.boxes[a.to.order].center()
		add(a.from, out, end{a, true, along(out, t)})
		add(a.to, in, end{a, false, along(in, f)})
	}
	starts, stops := map[*arrow]point{}, map[*arrow]point{}
	for _, k := range order {
		l := ends[k]
		slices.SortStableFunc(l, func(x, y end) int { return cmp.Compare(x.toward, y.toward) })
		for i, e := range l {
			p := d.boxes[k.n.order].port(k.s, i, len(l), len(k.n.states) > 0)
			if e.start {
				starts[e.a] = p
			} else {
				stops[e.a] = p
			}
		}
	}
	for _, a := range d.arrows {
		a.path = curve(starts[a], stops[a], sides[a])
	}
}

func along(s side, p point) float64 {
	if s == top || s == bottom {
		return p.x
	}
	return p.y
}

func (r rect) center() point { return point{r.x + r.w/2, r.y + r.h/2} }

// port returns the i-th of n points on a side.
func (r rect) port(s side, i, n int, open bool) point {
	f := (float64(i) + 1) / (float64(n) + 1)
	y := r.y + r.h*f
	if open { // next to the title, not next to the states inside
		y = r.y + 8 + min(r.h-16, 60)*f
	}
	switch s {
	case right:
		return point{r.x + r.w, y}
	case left:
		return point{r.x, y}
	case top:
		return point{r.x + r.w*f, r.y}
	default:
		return point{r.x + r.w*f, r.y + r.h}
	}
}

// sides returns the sides where an arrow leaves and arrives.
func (d *drawing) sides(a *arrow) (out, in side) {
	f, t := d.boxes[a.from.order], d.boxes[a.to.order]
	switch {
	case a.from == a.to:
		return top, top
	case a.to.below(a.from):
		return left, left
	case a.from.below(a.to):
		return bottom, bottom
	case t.x >= f.x+f.w && d.nextColumn(a):
		return right, left
	case t.x >= f.x+f.w:
		return top, top
	case d.backward(a) && d.lastInColumn(a):
		return bottom, bottom
	case d.backward(a):
		return top, top
	case math.Abs(t.center().x-f.center().x) < 4 && t.y >= f.y+f.h && d.adjacent(a):
		return bottom, top
	default:
		return right, right
	}
}

// columns returns the columns and rows of both ends in their common ancestor.
func (d *drawing) columns(a *arrow) (from, to, fromRow, toRow int) {
	n := commonAncestor(a.from, a.to)
	if c := childToward(n, a.from); c != nil {
		from, fromRow = d.boxes[c.order].column, d.boxes[c.order].row
	}
	if c := childToward(n, a.to); c != nil {
		to, toRow = d.boxes[c.order].column, d.boxes[c.order].row
	}
	return from, to, fromRow, toRow
}

func (d *drawing) nextColumn(a *arrow) bool {
	from, to, _, _ := d.columns(a)
	return to == from+1
}

func (d *drawing) backward(a *arrow) bool {
	from, to, _, _ := d.columns(a)
	return to < from
}

// lastInColumn reports whether the arrow's source is the last state of its column.
func (d *drawing) lastInColumn(a *arrow) bool {
	from, _, row, _ := d.columns(a)
	n := commonAncestor(a.from, a.to)
	return row == len(d.boxes[n.order].columns[from])-1
}

func (d *drawing) adjacent(a *arrow) bool {
	from, to, fromRow, toRow := d.columns(a)
	return from == to && toRow == fromRow+1
}

// curve returns a curve that bends away from the sides that it joins.
func curve(p, q point, s [2]side) []point {
	dist := math.Hypot(q.x-p.x, q.y-p.y)
	reach := min(max(dist*0.42, 26), 130)
	if s[0] == s[1] && (s[0] == top || s[0] == bottom) {
		reach = archReach(math.Abs(q.x - p.x))
	}
	if s[0] == s[1] && (s[0] == left || s[0] == right) {
		reach = min(24+math.Abs(q.y-p.y)*0.25, 70)
	}
	if s[0] == top && s[1] == top && dist < 40 { // to itself
		return []point{p, {p.x - 8, p.y - 30}, {q.x + 8, q.y - 30}, q}
	}
	return []point{p, p.away(s[0], reach), q.away(s[1], reach), q}
}

// archReach returns the height of an arch that spans a width.
func archReach(span float64) float64 { return min(28+span*0.16, 110) }

func (p point) away(s side, by float64) point {
	switch s {
	case right:
		return point{p.x + by, p.y}
	case left:
		return point{p.x - by, p.y}
	case top:
		return point{p.x, p.y - by}
	default:
		return point{p.x, p.y + by}
	}
}

// on returns the point of the arrow's curve at t, from 0 to 1.
func (a *arrow) on(t float64) point {
	u := 1 - t
	w := [4]float64{u * u * u, 3 * u * u * t, 3 * u * t * t, t * t * t}
	var p point
	for i, c := range a.path {
		p.x += w[i] * c.x
		p.y += w[i] * c.y
	}
	return p
}

// maxLooks is the maximum number of comparisons of label positions with other shapes, because
// the time for labels grows with the square of their number. Labels beyond the limit are placed
// in the middle of their arrows. A machine with 2,000 arrows stays below the limit.
const maxLooks = 20_000_000

// putLabel places a label on its arrow where it overlaps least.
func (d *drawing) putLabel(a *arrow) {
	if len(a.labels) == 0 {
		return
	}
	w, h := a.labelWide()+10, float64(len(a.labels))*lineHigh+2
	best, least := rect{}, math.Inf(1)
	for i, t := range []float64{0.5, 0.42, 0.58, 0.34, 0.66, 0.26, 0.74, 0.2, 0.8} {
		p := a.on(t)
		r := rect{max(p.x-w/2, 2), max(p.y-h/2, 2), w, h}
		if cost := d.cost(r) + float64(i)*2; cost < least {
			best, least = r, cost
		}
		if d.looks >= maxLooks {
			break
		}
	}
	a.label = best
	d.labels = append(d.labels, best)
}

// cost returns the area that a label would hide: other labels, which weigh more, and small
// boxes.
func (d *drawing) cost(r rect) float64 {
	if d.looks >= maxLooks {
		return 0
	}
	d.looks += len(d.labels) + len(d.m.nodes)
	sum := 0.0
	for _, l := range d.labels {
		sum += 4 * r.overlap(l)
	}
	for _, n := range d.m.nodes {
		b := d.boxes[n.order].rect
		if len(n.states) > 0 {
			b.h = titleHigh
		}
		sum += r.overlap(b)
	}
	return sum
}

func (r rect) overlap(o rect) float64 {
	w := min(r.x+r.w, o.x+o.w) - max(r.x, o.x)
	h := min(r.y+r.h, o.y+o.h) - max(r.y, o.y)
	if w <= 0 || h <= 0 {
		return 0
	}
	return w * h
}
