package outbox

import (
	"context"
	"time"

	"github.com/perdure/perdure/internal/sqldb"
)

// Checker watches snapshots of the outbox for violations of its order. Feed it
// with what a reader sees: the stamps after its cursor, snapshot by snapshot.
type Checker struct {
	report  *Report
	seen    map[Stamp]bool // delivered, within the window
	highest Stamp
}

// NewChecker returns a checker that reports to report.
func NewChecker(report *Report) *Checker {
	return &Checker{report: report, seen: map[Stamp]bool{}}
}

// Observe takes one snapshot: all stamps after base, in order. Nothing may be
// missing between them, and none may be below a stamp of an earlier snapshot
// without having been in that snapshot.
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

// watchWindow is how many of the newest entries each snapshot looks at again.
const watchWindow = MaxLimit

// watch observes snapshots for a while, and at least two: one alone shows nothing
// that arrives late. It keeps looking behind the newest stamp, where a late entry
// would appear.
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
		if len(stamps) == watchWindow { // move on, keeping half of the window
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
