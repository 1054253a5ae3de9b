package interleave

import "slices"

// enumerator walks a tree of choices depth first. Each path starts at the root again,
// because the number of choices is only known once a path gets there. It does not need to
// know the lengths of the sessions, and never enumerates choices that locks prevent.
type enumerator struct {
	path  []fork
	depth int
}

// fork is a place where the path could have continued in several ways.
type fork struct {
	choices []int // the sessions whose step may be next
	taken   int   // the index of this path's choice
	did     footprint
	// tried are the choices of the previous paths, with what their steps did.
	tried map[int]footprint
	// asleep are the sessions whose step need not be next. Previous paths took that step
	// earlier, and no dependent step has run since.
	asleep map[int]footprint
}

// begin starts the next path at the root.
func (e *enumerator) begin() { e.depth = 0 }

// choose returns which of the ready sessions takes the next step. did is the footprint
// of the previous step.
//
// A database may behave differently at the same place of the same path: for example, it
// chooses the victim of a deadlock. The recorded fork is then kept, so that the walk always
// advances and ends, and the path takes the nearest available choice.
func (e *enumerator) choose(ready []int, did footprint) int {
	asleep := e.fallAsleep(did)
	if e.depth == len(e.path) {
		awake := slices.DeleteFunc(slices.Clone(ready), func(i int) bool { _, found := asleep[i]; return found })
		if len(awake) == 0 { // a previous path is equal: continue in one way only
			awake = ready[:1]
		}
		e.path = append(e.path, fork{choices: awake, did: anything, tried: map[int]footprint{}, asleep: asleep})
	}
	f := e.path[e.depth]
	e.depth++
	if next := f.choices[f.taken]; slices.Contains(ready, next) {
		return next
	}
	return ready[min(f.taken, len(ready)-1)]
}

// fallAsleep records what the last step did, and returns the sessions that are asleep after
// it.
func (e *enumerator) fallAsleep(did footprint) map[int]footprint {
	asleep := map[int]footprint{}
	if e.depth == 0 {
		return asleep
	}
	last := &e.path[e.depth-1]
	last.did = did
	for _, before := range []map[int]footprint{last.asleep, last.tried} {
		for i, step := range before {
			if i != last.choices[last.taken] && independent(step, did) {
				asleep[i] = step
			}
		}
	}
	return asleep
}

// advance moves to the next path. It returns false after the last one.
func (e *enumerator) advance() bool {
	e.path = e.path[:e.depth]
	for len(e.path) > 0 {
		last := &e.path[len(e.path)-1]
		if last.taken+1 < len(last.choices) {
			last.tried[last.choices[last.taken]] = last.did
			last.taken++
			return true
		}
		e.path = e.path[:len(e.path)-1]
	}
	return false
}

// Merges returns all merges of sequences with the given lengths. Each element of a merge is
// the index of the sequence that the next element comes from. Explore runs exactly these
// when no session waits for another, and no steps are known to be independent.
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
		next := e.choose(ready, anything)
		left[next]--
		order = append(order, next)
	}
}
