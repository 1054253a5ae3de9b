package cron

import (
	"encoding/json"
	"time"
	_ "time/tzdata" // so that zones exist on machines without zone data

	"github.com/perdure/perdure/fault"
)

// Schedule says when recurring work is due. It is immutable and may be copied
// and used by many goroutines. The zero Schedule has no ticks.
type Schedule struct {
	spec  Spec
	ticks ticker
}

// ticker is what an expression and an interval have in common. Times are within
// the bounds that clamp keeps.
type ticker interface {
	// next returns the first tick after a time, or the zero time.
	next(after time.Time) time.Time
	// count returns how many ticks are in (last, now], without visiting them.
	count(last, now time.Time) int
	// latest returns the newest tick in (last, now], of which there is one.
	latest(last, now time.Time) time.Time
	// describe returns the schedule in English, without the zone.
	describe() string
}

// Ticks are within the years that text and databases can hold. Both are Unix
// seconds.
const (
	minSecond = -62135596800 // 0001-01-01T00:00:00Z
	maxSecond = 253402300799 // 9999-12-31T23:59:59Z
)

// Parse reads an expression; ticks are by the clocks of an IANA zone, by default
// UTC. Whatever cannot be meant is refused with a *fault.Invalid that names the
// field, and so is an expression that no date ever matches: a schedule that was
// accepted does not fail later.
//
// Intervals ("@every 90s") know no zone; they are on phase with the Unix epoch.
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

// load finds a zone. The machine's own is not accepted: the same schedule has to
// mean the same in every process.
func load(zone string) (*time.Location, error) {
	if zone == "" {
		return time.UTC, nil
	}
	if zone == "Local" || len(zone) > maxZone {
		return nil, fault.Invalidf("zone", "has to be an IANA name such as Europe/Berlin")
	}
	location, err := time.LoadLocation(zone)
	if err != nil {
		return nil, fault.Invalidf("zone", "%q is unknown; it has to be an IANA name such as Europe/Berlin", zone)
	}
	return location, nil
}

// Next returns the first tick strictly after a time, in UTC. It is the zero time
// only if there is none before the year 10000.
func (s Schedule) Next(after time.Time) time.Time {
	if s.ticks == nil {
		return time.Time{}
	}
	return s.ticks.next(clamp(after))
}

// clamp moves a time into the bounds of ticks, from where sums cannot overflow.
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

// IsZero says that the schedule has no ticks, because it is nobody's.
func (s Schedule) IsZero() bool { return s.ticks == nil }

// Spec returns the schedule as data. Schedules are the same if their specs are.
func (s Schedule) Spec() Spec { return s.spec }

// Zone returns the name of the zone, or "" for an interval, which has none.
func (s Schedule) Zone() string { return s.spec.Zone }

// String returns the expression, as Parse takes it, without the zone and without
// an anchor; Spec has all.
func (s Schedule) String() string {
	if s.spec.Every != "" {
		return everyPrefix + s.spec.Every
	}
	return s.spec.Cron
}

// Describe returns the schedule in English, for people:
// "at 02:30 every day, Europe/Berlin".
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

// MarshalJSON writes the schedule's Spec.
func (s Schedule) MarshalJSON() ([]byte, error) { return json.Marshal(s.spec) }

// UnmarshalJSON reads a Spec and compiles it.
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
