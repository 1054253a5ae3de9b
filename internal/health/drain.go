package health

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/perdure/perdure/internal/clock"
)

const (
	// quiet and watching bound the time after its last poll for which an address counts as a
	// load balancer. Between them it is three times the interval of its polls.
	quiet, watching = 2 * time.Second, time.Minute
	// notices is the number of failed polls after which a load balancer sends no further
	// requests. HAProxy needs three by default.
	notices = 3
	// maxWatchers bounds the number of addresses that are remembered.
	maxWatchers = 1000
	// lastRequests is the time for requests that a load balancer sent before its last poll.
	lastRequests = 500 * time.Millisecond
	// announceEvery is the interval at which a drain looks at the polls.
	announceEvery = 50 * time.Millisecond
)

// watchers are the addresses that poll the readiness of this process.
type watchers struct {
	mu  sync.Mutex
	all map[string]watcher
}

// watcher is one address: its last poll, the time between its last two polls, or 0, and the
// number of polls since the drain began.
type watcher struct {
	last     time.Time
	interval time.Duration
	noticed  int
}

// poll records a poll.
func (w *watchers) poll(r *http.Request, draining bool) {
	from, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		from = r.RemoteAddr
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all == nil || len(w.all) >= maxWatchers {
		w.all = map[string]watcher{}
	}
	one, now := w.all[from], clock.System.Now()
	if !one.last.IsZero() {
		one.interval = max(now.Sub(one.last), 1)
	}
	one.last = now
	if draining {
		one.noticed++
	}
	w.all[from] = one
}

// unaware reports whether an address that polls has not noticed the drain.
func (w *watchers) unaware() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := clock.System.Now()
	for _, one := range w.all {
		polls := one.interval > 0 && now.Sub(one.last) < min(max(3*one.interval, quiet), watching)
		if polls && one.noticed < notices {
			return true
		}
	}
	return false
}

// Announced waits until every address that polls the readiness has noticed the drain: three
// polls have failed. It waits at most for grace, or until ctx is done. If no address polls,
// it returns immediately.
func (h *Health) Announced(ctx context.Context, grace time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	waited := false
	for h.watchers.unaware() {
		waited = true
		wait(ctx, announceEvery)
		if ctx.Err() != nil {
			return
		}
	}
	if waited {
		wait(ctx, lastRequests)
	}
}

func wait(ctx context.Context, d time.Duration) {
	timer := clock.System.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
	case <-ctx.Done():
	}
}

// Draining reports whether the process drains.
func (h *Health) Draining() bool { return h.draining.Load() }
