package inspect

import (
	"context"
	"time"
)

const (
	// batch is the number of candidates that are read at a time.
	batch = 1000
	// patience is the time limit for a page that searches for rare rows.
	patience = 40 * time.Millisecond
)

// candidate is a row that may match the filter.
type candidate struct {
	id      string
	at      position
	matches bool
}

// position is the position at which a page ended, in the order of its list.
type position struct {
	ID  string    `json:"i,omitempty"`
	Key string    `json:"k,omitempty"`
	Seq int64     `json:"s,omitempty"`
	Due time.Time `json:"d,omitzero"`
	// Stage is the number of the walk, for a list that consists of several.
	Stage int `json:"g,omitempty"`
}

// isZero reports whether the position is the start of the list.
func (p position) isZero() bool { return p == position{} }

// page returns the ids of a page and the cursor of the next one. next returns up to size
// candidates after a position, and fewer only at the end. A page that takes too long to
// fill ends early.
func (i *Inspector) page(ctx context.Context, at position, limit int, next func(ctx context.Context, at position, size int) ([]candidate, error)) (ids []string, cursor string, err error) {
	begun := i.rt.Clock.Now()
	for size := min(limit+1, batch); ; size = batch {
		found, err := next(ctx, at, size)
		if err != nil {
			return nil, "", err
		}
		full := false
		for n, c := range found {
			at = c.at
			if c.matches {
				ids = append(ids, c.id)
			}
			if len(ids) == limit {
				full = n < len(found)-1 || len(found) == size
				break
			}
		}
		switch {
		case len(ids) == limit && !full, len(ids) < limit && len(found) < size:
			return ids, "", nil
		case full, i.rt.Clock.Now().Sub(begun) > patience:
			cursor, err := encode(at)
			return ids, cursor, err
		}
	}
}
