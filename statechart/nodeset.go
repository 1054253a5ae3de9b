package statechart

import "math/bits"

// A nodeset is a set of states of one machine, by their order. For machines of up to 64 states
// it needs no allocation.
type nodeset struct {
	low  uint64
	high []uint64
}

func newNodeset(states int) nodeset {
	if states <= 64 {
		return nodeset{}
	}
	return nodeset{high: make([]uint64, (states-1)/64)}
}

func (s *nodeset) has(n *node) bool {
	if n.order < 64 {
		return s.low&(1<<n.order) != 0
	}
	return s.high[n.order/64-1]&(1<<(n.order%64)) != 0
}

func (s *nodeset) add(n *node) {
	if n.order < 64 {
		s.low |= 1 << n.order
		return
	}
	s.high[n.order/64-1] |= 1 << (n.order % 64)
}

func (s *nodeset) remove(n *node) {
	if n.order < 64 {
		s.low &^= 1 << n.order
		return
	}
	s.high[n.order/64-1] &^= 1 << (n.order % 64)
}

// copyFrom makes the set equal to another of the same machine.
func (s *nodeset) copyFrom(o *nodeset) {
	s.low = o.low
	s.high = append(s.high[:0], o.high...)
}

func (s *nodeset) clear() {
	s.low = 0
	clear(s.high)
}

func (s *nodeset) intersects(o *nodeset) bool {
	if s.low&o.low != 0 {
		return true
	}
	for i, w := range s.high {
		if w&o.high[i] != 0 {
			return true
		}
	}
	return false
}

// anyBelow reports whether a proper descendant of n is in the set.
func (s *nodeset) anyBelow(n *node) bool {
	i := s.next(n.order + 1)
	return i >= 0 && i <= n.last
}

// next returns the first order from i on that is in the set, or -1.
func (s *nodeset) next(i int) int {
	if i < 64 {
		if w := s.low >> i; w != 0 {
			return i + bits.TrailingZeros64(w)
		}
		i = 64
	}
	for k := i/64 - 1; k < len(s.high); k++ {
		w := s.high[k]
		if k == i/64-1 {
			w = w >> (i % 64) << (i % 64)
		}
		if w != 0 {
			return (k+1)*64 + bits.TrailingZeros64(w)
		}
	}
	return -1
}
