package histogram

import (
	"testing"
	"time"
)

func TestDurationsAreCountedInTheirBuckets(t *testing.T) {
	t.Parallel()
	var h Histogram
	for _, d := range []time.Duration{-time.Second, 0, time.Millisecond, time.Millisecond + 1, 2 * time.Hour} {
		h.Observe(d)
	}
	c := h.Counts()
	if c.Buckets[0] != 3 || c.Buckets[1] != 1 || c.Buckets[len(Bounds)] != 1 {
		t.Errorf("got %v", c.Buckets)
	}
	if want := 2*time.Hour + 2*time.Millisecond + 1; c.Sum != want {
		t.Errorf("the sum is %v, want %v", c.Sum, want)
	}
}

func TestObserveAllocatesNothing(t *testing.T) {
	var h Histogram
	if n := testing.AllocsPerRun(100, func() { h.Observe(time.Second) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
