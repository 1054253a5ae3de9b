package sqldb

import "time"

// MinTime and MaxTime are the bounds of the times that every database and JSON hold
// exactly.
var (
	MinTime = time.Date(1, 1, 2, 0, 0, 0, 0, time.UTC)
	MaxTime = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)
)

// Bounded returns t, or the nearer of MinTime and MaxTime if t is outside them.
func Bounded(t time.Time) time.Time {
	switch {
	case t.Before(MinTime):
		return MinTime
	case t.After(MaxTime):
		return MaxTime
	}
	return t
}

// bounder moves scanned times into the bounds. It is used for all rows of a result.
type bounder struct{ times []any }

// note records the destinations that are times.
func (b *bounder) note(dest []any) {
	b.times = b.times[:0]
	for _, d := range dest {
		switch d.(type) {
		case *time.Time, **time.Time:
			b.times = append(b.times, d)
		}
	}
}

func (b *bounder) bound() {
	for _, d := range b.times {
		switch t := d.(type) {
		case *time.Time:
			*t = Bounded(*t)
		case **time.Time:
			if *t != nil {
				**t = Bounded(**t)
			}
		}
	}
}
