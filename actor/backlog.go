package actor

import (
	"sync"
	"time"

	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/store"
)

const (
	// fullScanEvery is the interval at which a pass looks for due timers of all types, also
	// during a backlog.
	fullScanEvery = time.Second
	// reapEvery is the interval at which a backlog is interrupted to handle the records of
	// crashed processes.
	reapEvery = 100 * time.Millisecond
)

// backlog is where the next pass looks for timers first. The timers before it are locked by
// passes of this process, or have fired: PostgreSQL reads a deleted row repeatedly while any
// transaction can still see it. The next full scan finds a timer that a pass has left, or that
// was scheduled for an earlier time.
type backlog struct {
	types []string
	due   time.Time
}

// floor returns the due time from which a pass looks, nil for all timers.
func (b *backlog) floor() *time.Time {
	if b == nil {
		return nil
	}
	return &b.due
}

// backlogs remembers the backlog between passes.
type backlogs struct {
	mu             sync.Mutex
	last           *backlog
	scanned, reaps time.Time // of the last full scan, and the last handling of records
}

// get returns the backlog, nil if the next pass must be a full scan.
func (b *backlogs) get() *backlog {
	b.mu.Lock()
	defer b.mu.Unlock()
	if clock.System.Now().Sub(b.scanned) >= fullScanEvery {
		return nil
	}
	return b.last
}

// set records what a pass has found. It returns the types that reached the limit of timers,
// each with its last actor.
func (b *backlogs) set(found []store.HeldTimer, limit int, scan bool) map[string]store.ActorRef {
	count, last := map[string]int{}, map[string]store.HeldTimer{}
	for _, t := range found {
		count[t.Type]++
		last[t.Type] = t
	}
	full := map[string]store.ActorRef{}
	var next *backlog
	for name, t := range last {
		if count[name] < limit {
			continue
		}
		full[name] = t.ActorRef
		if next == nil {
			next = &backlog{due: t.Claimable}
		}
		next.types = append(next.types, name)
		if t.Claimable.Before(next.due) {
			next.due = t.Claimable
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.last = next; scan {
		b.scanned = clock.System.Now()
	}
	return full
}

// reapDue reports whether the records of crashed processes must be handled now.
func (b *backlogs) reapDue() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := clock.System.Now()
	if now.Sub(b.reaps) < reapEvery {
		return false
	}
	b.reaps = now
	return true
}
