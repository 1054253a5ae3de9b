package cron

import (
	"encoding/json"
	"time"
	_ "time/tzdata" // zone data for hosts without it

	"github.com/perdure/perdure/fault"
)

// Schedule computes when recurring work is due. It is immutable and may be copied and
// used by many goroutines. The zero Schedule has no ticks.
type Schedule struct {
	spec  Spec
	ticks ticker
}

// ticker is implemented by expressions and intervals. Times are within the bounds of
// clamp.
type ticker interface {
	// next returns the first tick after a time, or the zero time.
	next(after time.Time) time.Time
	// count returns the number of ticks in (last, now], without visiting them.
	count(last, now time.Time) int
	// latest returns the newest tick in (last, now], which must have one.
	latest(last, now time.Time) time.Time
	// describe returns the schedule in English, without the zone.
	describe() string
}

// The range of ticks: the years that text and databases can hold. Both are Unix
// seconds.
const (
	minSecond = -62135596800 // 0001-01-01T00:00:00Z
	maxSecond = 253402300799 // 9999-12-31T23:59:59Z
)

// Parse parses an expression. Ticks follow the clocks of an IANA zone, by default UTC.
// An invalid expression is rejected with a *fault.Invalid that names the field. So is
// an expression that no date ever matches: an accepted schedule does not fail later.
//
// Intervals ("@every 90s") have no zone; they start at the Unix epoch.
func Parse(spec, zone string) (Schedule, error) {
	text, err := normal(spec)
	if err != nil {
		return Schedule{}, err
	}
	location, err := load(zone)
	if err != nil {
		return Schedule{}, err
	}
	if every, ok := cutEvery(text); ok {
		return parseInterval(every, time.Unix(0, 0))
	}
	c, err := parseCalendar(text, location)
	if err != nil {
		return Schedule{}, err
	}
	return Schedule{spec: Spec{Cron: text, Zone: location.String()}, ticks: c}, nil
}

// load finds a zone. The local zone is not accepted: a schedule must mean the same in
// every process.
func load(zone string) (*time.Location, error) {
	if zone == "" {
		return time.UTC, nil
	}
	if zone == "Local" || len(zone) > maxZone {
		return nil, fault.Invalidf("zone", "must be an IANA name such as Europe/Berlin")
	}
	location, err := time.LoadLocation(zone)
	if err != nil {
		return nil, fault.Invalidf("zone", "must be an IANA name such as Europe/Berlin, got %q", zone)
	}
	return location, nil
}

// Next returns the first tick strictly after a time, in UTC. It returns the zero time
// only if there is none before the year 10000.
func (s Schedule) Next(after time.Time) time.Time {
	if s.ticks == nil {
		return time.Time{}
	}
	return s.ticks.next(clamp(after))
}

// clamp moves a time into the range of ticks, where sums cannot overflow.
func clamp(t time.Time) time.Time {
	switch sec := t.Unix(); {
	case sec < minSecond:
		return time.Unix(minSecond, 0)
	case sec > maxSecond:
		return time.Unix(maxSecond, 999_999_999)
	default:
		return t
	}
}

// IsZero reports whether s is the zero Schedule, which has no ticks.
func (s Schedule) IsZero() bool { return s.ticks == nil }

// Spec returns the stored form of the schedule. Schedules are equal if their specs are.
func (s Schedule) Spec() Spec { return s.spec }

// Zone returns the name of the zone, or "" for an interval, which has none.
func (s Schedule) Zone() string { return s.spec.Zone }

// String returns the expression in the form that Parse accepts, without the zone and
// without an anchor. Spec has both.
func (s Schedule) String() string {
	if s.spec.Every != "" {
		return everyPrefix + s.spec.Every
	}
	return s.spec.Cron
}

// Describe returns a description in English: "at 02:30 every day, Europe/Berlin".
func (s Schedule) Describe() string {
	switch {
	case s.ticks == nil:
		return "never"
	case s.spec.Zone == "":
		return s.ticks.describe()
	default:
		return s.ticks.describe() + ", " + s.spec.Zone
	}
}

// MarshalJSON encodes the schedule's Spec.
func (s Schedule) MarshalJSON() ([]byte, error) { return json.Marshal(s.spec) }

// UnmarshalJSON decodes a Spec and compiles it.
func (s *Schedule) UnmarshalJSON(data []byte) error {
	var spec Spec
	if err := json.Unmarshal(data, &spec); err != nil {
		return err
	}
	read, err := spec.Schedule()
	if err != nil {
		return err
	}
	*s = read
	return nil
}
