package alarm

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/cron"
	"github.com/perdure/perdure/internal/store"
)

// model fires the ticks of a recurring alarm by walking over them one by one.
type model struct {
	ticks    []time.Time // all there are
	at       int         // the one that is waited for
	policy   perdure.Missed
	limit    int
	caughtUp int
}

// wake returns the ticks that are fired when somebody looks at that time, and how
// many are missed with each.
func (m *model) wake(now time.Time) (fired []string) {
	for !m.ticks[m.at].After(now) {
		first := m.at
		last := first
		for !m.ticks[last+1].After(now) {
			last++
		}
		switch {
		case m.policy == perdure.MissedAll && last > first && m.caughtUp+1 < m.limit:
			m.caughtUp++
			m.at++
			fired = append(fired, show(m.ticks[first], 0))
			continue
		case m.policy == perdure.MissedOnce:
			fired = append(fired, show(m.ticks[last], last-first))
		default:
			fired = append(fired, show(m.ticks[first], last-first))
		}
		m.caughtUp, m.at = 0, last+1
	}
	return fired
}

func show(tick time.Time, missed int) string {
	return fmt.Sprintf("%s +%d", tick.Format(time.RFC3339Nano), missed)
}

// wake does the same with plans.
func wake(t *testing.T, a *store.Alarm, now time.Time) (fired []string) {
	t.Helper()
	for !a.Occurs.After(now) {
		p, err := planOf(*a, now)
		if err != nil {
			t.Fatal(err)
		}
		fired = append(fired, show(p.scheduled, p.missed))
		a.Occurs, a.CaughtUp = p.next, p.caughtUp
	}
	return fired
}

func TestPlansAreThoseOfAWalkOverAllTicks(t *testing.T) {
	t.Parallel()
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 1))
		a, m := randomAlarm(t, r)
		now := m.ticks[0].Add(-time.Minute)
		for now.Before(m.ticks[len(m.ticks)/2]) {
			now = now.Add(time.Duration(r.Int64N(int64(m.ticks[1+r.IntN(20)].Sub(m.ticks[0])) + 1)).Truncate(time.Microsecond))
			if r.IntN(4) == 0 {
				now = m.ticks[m.at] // exactly on time
			}
			got, want := fmt.Sprint(wake(t, &a, now)), fmt.Sprint(m.wake(now))
			if got != want {
				t.Fatalf("seed %d, %s at %v: fired %s, want %s", seed, m.policy, now, got, want)
			}
		}
	}
}

// randomAlarm returns a recurring alarm and the model of it.
func randomAlarm(t *testing.T, r *rand.Rand) (store.Alarm, *model) {
	t.Helper()
	base := time.Date(2026, 3, 27, 0, 0, r.IntN(60), r.IntN(1000)*1000, time.UTC)
	m := &model{policy: []perdure.Missed{perdure.MissedSkip, perdure.MissedOnce, perdure.MissedAll}[r.IntN(3)], limit: 1 + r.IntN(5)}
	policy := string(m.policy)
	a := store.Alarm{Missed: &policy, MissedCap: &m.limit}
	if r.IntN(2) == 0 {
		every := 1 + r.Int64N(100_000_000)
		a.EveryMicros, a.Base = &every, &base
	} else {
		spec := []string{"*/7 * * * *", "30 2 * * *", "0 0 1,15 * *", "15 10 * * 1-5"}[r.IntN(4)]
		zone := []string{"UTC", "Europe/Berlin", "America/New_York"}[r.IntN(3)]
		a.Cron, a.Zone = &spec, &zone
	}
	ticks, err := ticksOf(a)
	if err != nil {
		t.Fatal(err)
	}
	m.ticks = walk(ticks, base, 300)
	a.Occurs = m.ticks[0]
	return a, m
}

func walk(ticks cron.Schedule, from time.Time, n int) (all []time.Time) {
	for at := from.Add(-time.Microsecond); len(all) < n; {
		at = ticks.Next(at)
		all = append(all, at)
	}
	return all
}

func TestAPlanOfATickBeforeItsTimeIsOverWithIt(t *testing.T) {
	t.Parallel()
	every, policy, base := int64(time.Hour/time.Microsecond), string(perdure.MissedOnce), time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	a := store.Alarm{EveryMicros: &every, Base: &base, Missed: &policy, Occurs: base.Add(time.Hour)}
	p, err := planOf(a, base.Add(time.Minute))
	if err != nil || p != (plan{scheduled: base.Add(time.Hour), next: base.Add(2 * time.Hour)}) {
		t.Fatalf("the plan is %+v, %v", p, err)
	}
}

func TestTicksThatCannotBeReadAreAnError(t *testing.T) {
	t.Parallel()
	zone, spec := "Mars/Olympus", "@daily"
	if _, err := planOf(store.Alarm{Cron: &spec, Zone: &zone}, time.Now()); err == nil {
		t.Fatal("the plan was made")
	}
}

func FuzzCursor(f *testing.F) {
	f.Add(encodeCursor(Of("order", "1", "x"), time.Unix(0, 0)))
	f.Add("")
	f.Add("e30")
	f.Fuzz(func(t *testing.T, text string) {
		after, err := decodeCursor(text)
		if err != nil || after == nil {
			return
		}
		again, err := decodeCursor(encodeCursor(keyOf(after.AlarmKey), after.Due))
		if err != nil || again.AlarmKey != after.AlarmKey || !again.Due.Equal(after.Due) {
			t.Fatalf("%q leads to %v, which leads to %v, %v", text, after, again, err)
		}
	})
}
