// Package wake carries wake-ups from the processes that commit work to the dispatchers
// that wait for it: in this process immediately, in other processes through a
// notification of the database or because they watch its commits.
//
// A wake-up is a hint: a lost wake-up delays work until the next poll. Notifications are
// sent outside users' transactions, at most one at a time, because a NOTIFY takes a lock
// that all commits of the server share.
package wake

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/perdure/perdure/internal/clock"
)

// Remote carries topics between processes.
type Remote interface {
	// Notify notifies the other processes of topics.
	Notify(ctx context.Context, topics []string) error
	// Listen calls ready when it starts to listen. From then on it calls received for each
	// topic that any process notifies, until ctx is done or the connection is lost. An
	// empty topic means that work for an unknown topic was committed.
	Listen(ctx context.Context, ready func(), received func(topic string)) error
}

// Watcher detects that another process has committed, but not what it committed.
type Watcher interface {
	// Watch calls changed when it starts to watch. From then on it calls changed after
	// commits of other processes, until ctx is done or the database cannot be read.
	Watch(ctx context.Context, changed func()) error
}

// Fallible is a Remote whose notifications may not arrive although listening succeeds: a
// pooler of transactions drops them. The hub tests that its own notifications arrive, and
// polls for commits while they do not.
type Fallible interface {
	Remote
	// Commits returns a text that changes after every commit of any process. It may change
	// without a commit.
	Commits(ctx context.Context) (string, error)
}

// Unknown is the due time in the wake-up for an unknown commit of another process. The
// subscriber should read its next due time before it claims. Unknown is in the past, so a
// subscriber that does not handle it looks for due work now.
var Unknown = time.Time{}.Add(1)

const (
	// pace is the minimum time between two notifications of this process.
	pace = 10 * time.Millisecond
	// notifyTimeout bounds one notification.
	notifyTimeout = 5 * time.Second
	// relisten is the delay before listening again.
	relisten = time.Second
	// sqlTopic is the topic of transactions that called a SQL function for applications.
	// Such a transaction sends no notification if another one has sent one less than 25 ms
	// before, so the subscribers look again lookAgain later, looksAfter times.
	sqlTopic   = "sql"
	lookAgain  = 30 * time.Millisecond
	looksAfter = 3
)

// Hub connects publishers and subscribers of topics.
type Hub struct {
	remote  Remote  // nil if topics are not sent to other processes
	watcher Watcher // nil if commits of other processes are not watched
	deaf    bool    // wake-ups of other processes are ignored

	mu        sync.Mutex
	subs      map[string][]*subscription
	all       []*func(topic string)
	dirty     map[string]struct{}
	sending   bool
	listening context.CancelFunc
	looks     int // remaining looks after the last notification of a SQL function
	looking   bool
	closed    bool
	running   sync.WaitGroup

	test selfTest
}

type subscription struct {
	topic string
	fn    func(due time.Time)
}

// New returns a hub. remote and watcher may be nil.
func New(remote Remote, watcher Watcher) *Hub {
	return &Hub{remote: remote, watcher: watcher, subs: map[string][]*subscription{}, dirty: map[string]struct{}{}}
}

// Deafen makes the hub ignore wake-ups of other processes. It still sends its own. It must be
// called before the first subscription.
func (h *Hub) Deafen() { h.deaf = true }

// HasRemote reports whether wake-ups of other processes arrive.
func (h *Hub) HasRemote() bool { return !h.deaf && (h.remote != nil || h.watcher != nil) }

// Subscribe calls fn with the due time of work that arrives for a topic. The zero time
// means that the due time is not known and that the subscriber should look now. fn must
// return immediately.
func (h *Hub) Subscribe(topic string, fn func(due time.Time)) (cancel func()) {
	s := &subscription{topic: topic, fn: fn}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.subs[topic] = append(h.subs[topic], s)
	h.listen()
	return func() { h.unsubscribe(s) }
}

// SubscribeAll calls fn with every topic for which work arrives. fn must return
// immediately.
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

// stopListening stops the listener if there are no subscribers. The caller holds the
// lock.
func (h *Hub) stopListening() {
	if len(h.subs) == 0 && len(h.all) == 0 && h.listening != nil {
		h.listening()
		h.listening = nil
	}
}

// Publish announces that work for a topic was committed.
func (h *Hub) Publish(topic string, due time.Time) {
	h.Notify(topic, due)
	h.notify(topic)
}

// Hint announces that work for unknown topics was committed: the subscribers of all topics
// look for work, in this process and in others.
func (h *Hub) Hint() {
	h.PublishAll()
	h.notify("")
}

// notify sends a topic to other processes.
func (h *Hub) notify(topic string) {
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

// PublishAll wakes the subscribers of all topics in this process.
func (h *Hub) PublishAll() { h.notifyAll(time.Time{}) }

// notifyAll calls the subscribers of all topics in this process.
func (h *Hub) notifyAll(due time.Time) {
	h.mu.Lock()
	topics := make([]string, 0, len(h.subs))
	for topic := range h.subs {
		topics = append(topics, topic)
	}
	h.mu.Unlock()
	for _, topic := range topics {
		h.Notify(topic, due)
	}
}

// Close sends the remaining notifications and stops the goroutines of the hub.
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

// Notify calls the subscribers of a topic in this process only.
func (h *Hub) Notify(topic string, due time.Time) {
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

// send notifies other processes until no topics are left. The first notification is sent
// immediately. Topics that are published in the meantime are collected for the next
// notification, after pace.
func (h *Hub) send() {
	for {
		topics := h.takeDirty()
		if topics == nil {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), notifyTimeout)
		_ = h.remote.Notify(ctx, topics) // only a hint: other processes poll
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
	if !h.HasRemote() || h.listening != nil || h.closed {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	h.listening = cancel
	if h.remote != nil {
		h.repeat(ctx, func() error {
			// Earlier notifications were missed, so all subscribers are woken when it is
			// ready.
			return h.remote.Listen(ctx, h.ready, h.received)
		})
		h.testListener(ctx)
	}
	if h.watcher != nil {
		h.repeat(ctx, func() error {
			return h.watcher.Watch(ctx, func() { h.notifyAll(Unknown) })
		})
	}
}

// received wakes the subscribers of a topic that another process has notified.
func (h *Hub) received(topic string) {
	if strings.HasPrefix(topic, testPrefix) {
		h.test.arrived(topic)
		return
	}
	switch topic {
	case "":
		h.notifyAll(Unknown)
	case sqlTopic:
		if h.keepLooking() {
			h.notifyAll(Unknown)
		}
	default:
		h.Notify(topic, time.Time{})
	}
}

// keepLooking lets subscribers look again for a while. It returns false if they already do:
// then they need not look now.
func (h *Hub) keepLooking() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.looks = looksAfter
	if h.looking || h.closed {
		return false
	}
	h.looking = true
	h.running.Go(func() {
		for h.nextLook() {
			h.notifyAll(Unknown)
		}
	})
	return true
}

// nextLook waits until the next look is due. It returns false after the last one.
func (h *Hub) nextLook() bool {
	h.mu.Lock()
	more := h.looks > 0 && !h.closed
	h.looks--
	h.looking = more
	h.mu.Unlock()
	if more {
		pause(context.Background(), lookAgain)
	}
	return more
}

// repeat calls fn repeatedly until ctx is done. Errors are not reported, because
// subscribers also poll.
func (h *Hub) repeat(ctx context.Context, fn func() error) {
	h.running.Go(func() {
		for ctx.Err() == nil {
			_ = fn()
			pause(ctx, relisten)
		}
	})
}

// pause waits in real time, because it concerns the network and not due times.
func pause(ctx context.Context, d time.Duration) {
	timer := clock.System.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
	case <-ctx.Done():
	}
}
