package edge

import "time"

// Value returns what p points to, or the zero value.
func Value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}

// UTC returns the time that p points to, in UTC, or the zero time.
func UTC(p *time.Time) time.Time {
	if p == nil {
		return time.Time{}
	}
	return p.UTC()
}

// Optional returns a text as an argument of a statement: null if it is empty.
func Optional(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// OptionalTime returns a time as an argument of a statement: null if it is zero, else to
// the microsecond.
func OptionalTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC().Truncate(time.Microsecond)
	return &t
}
