package alarm

import (
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/cron"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/store"
)

// DefaultMaxMissed is the default maximum number of late ticks that perdure.MissedAll
// fires in a row.
const DefaultMaxMissed = 100

// ticksOf returns the ticks of a stored alarm. The schedule is zero if the alarm does not
// recur.
func ticksOf(a store.Alarm) (cron.Schedule, error) {
	switch {
	case a.EveryMicros != nil && a.Base != nil:
		return cron.Interval(time.Duration(*a.EveryMicros)*time.Microsecond, a.Base.UTC())
	case a.Cron != nil:
		return cron.Parse(*a.Cron, edge.Value(a.Zone))
	}
	return cron.Schedule{}, nil
}

// plan describes one firing of an alarm and the tick after it.
type plan struct {
	// scheduled is the tick that is fired. missed is the number of other ticks that will
	// not be fired because of it.
	scheduled time.Time
	missed    int
	// next is the tick after it. It is zero if there is none.
	next time.Time
	// caughtUp is the number of late ticks that have been fired in a row after this
	// firing.
	caughtUp int
}

// planOf returns the plan for firing an alarm at the time now. Its running time does not
// depend on the number of missed ticks.
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
	// A tick that was moved and fires before its time does not fire again at its time.
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
