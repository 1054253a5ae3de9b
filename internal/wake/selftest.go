package wake

import (
	"context"
	"crypto/rand"
	"log/slog"
	"sync"
	"time"
)

const (
	// testPrefix begins the topic of a notification by which a hub tests its listener.
	testPrefix = "perdure.test/"
	// testWait is the time within which the hub's own notification must arrive. While it has
	// not arrived, the hub polls.
	testWait = 5 * time.Second
	// testEvery is the interval of the tests.
	testEvery = 30 * time.Second
	// pollEvery is the interval at which a hub that receives nothing asks for commits. It costs
	// one short statement, and one look of each subscriber if there were commits.
	pollEvery = 250 * time.Millisecond
)

// selfTest is the state of the test of the listener.
type selfTest struct {
	mu       sync.Mutex
	topic    string        // of the running test
	received chan struct{} // closed when its notification arrives
	again    chan struct{} // has a value when the listener was connected again
}

// begin starts a test. It returns the topic to notify, and a channel that is closed when
// the notification arrives.
func (s *selfTest) begin() (topic string, received <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.topic, s.received = testPrefix+rand.Text(), make(chan struct{})
	return s.topic, s.received
}

// arrived ends the test whose notification arrived. Notifications of other processes are
// ignored.
func (s *selfTest) arrived(topic string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if topic == s.topic {
		s.topic = ""
		close(s.received)
	}
}

// ready is called when the listener is connected. Earlier notifications were missed, so all
// subscribers are woken.
func (h *Hub) ready() {
	h.PublishAll()
	h.mu.Lock()
	again := h.test.again
	h.mu.Unlock()
	select {
	case again <- struct{}{}:
	default: // a test is due already, or this listener is not tested
	}
}

// testListener tests until ctx is done that notifications arrive: when the listener was
// connected, and every testEvery. While that is not known, or they do not arrive, it polls.
// The caller holds the lock.
func (h *Hub) testListener(ctx context.Context) {
	remote, ok := h.remote.(Fallible)
	if !ok {
		return
	}
	again := make(chan struct{}, 1)
	h.test.again = again
	h.running.Go(func() {
		p := &poller{hub: h, remote: remote}
		p.until(ctx, again, testWait) // connected
		for deaf := false; ctx.Err() == nil; {
			received := h.receives(ctx, p)
			if ctx.Err() != nil {
				return
			}
			if received == deaf {
				deaf = !received
				report(deaf)
			}
			if deaf {
				p.until(ctx, again, testEvery)
			} else {
				waitFor(ctx, again, testEvery)
			}
		}
	})
}

// receives reports whether a notification of this process arrives within testWait.
func (h *Hub) receives(ctx context.Context, p *poller) bool {
	topic, received := h.test.begin()
	notifying, cancel := context.WithTimeout(ctx, notifyTimeout)
	defer cancel()
	if err := p.remote.Notify(notifying, []string{topic}); err != nil {
		return false // the database is unavailable: polling finds out when it is back
	}
	return p.until(ctx, received, testWait)
}

// poller wakes all subscribers after commits of any process.
type poller struct {
	hub    *Hub
	remote Fallible
	last   string
}

// until polls every pollEvery until a value arrives. It returns false if none has arrived
// after total.
func (p *poller) until(ctx context.Context, c <-chan struct{}, total time.Duration) bool {
	for range total / pollEvery {
		if waitFor(ctx, c, pollEvery) {
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		asking, cancel := context.WithTimeout(ctx, notifyTimeout)
		now, err := p.remote.Commits(asking)
		cancel()
		if err == nil && now != p.last {
			p.last = now
			p.hub.notifyAll(Unknown)
		}
	}
	return false
}

// waitFor waits for a value or the end of a channel. It returns false after d.
func waitFor(ctx context.Context, c <-chan struct{}, d time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	select {
	case <-c:
		return true
	case <-ctx.Done():
		return false
	}
}

func report(deaf bool) {
	if deaf {
		slog.Warn("notifications of the database do not arrive, polling instead", "interval", pollEvery.String(), "likely cause", "a pooler in transaction mode")
		return
	}
	slog.Info("notifications of the database arrive again")
}
