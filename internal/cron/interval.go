package cron

import (
	"strings"
	"time"

	"github.com/perdure/perdure/fault"
)

// everyPrefix is the prefix of an interval.
const everyPrefix = "@every "

// maxInterval is a hundred years. A longer interval is a mistake in the unit.
const maxInterval = 100 * 8766 * time.Hour

// interval ticks at anchor + k·every for k ≥ 0. It is in microseconds, as stored. A
// tick that lost digits in a database would be due a second time.
type interval struct {
	every, anchor int64
}

// Interval returns a schedule that ticks at anchor and then after every interval. It
// does not drift, even if ticks are read late. The anchor is truncated to microseconds.
func Interval(every time.Duration, anchor time.Time) (Schedule, error) {
	if err := checkInterval(every); err != nil {
		return Schedule{}, err
	}
	if sec := anchor.Unix(); sec < minSecond || sec > maxSecond {
		return Schedule{}, fault.Invalidf("anchor", "must be between the years 1 and 9999")
	}
	i := interval{every: every.Microseconds(), anchor: anchor.UnixMicro()}
	spec := Spec{Every: strings.Replace(every.String(), "µ", "u", 1)}
	if i.anchor != 0 {
		spec.Anchor = time.UnixMicro(i.anchor).UTC()
	}
	return Schedule{spec: spec, ticks: i}, nil
}

func checkInterval(every time.Duration) error {
	switch {
	case every <= 0:
		return fault.Invalidf("every", "must be positive, got %v", every)
	case every > maxInterval:
		return fault.Invalidf("every", "must be at most 100 years")
	case every%time.Microsecond != 0:
		return fault.Invalidf("every", "must be a whole number of microseconds, got %v", every)
	default:
		return nil
	}
}

func parseInterval(text string, anchor time.Time) (Schedule, error) {
	if len(text) > maxText {
		return Schedule{}, fault.Invalidf("every", "must be at most %d bytes", maxText)
	}
	every, err := time.ParseDuration(text)
	if err != nil {
		return Schedule{}, fault.Invalidf("every", "must be a duration such as 90s or 1h30m, got %q", text)
	}
	return Interval(every, anchor)
}

// cutEvery returns the duration of a normalized text that is an interval.
func cutEvery(text string) (string, bool) {
	if text == strings.TrimSpace(everyPrefix) {
		return "", true
	}
	return strings.CutPrefix(text, everyPrefix)
}

func (i interval) next(after time.Time) time.Time { return i.tick(i.until(after)) }

// until returns the number of ticks up to and including a time. That is also the number
// k of the first tick after it.
func (i interval) until(t time.Time) int64 {
	if t.UnixMicro() < i.anchor {
		return 0
	}
	return (t.UnixMicro()-i.anchor)/i.every + 1
}

// tick returns the k-th tick. The product cannot overflow: the sum is at most one
// interval beyond the year 9999.
func (i interval) tick(k int64) time.Time {
	t := time.UnixMicro(i.anchor + k*i.every)
	if t.Unix() > maxSecond {
		return time.Time{}
	}
	return t.UTC()
}

func (i interval) count(last, now time.Time) int { return int(i.until(now) - i.until(last)) }

func (i interval) latest(_, now time.Time) time.Time { return i.tick(i.until(now) - 1) }
