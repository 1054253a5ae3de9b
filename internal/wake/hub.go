// Package wake carries wake-ups from the processes that commit work to the
// dispatchers that wait for it: in this process immediately, in other processes by
// a notification of the database, or because they watch its commits.
//
// A wake-up is a hint: a lost one delays work until the next poll.
// Notifications leave outside of users' transactions, at most one at a time,
// because a NOTIFY takes a lock that all commits of the server share.
package wake

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/perdure/perdure/internal/clock"
)

// Remote carries topics between processes.
type Remote interface {
	// Notify tells the other processes of topics.
	Notify(ctx context.Context, topics []string) error
	// Listen calls ready when it begins to hear, and heard for each topic that
	// any process notifies from then on, until ctx is done or the connection
	// is lost.
	Listen(ctx context.Context, ready func(), heard func(topic string)) error
}

// Watcher finds out that another process has committed, but not what.
type Watcher interface {
	// Watch calls changed when it starts to watch, and after commits of other
	// processes from then on, until ctx is done or the database cannot be read.
	Watch(ctx context.Context, changed func()) error
}

// Unknown is the due time in the hint that another process has committed
// something: the subscriber should read its next due time before it claims. It
// is in the past, so a subscriber that does not know it looks now.
var Unknown = time.Time{}.Add(1)

const (
	// pace is the least time between two notifications of this process.
	pace = 10 * time.Millisecond
	// notifyTimeout bounds one notification.
	notifyTimeout = 5 * time.Second
	// relisten is how long to wait before listening again.
	relisten = time.Second
)

// Hub connects publishers and subscribers of topics.
type Hub struct {
	remote  Remote  // nil: nothing carries topics to other processes
	watcher Watcher // nil: nothing watches the commits of other processes

	mu        sync.Mutex
	subs      map[string][]*subscription
	all       []*func(topic string)
	dirty     map[string]struct{}
	sending   bool
	listening context.CancelFunc
	closed    bool
	running   sync.WaitGroup
}

type subscription struct {
	topic string
	fn    func(due time.Time)
}

// New returns a hub; remote and watcher may be nil.
func New(remote Remote, watcher Watcher) *Hub {
	return &Hub{remote: remote, watcher: watcher, subs: map[string][]*subscription{}, dirty: map[string]struct{}{}}
}

// Subscribe calls fn with the due time of work that arrives for a topic; the
// zero time means that it is not known, so look now. fn must return at once.
func (h *Hub) Subscribe(topic string, fn func(due time.Time)) (cancel func()) {
	s := &subscription{topic: topic, fn: fn}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.subs[topic] = append(h.subs[topic], s)
	h.listen()
	return func() { h.unsubscribe(s) }
}

// SubscribeAll calls fn with every topic that work arrives for. fn must return at
// once.
func (h *Hub) SubscribeAll(fn func(topic string)) (cancel func()) {
	s := &fn
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, s)
	h.listen()
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.all = slices.DeleteFunc(h.all, func(other *func(string)) bool { return other == s })
		h.stopListening()
	}
}

func (h *Hub) unsubscribe(s *subscription) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.subs[s.topic] = slices.DeleteFunc(h.subs[s.topic], func(other *subscription) bool { return other == s })
	if len(h.subs[s.topic]) == 0 {
		delete(h.subs, s.topic)
	}
	h.stopListening()
}

// stopListening ends the listener if nobody is left to hear it. The caller holds the
// lock.
func (h *Hub) stopListening() {
	if len(h.subs) == 0 && len(h.all) == 0 && h.listening != nil {
		h.listening()
		h.listening = nil
	}
}

// Publish says that work for a topic was committed.
func (h *Hub) Publish(topic string, due time.Time) {
	h.Tell(topic, due)
	if h.remote == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return
	}
	h.dirty[topic] = struct{}{}
	if h.sending {
		return
	}
	h.sending = true
	h.running.Go(h.send)
}

// PublishAll makes every subscriber of this process look.
func (h *Hub) PublishAll() { h.tellAll(time.Time{}) }

// tellAll tells all subscribers of this process.
func (h *Hub) tellAll(due time.Time) {
	h.mu.Lock()
	topics := make([]string, 0, len(h.subs))
	for topic := range h.subs {
		topics = append(topics, topic)
	}
	h.mu.Unlock()
	for _, topic := range topics {
		h.Tell(topic, due)
	}
}

// Close says what is left to say and ends what the hub has started.
func (h *Hub) Close() {
	h.mu.Lock()
	h.closed = true
	if h.listening != nil {
		h.listening()
		h.listening = nil
	}
	h.mu.Unlock()
	h.running.Wait()
}

// Tell tells the subscribers of this process, and no other.
func (h *Hub) Tell(topic string, due time.Time) {
	h.mu.Lock()
	subs, all := slices.Clone(h.subs[topic]), slices.Clone(h.all)
	h.mu.Unlock()
	for _, s := range subs {
		s.fn(due)
	}
	for _, fn := range all {
		(*fn)(topic)
	}
}

// send notifies the others until nothing is left to say. The first topic goes
// out at once; what gathers meanwhile waits for the pace.
func (h *Hub) send() {
	for {
		topics := h.takeDirty()
		if topics == nil {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), notifyTimeout)
		_ = h.remote.Notify(ctx, topics) // a hint: the others will poll
		cancel()
		pause(context.Background(), pace)
	}
}

func (h *Hub) takeDirty() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.dirty) == 0 {
		h.sending = false
		return nil
	}
	topics := make([]string, 0, len(h.dirty))
	for topic := range h.dirty {
		topics = append(topics, topic)
	}
	clear(h.dirty)
	return topics
}

// listen starts the listener if there is none. The caller holds the lock.
func (h *Hub) listen() {
	if h.remote == nil && h.watcher == nil || h.listening != nil || h.closed {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	h.listening = cancel
	if h.remote != nil {
		h.repeat(ctx, func() error {
			// Earlier notifications went unheard, so all look when it is ready.
			return h.remote.Listen(ctx, h.PublishAll, func(topic string) { h.Tell(topic, time.Time{}) })
		})
	}
	if h.watcher != nil {
		h.repeat(ctx, func() error {
			return h.watcher.Watch(ctx, func() { h.tellAll(Unknown) })
		})
	}
}

// repeat calls fn until ctx is done. An error is not reported: subscribers poll.
func (h *Hub) repeat(ctx context.Context, fn func() error) {
	h.running.Go(func() {
		for ctx.Err() == nil {
			_ = fn()
			pause(ctx, relisten)
		}
	})
}

// pause waits in real time: it is about the network, not about due times.
func pause(ctx context.Context, d time.Duration) {
	timer := clock.System.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
	case <-ctx.Done():
	}
}
