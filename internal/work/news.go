package work

import (
	"sync"
	"time"

	"github.com/perdure/perdure/internal/wake"
)

// News collects the work that a transaction makes due, by lane, to wake the dispatchers after
// the commit. The zero value is ready to use. It is safe for concurrent use.
type News struct {
	mu  sync.Mutex
	due map[string]time.Time // zero: now
}

// Woken records an item of a lane that is due now.
func (n *News) Woken(lane string) { n.At(lane, time.Time{}) }

// At records an item of a lane that is due at a time.
func (n *News) At(lane string, due time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.due == nil {
		n.due = map[string]time.Time{}
	}
	if earlier, known := n.due[lane]; !known || due.Before(earlier) {
		n.due[lane] = due
	}
}

// Publish wakes the dispatchers. topic returns the topic of a lane.
func (n *News) Publish(hub *wake.Hub, topic func(lane string) string) {
	n.mu.Lock()
	due := n.due
	n.due = nil
	n.mu.Unlock()
	for lane, at := range due {
		hub.Publish(topic(lane), at)
	}
}
