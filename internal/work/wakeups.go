package work

import (
	"sync"
	"time"

	"github.com/perdure/perdure/internal/wake"
)

// Wakeups collects the work that a transaction makes due, by lane, to wake the dispatchers after
// the commit. The zero value is ready to use. It is safe for concurrent use.
type Wakeups struct {
	mu  sync.Mutex
	due map[string]time.Time // zero: now
}

// Woken records an item of a lane that is due now.
func (w *Wakeups) Woken(lane string) { w.At(lane, time.Time{}) }

// At records an item of a lane that is due at a time.
func (w *Wakeups) At(lane string, due time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.due == nil {
		w.due = map[string]time.Time{}
	}
	if earlier, known := w.due[lane]; !known || due.Before(earlier) {
		w.due[lane] = due
	}
}

// Publish wakes the dispatchers. topic returns the topic of a lane.
func (w *Wakeups) Publish(hub *wake.Hub, topic func(lane string) string) {
	w.mu.Lock()
	due := w.due
	w.due = nil
	w.mu.Unlock()
	for lane, at := range due {
		hub.Publish(topic(lane), at)
	}
}
