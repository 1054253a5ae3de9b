package store

import "time"

const (
	// Stretch is the number of rows of a list that one statement examines.
	Stretch = 5000
	// patience is the maximum time that a page may search for rare rows.
	patience = 40 * time.Millisecond
)

// Fill fills a page of a list whose filter may match few rows. The time of a page must not grow
// with the length of the list. read examines the next range for the wanted number of rows. It
// returns the number of rows found and whether more ranges follow. Fill returns when the page
// is full, no rows are left, or the time limit has passed.
func Fill(now func() time.Time, want int, read func(want int) (found int, more bool, err error)) (more bool, err error) {
	for begun := now(); ; {
		found, more, err := read(want)
		want -= found
		if err != nil || !more || want <= 0 || now().Sub(begun) > patience {
			return more, err
		}
	}
}
