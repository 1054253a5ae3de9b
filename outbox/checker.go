package outbox

import (
	"context"
	"time"

	"github.com/perdure/perdure/internal/sqldb"
)

// Checker checks snapshots of the outbox for violations of its order. Pass it the stamps
// that a reader sees after its cursor, one snapshot after another.
type Checker struct {
	report  *Report
	seen    map[Stamp]bool // delivered, within the window
	highest Stamp
}

// NewChecker returns a Checker that adds problems to report.
func NewChecker(report *Report) *Checker {
	return &Checker{report: report, seen: map[Stamp]bool{}}
}

// Observe checks one snapshot: all stamps after base, in order. No counter may be missing
// between them. A stamp that is smaller than a stamp of an earlier snapshot must have
// been in that snapshot.
func (c *Checker) Observe(base Stamp, stamps []Stamp) {
	c.report.Snapshots++
	last, highest := base, c.highest
	for _, stamp := range stamps {
		if stamp.Incarnation() == last.Incarnation() && stamp.Counter() != last.Counter()+1 {
			c.report.problem("snapshot has %s after %s: the counters between are missing", stamp, last)
		}
		if !c.seen[stamp] && stamp.Compare(highest) < 0 {
			c.report.problem("entry %s arrived after %s was visible", stamp, highest)
		}
		c.seen[stamp] = true
		last = stamp
	}
	if last.Compare(c.highest) > 0 {
		c.highest = last
	}
}

// watchWindow is the maximum number of the newest entries that each snapshot reads again.
const watchWindow = MaxLimit

// watch checks snapshots for the given duration. It checks at least two, because a single
// snapshot cannot show a late entry. It keeps reading stamps before the newest one, where
// a late entry would appear.
func (o *Outbox) watch(ctx context.Context, duration time.Duration, report *Report) error {
	checker := NewChecker(report)
	base := report.Last
	end := o.clock.Now().Add(duration)
	for (report.Snapshots < 2 || o.clock.Now().Before(end)) && ctx.Err() == nil {
		stamps, err := o.stamps(ctx, base)
		if err != nil {
			return err
		}
		checker.Observe(base, stamps)
		if len(stamps) == watchWindow { // move the window by half of its size
			base = stamps[watchWindow/2]
		}
		o.wait(ctx, o.wakeup(), time.Millisecond)
	}
	return ctx.Err()
}

func (o *Outbox) stamps(ctx context.Context, after Stamp) ([]Stamp, error) {
	var stamps []Stamp
	list := o.store.Stamps(after[:], watchWindow, func(raw []byte) {
		var stamp Stamp
		copy(stamp[:], raw)
		stamps = append(stamps, stamp)
	})
	tx, err := o.begin(ctx, sqldb.Read)
	if err != nil {
		return nil, err
	}
	defer tx.Rollback()
	return stamps, sqldb.Bare(tx.Run(ctx, list))
}
