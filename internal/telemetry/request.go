package telemetry

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/perdure/perdure/internal/histogram"
)

// requestCounts counts requests by route.
type requestCounts struct {
	mu     sync.Mutex
	routes map[string]*route
}

type route struct {
	took     histogram.Histogram
	statuses map[int]int64
}

// Observe counts a finished request. name is the pattern or name of its route, never its
// path: the number of routes is bounded.
func (e *Exporter) Observe(name string, status int, took time.Duration) {
	c := &e.requests
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.routes == nil {
		c.routes = map[string]*route{}
	}
	r := c.routes[name]
	if r == nil {
		r = &route{statuses: map[int]int64{}}
		c.routes[name] = r
	}
	r.took.Observe(took)
	r.statuses[status]++
}

func (c *requestCounts) collect(s samples) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(c.routes)) {
		r := c.routes[name]
		for _, status := range slices.SortedFunc(maps.Keys(r.statuses), cmp.Compare) {
			s.add(requests, float64(r.statuses[status]), name, strconv.Itoa(status))
		}
		s.addHistogram(requestsTook, r.took.Counts(), name)
	}
}
