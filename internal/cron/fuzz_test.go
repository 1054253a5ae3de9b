package cron

import (
	"errors"
	"testing"
	"time"

	"github.com/perdure/perdure/fault"
)

func FuzzParse(f *testing.F) {
	for _, spec := range []string{
		"30 2 * * *", "*/15 0-8/2,L 1,L * 5#2,mon,5L", "5/10 1-2 3 JAN-MAR SUN", "0 0 30 2 *", "@every 90s", "@Every 1.5us",
		"@daily", "0 0 29 2 4#5", "* * * * * *", "1-", "#", "*/", "\x00", "0 0 * * FRI-SUN",
	} {
		f.Add(spec, "Europe/Berlin", int64(1743300000))
		f.Add(spec, "", int64(-62135596800))
	}
	f.Fuzz(func(t *testing.T, spec, zone string, unix int64) {
		s, err := Parse(spec, zone)
		if err != nil {
			var invalid *fault.Invalid
			if !errors.As(err, &invalid) || !s.IsZero() {
				t.Fatalf("the error is %v, the schedule %v", err, s)
			}
			return
		}
		again, err := Parse(s.String(), s.Zone())
		if err != nil || again.Spec() != s.Spec() {
			t.Fatalf("%q is written as %q, which is %q (%v)", spec, s, again, err)
		}
		check(t, s, again, time.Unix(unix, 0))
	})
}

// check holds for all schedules and times.
func check(t *testing.T, s, again Schedule, after time.Time) {
	t.Helper()
	next := s.Next(after)
	if !next.Equal(again.Next(after)) || s.Describe() != again.Describe() {
		t.Fatalf("%s is not itself when it is read", s)
	}
	if next.IsZero() {
		return
	}
	if after.Unix() >= minSecond && !next.After(after) {
		t.Fatalf("%s: after %v comes %v", s, after, next)
	}
	due, skipped := Missed(s, after, next, Once, 1)
	if len(due) != 1 || !due[0].Equal(next) || skipped != 0 {
		t.Fatalf("%s: until %v, which is next, there are %v and %d more", s, next, due, skipped)
	}
}
