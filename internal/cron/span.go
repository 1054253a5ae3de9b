package cron

import (
	"iter"
	"math"
	"time"
)

// span is a period in which a zone keeps its offset from UTC. Instants are Unix
// seconds. Wall time, the time that the clocks of the zone show, is counted in the same
// way, as if they showed UTC.
type span struct {
	start, end int64 // [start, end)
	offset     int64 // wall time - instant
	// reached is the wall time that the clocks had reached when the span started. It is
	// start + offset unless the clocks change at the start: less if they skip a time,
	// more if they repeat one.
	reached int64
}

// clockChangeSpan is a time after a change of the clocks by which all repeated times have been
// shown. No zone ever put its clocks back by more than a day, or changed them twice
// within three days.
const clockChangeSpan = 2 * daySeconds

// spans returns the spans of a zone from an instant on. The first span may start before
// the instant, and the last is cut off at the limit.
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

// spanAt returns the span of an instant. The previous span is only needed near a
// change.
func spanAt(instant int64, zone *time.Location) span {
	s := bounds(instant, zone)
	s.reached = s.start + s.offset
	if instant-s.start < clockChangeSpan {
		s.reached = s.start + bounds(s.start-1, zone).offset
	}
	return s
}

// bounds returns the span of an instant, or a part of it. Where a zone follows a rule,
// package time ends its spans with each year in UTC, and in leap years a day too early.
// That day, on which no rule changes clocks, is a separate span here.
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
