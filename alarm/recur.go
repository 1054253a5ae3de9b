package alarm

import (
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/cron"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/store"
)

// DefaultMaxMissed is how many late ticks perdure.MissedAll fires in a row.
const DefaultMaxMissed = 100

// ticksOf returns the ticks of a stored alarm; those of one that does not recur
// are none.
func ticksOf(a store.Alarm) (cron.Schedule, error) {
	switch {
	case a.EveryMicros != nil && a.Base != nil:
		return cron.Interval(time.Duration(*a.EveryMicros)*time.Microsecond, a.Base.UTC())
	case a.Cron != nil:
		return cron.Parse(*a.Cron, edge.Value(a.Zone))
	}
	return cron.Schedule{}, nil
}

// plan is what a fire of an alarm stands for, and what comes after it.
type plan struct {
	// scheduled is the tick that it is for, missed how many others will not be
	// fired because of it.
	scheduled time.Time
	missed    int
	// next is the tick after it; zero if there is none.
	next time.Time
	// caughtUp is how many late ticks will have been fired in a row then.
	caughtUp int
}

// planOf says what firing an alarm at that time means. It takes the same time
// however many ticks were missed.
func planOf(a store.Alarm, now time.Time) (plan, error) {
	ticks, err := ticksOf(a)
	tick := a.Occurs.UTC()
	if err != nil || ticks.IsZero() {
		return plan{scheduled: tick}, err
	}
	policy := perdure.Missed(edge.Value(a.Missed))
	due, skipped := cron.Missed(ticks, tick, now, cron.Policy(policy), 1)
	p := plan{scheduled: tick, missed: len(due) + skipped}
	switch {
	case policy == perdure.MissedAll && p.missed > 0 && a.CaughtUp+1 < limitOf(a):
		return plan{scheduled: tick, next: due[0], caughtUp: a.CaughtUp + 1}, nil
	case policy == perdure.MissedOnce && len(due) > 0:
		p.scheduled = due[0]
	}
	// A tick that fires before its time, because it was moved, is over with that.
	if now.Before(tick) {
		now = tick
	}
	p.next = ticks.Next(now)
	return p, nil
}

func limitOf(a store.Alarm) int {
	if a.MissedCap == nil {
		return DefaultMaxMissed
	}
	return *a.MissedCap
}
