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

func TestQuantilesAreInTheirBuckets(t *testing.T) {
	t.Parallel()
	var h Histogram
	before := h.Counts()
	if got := before.Quantile(0.5); got != 0 {
		t.Errorf("of nothing it is %v", got)
	}
	for range 90 {
		h.Observe(500 * time.Microsecond)
	}
	for range 10 {
		h.Observe(40 * time.Millisecond)
	}
	c := h.Counts().Minus(before)
	if c.Total() != 100 {
		t.Errorf("%d were counted", c.Total())
	}
	for q, within := range map[float64][2]time.Duration{
		0.5: {0, time.Millisecond}, 0.9: {0, time.Millisecond}, 0.95: {25 * time.Millisecond, 50 * time.Millisecond}, 1: {25 * time.Millisecond, 50 * time.Millisecond},
	} {
		if got := c.Quantile(q); got <= within[0] || got > within[1] {
			t.Errorf("quantile %v is %v, want it in %v", q, got, within)
		}
	}
	h.Observe(24 * time.Hour)
	if got := h.Counts().Quantile(1); got != time.Hour {
		t.Errorf("beyond the last bound it is %v", got)
	}
}
