package edge

import "time"

// Value returns the value of p, or the zero value if p is nil.
func Value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}

// UTC returns the time of p in UTC, or the zero time if p is nil.
func UTC(p *time.Time) time.Time {
	if p == nil {
		return time.Time{}
	}
	return p.UTC()
}

// Optional returns a text as a statement argument: null if it is empty.
func Optional(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// OptionalTime returns a time as a statement argument: null if it is zero, otherwise
// truncated to microseconds.
func OptionalTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC().Truncate(time.Microsecond)
	return &t
}
