package fsm

import (
	"sync"
	"time"

	"github.com/perdure/perdure"
)

// news gathers what a transaction makes due, queue by queue, to tell the
// dispatchers when it is committed.
type news struct {
	mu  sync.Mutex
	due map[string]time.Time // zero: now
}

// woken notes an instance that is due now.
func (n *news) woken(queue string) { n.at(queue, time.Time{}) }

// at notes an instance that is due at a time.
func (n *news) at(queue string, due time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.due == nil {
		n.due = map[string]time.Time{}
	}
	if earlier, known := n.due[queue]; !known || due.Before(earlier) {
		n.due[queue] = due
	}
}

// publish tells the dispatchers.
func (n *news) publish(rt *perdure.Runtime) {
	n.mu.Lock()
	due := n.due
	n.due = nil
	n.mu.Unlock()
	for queue, at := range due {
		rt.Hub.Publish(topic(queue), at)
	}
}
