package interleave

// enumerator walks a tree of choices depth first, from the root again for each
// path: how many choices there are is only known once a path gets there. It
// needs no knowledge of how long the sessions are, and choices that locks take
// away are never enumerated.
type enumerator struct {
	path  []fork
	depth int
}

// fork is a place where the path could have gone on in several ways.
type fork struct {
	taken, choices int
}

// begin starts the next path at the root.
func (e *enumerator) begin() { e.depth = 0 }

// choose returns which of n choices this path takes, counted from 0.
//
// A database may behave differently at the same place of the same path: the
// victim of a deadlock is its choice. The recorded fork is then kept, so that
// the walk always advances and ends, and the path takes the nearest choice
// there is.
func (e *enumerator) choose(n int) int {
	if e.depth == len(e.path) {
		e.path = append(e.path, fork{choices: n})
	}
	f := e.path[e.depth]
	e.depth++
	return min(f.taken, n-1)
}

// advance moves on to the next path. It returns false if that was the last.
func (e *enumerator) advance() bool {
	e.path = e.path[:e.depth]
	for len(e.path) > 0 {
		last := &e.path[len(e.path)-1]
		if last.taken+1 < last.choices {
			last.taken++
			return true
		}
		e.path = e.path[:len(e.path)-1]
	}
	return false
}

// Merges returns all merges of sequences with the given lengths. A merge says
// for each place which sequence the next element comes from, by its index.
// Explore runs exactly these when no session waits for another.
func Merges(lengths ...int) [][]int {
	var (
		all [][]int
		e   enumerator
	)
	for more := true; more; more = e.advance() {
		e.begin()
		all = append(all, merge(&e, lengths))
	}
	return all
}

func merge(e *enumerator, lengths []int) []int {
	left := append([]int(nil), lengths...)
	var order []int
	for {
		var ready []int
		for i, n := range left {
			if n > 0 {
				ready = append(ready, i)
			}
		}
		if len(ready) == 0 {
			return order
		}
		next := ready[e.choose(len(ready))]
		left[next]--
		order = append(order, next)
	}
}
