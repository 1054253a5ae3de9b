package core_test

import (
	"testing"
	"time"

	"github.com/perdure/perdure/internal/core"
)

// After an outage, a heartbeat's time passes before the leases of others count as
// expired; failures that come and go delay that by a lease at most.
func TestAnOutageIsOverAfterAHeartbeat(t *testing.T) {
	t.Parallel()
	const lease = 30 * time.Second
	at := func(s int) time.Time { return time.Date(2026, 1, 1, 0, 0, s, 0, time.UTC) }
	for name, c := range map[string]struct {
		failed, succeeded []int
		want              map[int]bool
	}{
		"no outage":             {succeeded: []int{1, 2}, want: map[int]bool{0: true, 2: true}},
		"still away":            {failed: []int{1, 50, 90}, want: map[int]bool{1: false, 90: false}},
		"back":                  {failed: []int{1, 90}, succeeded: []int{0, 100}, want: map[int]bool{100: false, 105: false, 106: true}},
		"back and away again":   {failed: []int{1, 103}, succeeded: []int{100, 105}, want: map[int]bool{106: false, 110: false, 111: true}},
		"on and off":            {failed: []int{1, 101, 105, 109, 113, 117, 121, 125, 129}, succeeded: []int{100, 103, 107, 111, 115, 119, 123, 127, 131}, want: map[int]bool{129: false, 130: true, 132: true}},
		"a second long outage":  {failed: []int{1, 140, 300}, succeeded: []int{100, 120, 310}, want: map[int]bool{120: true, 300: false, 311: false, 316: true}},
		"away while on and off": {failed: []int{1, 101, 105, 200}, succeeded: []int{100, 103}, want: map[int]bool{200: false}},
	} {
		var o core.Outage
		for s := range 400 {
			for _, f := range c.failed {
				if f == s {
					o.Failed(at(s), lease)
				}
			}
			for _, f := range c.succeeded {
				if f == s {
					o.Succeeded(at(s), lease)
				}
			}
			if want, asked := c.want[s]; asked && o.Over(at(s), lease) != want {
				t.Errorf("%s: after %d s the outage is over: %v", name, s, !want)
			}
		}
	}
}
