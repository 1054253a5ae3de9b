package api

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/perdure/perdure/internal/clock"
)

const (
	// coalesce is the time for which changes are collected before they are published.
	coalesce = 150 * time.Millisecond
	// look is the interval at which the feed polls for changes without wake-ups.
	look = time.Second
	// remembered is the number of changes that a client may miss and still resume.
	remembered = 256
	// maxSubscribers is the maximum number of open streams of changes.
	maxSubscribers = 10_000
)

// Change reports that something of a kind has changed.
type Change struct {
	Kind string   `json:"kind" doc:"Resource: instances, hooks, tasks, alarms, actors, schedules or outbox."`
	IDs  []string `json:"ids" nullable:"false" doc:"Ids of the changed items, if known."`
	N    int      `json:"n" doc:"Number of changes."`
	seq  uint64
}

// feed publishes changes to subscribers. All subscribers share one buffer of recent
// changes: a subscriber needs no memory, and a slow subscriber does not delay others. A
// subscriber that is too far behind must start over. The feed runs only while it has
// subscribers.
type feed struct {
	epoch  string
	watch  func(ctx context.Context, changed func(kind string)) // runs while there are subscribers
	mu     sync.Mutex
	recent []Change
	seq    uint64
	dirty  map[string]int
	subs   map[chan struct{}]bool
	stop   context.CancelFunc
	idle   sync.WaitGroup
}

func newFeed(epoch string, watch func(context.Context, func(string))) *feed {
	return &feed{epoch: epoch, watch: watch, dirty: map[string]int{}, subs: map[chan struct{}]bool{}}
}

// subscribe returns the channel that wakes a subscriber and the change that it starts
// after. It returns false if there are too many subscribers.
func (f *feed) subscribe() (wake chan struct{}, seq uint64, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.subs) >= maxSubscribers {
		return nil, 0, false
	}
	wake = make(chan struct{}, 1)
	f.subs[wake] = true
	if len(f.subs) == 1 {
		f.start()
	}
	return wake, f.seq, true
}

func (f *feed) unsubscribe(wake chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.subs, wake)
	if len(f.subs) == 0 {
		f.stop()
	}
}

// start starts the goroutines of the feed. The caller holds the lock.
func (f *feed) start() {
	ctx, cancel := context.WithCancel(context.Background())
	f.stop = cancel
	f.idle.Go(func() { f.watch(ctx, f.changed) })
	f.idle.Go(func() { f.publish(ctx) })
}

// close waits for the goroutines of the feed. All subscribers must have unsubscribed.
func (f *feed) close() { f.idle.Wait() }

// changed records a change.
func (f *feed) changed(kind string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dirty[kind]++
}

// publish publishes the recorded changes once per coalesce interval.
func (f *feed) publish(ctx context.Context) {
	for wait(ctx, coalesce) {
		f.flush()
	}
}

func (f *feed) flush() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.dirty) == 0 {
		return
	}
	for kind, n := range f.dirty {
		f.seq++
		f.recent = append(f.recent, Change{Kind: kind, IDs: []string{}, N: n, seq: f.seq})
	}
	clear(f.dirty)
	if over := len(f.recent) - remembered; over > 0 {
		f.recent = append([]Change(nil), f.recent[over:]...)
	}
	for wake := range f.subs {
		select {
		case wake <- struct{}{}:
		default: // it is already woken
		}
	}
}

// after returns the changes after seq. It returns false if some of them are no longer
// remembered.
func (f *feed) after(seq uint64) ([]Change, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if seq > f.seq || f.seq-seq > uint64(len(f.recent)) {
		return nil, false
	}
	return f.recent[uint64(len(f.recent))-(f.seq-seq):], true
}

// now returns the number of the last change.
func (f *feed) now() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.seq
}

// id returns the id of a change for clients. It is valid only in this process.
func (f *feed) id(seq uint64) string { return f.epoch + "-" + strconv.FormatUint(seq, 10) }

// parse parses the id of a change of this process.
func (f *feed) parse(id string) (uint64, bool) {
	text, ok := strings.CutPrefix(id, f.epoch+"-")
	if !ok {
		return 0, false
	}
	seq, err := strconv.ParseUint(text, 10, 64)
	return seq, err == nil
}

// wait waits in real time and reports whether ctx is still active.
func wait(ctx context.Context, d time.Duration) bool {
	timer := clock.System.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
		return true
	case <-ctx.Done():
		return false
	}
}
