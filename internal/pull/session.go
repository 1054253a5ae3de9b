package pull

import (
	"time"
)

// session is a worker that is connected. The lock of the broker guards its fields.
type session struct {
	broker              *Broker
	id, principal, name string
	lease               time.Duration
	slots               int
	// keys are the names that it serves, runners the runners that have them.
	keys, runners map[string]bool
	seen          time.Time
	tasks         map[string]*task // what it runs, by token
	waiter        *waiter          // its call that waits for work
	answers       []repeat         // the last answers with work, oldest first
}

// repeat is an answer that can be given again.
type repeat struct {
	exchange string
	work     []*task
}

// cancels returns the tasks that the worker must stop. The lock must be held.
func (s *session) cancels() []Cancel {
	var all []Cancel
	for token, t := range s.tasks {
		if t.cancelled != "" {
			all = append(all, Cancel{Token: token, Reason: t.cancelled})
		}
	}
	return all
}

// waiter is a call that waits for work. The lock of the broker guards its fields, except over and
// ready.
type waiter struct {
	session *session
	max     int
	got     []*task
	// ready is closed when it has got work or must answer, over when the session has ended.
	ready, over chan struct{}
	answered    bool
}

// room returns the number of tasks that it can still take.
func (w *waiter) room() int { return w.max - len(w.got) }

// answer ends the wait. The lock must be held.
func (w *waiter) answer() {
	if !w.answered {
		w.answered = true
		close(w.ready)
	}
}
