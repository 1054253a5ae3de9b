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
	// coalesce is how long changes are gathered before they are told.
	coalesce = 150 * time.Millisecond
	// look is how often the feed looks for changes that nobody tells of.
	look = time.Second
	// remembered is how many changes a client may miss and still go on.
	remembered = 256
	// maxSubscribers bounds the open streams of changes.
	maxSubscribers = 10_000
)

// Change says that something of a kind has changed.
type Change struct {
	Kind string   `json:"kind" doc:"The resource: instances, hooks, tasks, alarms, actors, schedules, outbox."`
	IDs  []string `json:"ids" nullable:"false" doc:"What has changed, if it is known."`
	N    int      `json:"n" doc:"How many changes that were."`
	seq  uint64
}

// feed tells subscribers what changes. It remembers a few changes for all of them
// together, so a subscriber costs no memory, a slow one holds nobody up, and one that
// is too far behind is told to start over. While nobody listens it does nothing.
type feed struct {
	epoch  string
	watch  func(ctx context.Context, changed func(kind string)) // runs while somebody listens
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

// subscribe returns what wakes a subscriber and where it begins; false: there are too
// many.
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

// start begins to watch. The caller holds the lock.
func (f *feed) start() {
	ctx, cancel := context.WithCancel(context.Background())
	f.stop = cancel
	f.idle.Go(func() { f.watch(ctx, f.changed) })
	f.idle.Go(func() { f.tell(ctx) })
}

// close waits for what the feed has started. Its subscribers must have gone.
func (f *feed) close() { f.idle.Wait() }

// changed notes a change.
func (f *feed) changed(kind string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dirty[kind]++
}

// tell tells what has changed, some times a second.
func (f *feed) tell(ctx context.Context) {
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
		default: // it is awake
		}
	}
}

// after returns the changes after one; false: some of them are forgotten.
func (f *feed) after(seq uint64) ([]Change, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if seq > f.seq || f.seq-seq > uint64(len(f.recent)) {
		return nil, false
	}
	return f.recent[uint64(len(f.recent))-(f.seq-seq):], true
}

// now returns the last change.
func (f *feed) now() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.seq
}

// id names a change to clients; it means nothing to another process.
func (f *feed) id(seq uint64) string { return f.epoch + "-" + strconv.FormatUint(seq, 10) }

// parse reads the id of a change of this process.
func (f *feed) parse(id string) (uint64, bool) {
	text, ok := strings.CutPrefix(id, f.epoch+"-")
	if !ok {
		return 0, false
	}
	seq, err := strconv.ParseUint(text, 10, 64)
	return seq, err == nil
}

// wait waits in real time and reports whether ctx goes on.
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
