package cron

import (
	"testing"
	"time"
)

func TestSevenDaysOfDowntime(t *testing.T) {
	t.Parallel()
	last := at(t, "2025-03-28 12:00")
	now := last.AddDate(0, 0, 7).Add(30 * time.Second)
	const minutes = 7 * 24 * 60
	for _, s := range []Schedule{parse(t, "* * * * *", "Europe/Berlin"), parse(t, "@every 1m", "")} {
		due, skipped := Missed(s, last, now, Skip, 100)
		if len(due) != 0 || skipped != minutes {
			t.Errorf("%s: skip: %d due, %d skipped", s, len(due), skipped)
		}
		due, skipped = Missed(s, last, now, Once, 100)
		if len(due) != 1 || !due[0].Equal(now.Truncate(time.Minute)) || skipped != minutes-1 {
			t.Errorf("%s: once: %v due, %d skipped", s, due, skipped)
		}
		due, skipped = Missed(s, last, now, All, 100)
		if len(due) != 100 || !due[0].Equal(last.Add(time.Minute)) || !due[99].Equal(last.Add(100*time.Minute)) || skipped != minutes-100 {
			t.Errorf("%s: all: %d due, %d skipped", s, len(due), skipped)
		}
	}
}

// It is not parallel, because it counts allocations.
func TestDowntimeOfYearsIsCountedNotVisited(t *testing.T) {
	last, now := at(t, "2025-01-01 00:00"), at(t, "2035-01-01 00:00")
	seconds := int(now.Unix() - last.Unix())
	for _, s := range []Schedule{parse(t, "@every 1s", ""), parse(t, "* * * * * *", "Australia/Lord_Howe"), parse(t, "*/1 0-59 0-23 * * *", "UTC")} {
		var due []time.Time
		var skipped int
		allocations := testing.AllocsPerRun(1, func() { due, skipped = Missed(s, last, now, All, 3) })
		if len(due) != 3 || skipped != seconds-3 || allocations > 10 {
			t.Errorf("%s: %v due, %d skipped, want %d; %v allocations", s, due, skipped, seconds-3, allocations)
		}
		due, skipped = Missed(s, last, now, Once, 0)
		if len(due) != 1 || !due[0].Equal(now) || skipped != seconds-1 {
			t.Errorf("%s: %v due, %d skipped", s, due, skipped)
		}
	}
}

func TestALongCountEnds(t *testing.T) {
	t.Parallel()
	for _, zone := range []string{"UTC", "Europe/Berlin"} {
		_, n := Missed(parse(t, "0 12 * * *", zone), time.Time{}, time.Unix(1<<60, 0), Skip, 0)
		if want := 9999*365 + 2424; n != want {
			t.Errorf("%s: %d, want %d", zone, n, want)
		}
	}
}

func TestNothingIsMissed(t *testing.T) {
	t.Parallel()
	noon := at(t, "2024-01-01 12:00")
	s := parse(t, "0 12 * * *", "")
	for name, c := range map[string]struct {
		s         Schedule
		last, now time.Time
	}{
		"TheLastTickItself":      {s, noon, noon.Add(time.Hour)},
		"NotYet":                 {s, noon, noon.Add(24*time.Hour - time.Nanosecond)},
		"AClockThatWasPutBack":   {s, noon, noon.Add(-time.Hour)},
		"AScheduleWithoutTicks":  {Schedule{}, noon, noon.AddDate(1, 0, 0)},
		"BeforeTheAnchor":        {parse(t, "@every 1s", ""), time.Unix(-100, 0), time.Unix(-1, 0)},
		"AfterTheEndOfAllThings": {s, time.Unix(1<<60, 0), time.Unix(1<<61, 0)},
	} {
		for _, p := range []Policy{Skip, Once, All} {
			if due, skipped := Missed(c.s, c.last, c.now, p, 10); len(due) != 0 || skipped != 0 {
				t.Errorf("%s, %s: %v due, %d skipped", name, p, due, skipped)
			}
		}
	}
	if due, skipped := Missed(s, noon, noon.AddDate(0, 0, 1), All, -1); len(due) != 0 || skipped != 1 {
		t.Errorf("a negative limit: %v due, %d skipped", due, skipped)
	}
}

func TestNothingIsMissedWhileTimesAreShownAgain(t *testing.T) {
	t.Parallel()
	s := parse(t, "*/5 1 * * *", "America/New_York")
	last := at(t, "2025-11-02T01:55:00-04:00")
	if _, n := Missed(s, last, at(t, "2025-11-02T01:30:00-05:00"), Skip, 0); n != 0 {
		t.Errorf("%d ticks are counted", n)
	}
	wants(t, s, at(t, "2025-11-02T01:30:00-05:00"), "2025-11-03T01:00:00-05:00")
}

func TestPolicies(t *testing.T) {
	t.Parallel()
	for _, p := range []Policy{Skip, Once, All} {
		if err := p.Validate(); err != nil {
			t.Error(err)
		}
	}
	refused(t, "none", Policy("").Validate(), "missed policy")
}
