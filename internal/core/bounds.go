package core

import "sync/atomic"

// Bounds are the limits of an engine that its kinds of work set. They apply to all
// callers that record work in this process, even if the process runs none. The zero value
// has no limits.
type Bounds struct{ state atomic.Int64 }

// AllowState sets the largest state in bytes, or raises it if one is set.
func (l *Bounds) AllowState(n int) {
	for l != nil {
		old := l.state.Load()
		if old >= int64(n) || l.state.CompareAndSwap(old, int64(n)) {
			return
		}
	}
}

// State returns the largest state in bytes, or 0 if no limit is set.
func (l *Bounds) State() int {
	if l == nil {
		return 0
	}
	return int(l.state.Load())
}
