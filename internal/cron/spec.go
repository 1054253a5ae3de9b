package cron

import (
	"time"

	"github.com/perdure/perdure/fault"
)

// Spec is the stored form of a schedule. It has either Cron or Every.
type Spec struct {
	// Cron is an expression.
	Cron string `json:"cron,omitempty"`
	// Every is an interval as time.ParseDuration reads it: "1m30s".
	Every string `json:"every,omitempty"`
	// Zone is the IANA zone of an expression; UTC if it is empty.
	Zone string `json:"zone,omitempty"`
	// Anchor is the first tick of an interval; the Unix epoch if it is zero.
	Anchor time.Time `json:"anchor,omitzero"`
}

// Schedule compiles the spec. The empty spec, which is the stored form of the zero
// Schedule, has no ticks.
func (s Spec) Schedule() (Schedule, error) {
	switch {
	case s == Spec{}:
		return Schedule{}, nil
	case s.Cron != "" && s.Every != "":
		return Schedule{}, fault.Invalidf("every", "must not be combined with cron")
	case s.Every != "":
		return s.interval()
	case !s.Anchor.IsZero():
		return Schedule{}, fault.Invalidf("anchor", "must be used with intervals only")
	default:
		return Parse(s.Cron, s.Zone)
	}
}

func (s Spec) interval() (Schedule, error) {
	if s.Zone != "" {
		return Schedule{}, fault.Invalidf("zone", "must be used with cron only")
	}
	if s.Anchor.IsZero() {
		return parseInterval(s.Every, time.Unix(0, 0))
	}
	return parseInterval(s.Every, s.Anchor)
}
