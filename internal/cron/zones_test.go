package cron

import (
	_ "embed"
	"fmt"
	"strings"
	"testing"
	"time"
)

//go:embed testdata/zones.txt
var zoneNames string

// zones calls check for every IANA zone.
func zones(t *testing.T, check func(t *testing.T, zone *time.Location)) {
	t.Helper()
	for name := range strings.FieldsSeq(zoneNames) {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Error(err) // a zone was removed: so are its schedules
			continue
		}
		check(t, zone)
	}
}

// changes returns when the clocks of a zone are changed, found without ZoneBounds.
func changes(zone *time.Location, from, to time.Time) []time.Time {
	const step = 24 * time.Hour
	offset := func(t time.Time) int {
		_, seconds := t.In(zone).Zone()
		return seconds
	}
	var all []time.Time
	for at := from; at.Before(to); at = at.Add(step) {
		low, high := at, at.Add(step)
		if offset(low) == offset(high) {
			continue
		}
		for high.Sub(low) > time.Second {
			if middle := low.Add(high.Sub(low) / 2).Truncate(time.Second); offset(middle) == offset(at) {
				low = middle
			} else {
				high = middle
			}
		}
		all = append(all, high)
	}
	return all
}

// Whatever clocks do, a daily job has a tick for each date: at its time where
// there is one, and else at once after the gap. Of zones whose clocks are changed
// alike one is checked; that all are read alike, the count below shows.
func TestADailyJobIsDueOncePerDate(t *testing.T) {
	t.Parallel()
	from, to := at(t, "2024-01-01 00:00"), at(t, "2031-01-01 00:00")
	alike := map[string]bool{}
	checked := 0
	zones(t, func(t *testing.T, zone *time.Location) {
		t.Helper()
		for _, change := range changes(zone, from, to) {
			kind := change.Add(-time.Second).In(zone).Format(time.RFC3339) + change.In(zone).Format(time.RFC3339)
			if alike[kind] {
				continue
			}
			alike[kind] = true
			for _, clock := range []string{"00:00", "00:30", "01:00", "01:30", "02:00", "02:15", "02:30", "03:00", "12:00", "23:00", "23:59"} {
				daily(t, zone, clock, change)
				checked++
			}
		}
	})
	t.Logf("%d jobs were checked at %d changes", checked, len(alike))
	if len(alike) < 300 {
		t.Error("there are more changes than that")
	}
}

// daily checks the dates around a change.
func daily(t *testing.T, zone *time.Location, clock string, change time.Time) {
	t.Helper()
	s := parse(t, fmt.Sprintf("%s %s * * *", clock[3:], clock[:2]), zone.String())
	date := change.In(zone).AddDate(0, 0, -2)
	tick := s.Next(change.Add(-96 * time.Hour))
	for tick.In(zone).Format(time.DateOnly) < date.Format(time.DateOnly) {
		tick = s.Next(tick)
	}
	for range 4 {
		if got := tick.In(zone); got.Format("2006-01-02 15:04") != date.Format(time.DateOnly)+" "+clock && !afterGap(got, change, date, clock) {
			t.Fatalf("%s %s: the tick of %s is %v", zone, clock, date.Format(time.DateOnly), got)
		}
		date, tick = date.AddDate(0, 0, 1), s.Next(tick)
	}
}

// afterGap says that a tick is the end of a gap that has the clock's time of a
// date.
func afterGap(tick, change, date time.Time, clock string) bool {
	want := date.Format(time.DateOnly) + " " + clock
	before := change.Add(-time.Second).In(tick.Location())
	return tick.Equal(change) && before.Format("2006-01-02 15:04") < want && want < tick.Format("2006-01-02 15:04")
}

func TestTheDatesOfSevenYearsAreCounted(t *testing.T) {
	t.Parallel()
	const dates = 7*365 + 2
	zones(t, func(t *testing.T, zone *time.Location) {
		t.Helper()
		from := time.Date(2023, 12, 31, 12, 0, 0, 0, zone)
		for _, spec := range []string{"0 0 * * *", "30 2 * * *", "45 1 * * *"} {
			_, n := Missed(parse(t, spec, zone.String()), from, from.AddDate(7, 0, 0), Skip, 0)
			if n != dates {
				t.Errorf("%s in %s: %d ticks in %d dates", spec, zone, n, dates)
			}
		}
	})
}

func TestDatesThatZonesSkipped(t *testing.T) {
	t.Parallel()
	for zone, skipped := range map[string]string{
		"Pacific/Apia":       "2011-12-30",
		"Pacific/Fakaofo":    "2011-12-30",
		"Pacific/Kwajalein":  "1993-08-21",
		"Pacific/Kiritimati": "1994-12-31",
		"Asia/Manila":        "1844-12-31",
	} {
		day := at(t, skipped+" 00:00")
		for _, clock := range []string{"0 0", "30 12", "59 23"} {
			s := parse(t, clock+" * * *", zone)
			due, _ := Missed(s, day.AddDate(0, 0, -3), day.AddDate(0, 0, 4), All, 100)
			for _, tick := range due {
				if tick.In(s.ticks.(*calendar).zone).Format(time.DateOnly) == skipped {
					t.Errorf("%s: %v is on a date that never was", zone, tick)
				}
			}
			if len(due) != 7 { // days of 24 hours, of eight dates
				t.Errorf("%s: %v", zone, due)
			}
		}
	}
}
