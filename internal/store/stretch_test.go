package store

import (
	"errors"
	"testing"
	"time"
)

func TestAPageEndsWhenItIsFullOrNothingIsLeftOrItTookTooLong(t *testing.T) {
	t.Parallel()
	failed := errors.New("failed")
	for name, c := range map[string]struct {
		found   []int // in each stretch
		took    time.Duration
		err     error
		reads   int
		more    bool
		wantErr error
	}{
		"full":                  {found: []int{0, 2, 1, 9}, reads: 3, more: true},
		"nothing left":          {found: []int{0, 1}, reads: 2},
		"too long":              {found: []int{0, 0, 0, 0, 0, 0}, took: 30 * time.Millisecond, reads: 2, more: true},
		"full at the very end":  {found: []int{3}, reads: 1},
		"an error ends it also": {found: []int{0, 0}, err: failed, reads: 1, more: true, wantErr: failed},
	} {
		now, reads := time.Unix(0, 0), 0
		more, err := Fill(func() time.Time { return now }, 3, func(int) (int, bool, error) {
			now = now.Add(c.took)
			reads++
			return c.found[reads-1], reads < len(c.found), c.err
		})
		if more != c.more || !errors.Is(err, c.wantErr) || reads != c.reads {
			t.Errorf("%s: more %v after %d reads, %v", name, more, reads, err)
		}
	}
}
