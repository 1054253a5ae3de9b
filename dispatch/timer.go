package dispatch

import (
	"context"
	"sync"
	"time"

	"github.com/perdure/perdure/internal/clock"
)

// timerHost keeps the wake-up time in a timer of this process.
type timerHost struct {
	clock clock.Clock
	fire  func()

	mu      sync.Mutex
	at      time.Time
	cancel  func()
	stopped bool
	waiting sync.WaitGroup
}

func newTimerHost(c clock.Clock, fire func()) *timerHost {
	return &timerHost{clock: c, fire: fire, cancel: func() {}}
}

// Set implements WakeHost.
func (h *timerHost) Set(_ context.Context, at time.Time) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.cancel()
	if h.stopped {
		return nil
	}
	h.at = at
	timer := h.clock.NewTimer(at.Sub(h.clock.Now()))
	cancelled := make(chan struct{})
	h.cancel = sync.OnceFunc(func() { close(cancelled) })
	h.waiting.Go(func() {
		defer timer.Stop()
		select {
		case <-timer.C():
			h.ring(cancelled)
		case <-cancelled:
		}
	})
	return nil
}

// ring calls fire unless the timer was replaced or deleted concurrently.
func (h *timerHost) ring(cancelled <-chan struct{}) {
	h.mu.Lock()
	select {
	case <-cancelled:
		h.mu.Unlock()
		return
	default:
	}
	h.at = time.Time{}
	h.mu.Unlock()
	h.fire()
}

// Get implements WakeHost.
func (h *timerHost) Get(context.Context) (time.Time, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.at, nil
}

// Delete implements WakeHost.
func (h *timerHost) Delete(context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.cancel()
	h.at = time.Time{}
	return nil
}

// stop stops the timer. fire is not called after stop returns.
func (h *timerHost) stop() {
	h.mu.Lock()
	h.stopped = true
	h.cancel()
	h.mu.Unlock()
	h.waiting.Wait()
}
