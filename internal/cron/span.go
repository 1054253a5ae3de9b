package cron

import (
	"iter"
	"math"
	"time"
)

// span is a time during which a zone keeps its offset from UTC. Instants are Unix
// seconds. What the clocks of the zone show, "wall time", is counted in the same
// way, as if they showed UTC.
type span struct {
	start, end int64 // [start, end)
	offset     int64 // wall time - instant
	// reached is the wall time before which clocks have shown all they were to
	// show when the span begins. It is start + offset unless the clocks are
	// changed then: less where they skip a time, more where they show it again.
	reached int64
}

// settled is how long after a change of the clocks all times that are shown again
// have been shown. No zone ever put its clocks back by more than a day, nor
// changed them twice within three.
const settled = 2 * daySeconds

// spans are the spans of a zone from an instant on. The first begins before it, if
// it does, and the last is cut off at the limit.
func spans(from, limit int64, zone *time.Location) iter.Seq[span] {
	return func(yield func(span) bool) {
		for at := from; at < limit; {
			s := spanAt(at, zone)
			s.end = min(s.end, limit)
			if !yield(s) {
				return
			}
			at = s.end
		}
	}
}

// spanAt returns the span of an instant. To look back is only needed near a
// change.
func spanAt(instant int64, zone *time.Location) span {
	s := bounds(instant, zone)
	s.reached = s.start + s.offset
	if instant-s.start < settled {
		s.reached = s.start + bounds(s.start-1, zone).offset
	}
	return s
}

// bounds returns the span of an instant, or a part of it: where a zone goes on by
// a rule, package time ends its spans with each year in UTC, and in leap years it
// does so a day too early. That day, on which no rule changes clocks, is a span of
// its own here.
func bounds(instant int64, zone *time.Location) span {
	t := time.Unix(instant, 0).In(zone)
	_, offset := t.Zone()
	s := span{start: math.MinInt64 / 2, end: math.MaxInt64 / 2, offset: int64(offset)}
	start, end := t.ZoneBounds()
	if !start.IsZero() {
		s.start = start.Unix()
	}
	if !end.IsZero() {
		s.end = end.Unix()
	}
	if s.end <= instant {
		s.start, s.end = floor(instant), floor(instant)+daySeconds
	}
	return s
}
