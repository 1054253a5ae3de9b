package api

import (
	"slices"
	"testing"
	"time"

	"github.com/perdure/perdure/internal/store"
)

// The interval that is not over looks as if work had stopped: it is left out until
// it is counted.
func TestSeriesEndWithTheLastIntervalThatWasCounted(t *testing.T) {
	t.Parallel()
	from := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	at := func(s, finished int) store.Sample {
		return store.Sample{Kind: "hooks", At: from.Add(time.Duration(s) * time.Second), Finished: finished}
	}
	for name, c := range map[string]struct {
		samples []store.Sample
		now     int
		want    []int
	}{
		"not counted yet": {[]store.Sample{at(0, 1), at(10, 2), at(20, 3)}, 31, []int{1, 2, 3}},
		"counted":         {[]store.Sample{at(0, 1), at(10, 2), at(20, 3), at(30, 4)}, 34, []int{1, 2, 3, 4}},
		"idle since":      {[]store.Sample{at(0, 1)}, 31, []int{1, 0, 0}},
	} {
		got := series(c.samples, from, from.Add(time.Duration(c.now)*time.Second), 10*time.Second)
		if !slices.Equal(got.Throughput["hooks"], c.want) || len(got.Backlog) != len(c.want) {
			t.Errorf("%s: %v, want %v", name, got.Throughput["hooks"], c.want)
		}
	}
}
