package store

import "time"

const (
	// Stretch is how many rows of a list are looked at in one go.
	Stretch = 5000
	// patience is how long a page may look for rows that are rare.
	patience = 40 * time.Millisecond
)

// Fill fills a page of a list whose filter may fit few rows: a page must not take as
// long as the list is. read looks at the next stretch for as many rows as are wanted,
// and tells how many it has found and whether there is more behind it. Fill ends when
// the page is full, nothing is left or it has taken long enough.
func Fill(now func() time.Time, want int, read func(want int) (found int, more bool, err error)) (more bool, err error) {
	for begun := now(); ; {
		found, more, err := read(want)
		want -= found
		if err != nil || !more || want <= 0 || now().Sub(begun) > patience {
			return more, err
		}
	}
}
