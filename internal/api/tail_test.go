package api

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/perdure/perdure/internal/test/testdb"
	"github.com/perdure/perdure/outbox"
)

// memory is an outbox in memory that counts how often it is read.
type memory struct {
	mu      sync.Mutex
	entries []outbox.Entry
	more    chan struct{}
	gone    error // what a reader gets instead of the next entry
	lists   atomic.Int64
	tails   atomic.Int64
}

func newMemory() *memory { return &memory{more: make(chan struct{})} }

func stampOf(i int) outbox.Stamp { return outbox.NewStamp(0, uint64(i), 1) }

// write commits n entries.
func (m *memory) write(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for range n {
		m.entries = append(m.entries, outbox.Entry{Stamp: stampOf(len(m.entries) + 1)})
	}
	close(m.more)
	m.more = make(chan struct{})
}

// fail ends the readers that run with an error.
func (m *memory) fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.gone = err
	close(m.more)
	m.more = make(chan struct{})
}

func (m *memory) since(after outbox.Stamp) ([]outbox.Entry, error, chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.entries[min(after.Counter(), uint64(len(m.entries))):], m.gone, m.more
}

func (m *memory) List(_ context.Context, after outbox.Stamp, _ int) ([]outbox.Entry, error) {
	m.lists.Add(1)
	entries, _, _ := m.since(after)
	return entries[:min(len(entries), 50)], nil
}

func (m *memory) Status(context.Context) (outbox.Status, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.gone = nil
	return outbox.Status{Last: stampOf(len(m.entries))}, nil
}

func (m *memory) Tail(ctx context.Context, after outbox.Stamp, _ *outbox.TailOptions) iter.Seq2[outbox.Entry, error] {
	m.tails.Add(1)
	return func(yield func(outbox.Entry, error) bool) {
		for {
			entries, gone, more := m.since(after)
			if gone != nil {
				yield(outbox.Entry{}, gone)
				return
			}
			for _, e := range entries {
				if after = e.Stamp; !yield(e, nil) {
					return
				}
			}
			if len(entries) == 0 {
				select {
				case <-more:
				case <-ctx.Done():
					return
				}
			}
		}
	}
}

// wants reads the entries from one to another, each once and in order.
func (t *tails) wants(tb testing.TB, from, to int, each func(i int)) {
	ctx, cancel := context.WithTimeout(context.Background(), testdb.Patience)
	defer cancel()
	t.join()
	defer t.leave()
	i := from
	for entry, err := range t.follow(ctx, stampOf(from)) {
		if i++; err != nil || entry.Stamp != stampOf(i) {
			tb.Errorf("got %v, %v, want %v", entry.Stamp, err, stampOf(i))
			return
		}
		each(i)
		if i == to {
			return
		}
	}
	tb.Errorf("it has ended after %d of %d", i, to)
}

// 500 streams that have caught up get new entries from one reader: each has read the
// outbox once to learn that it is at the end.
func TestManyTailsHaveOneReader(t *testing.T) {
	t.Parallel()
	const streams, entries = 500, 200
	m := newMemory()
	m.write(10)
	tails := newTails(m, func(err error) { t.Errorf("reported: %v", err) })
	var caughtUp, all sync.WaitGroup
	caughtUp.Add(streams)
	for range streams {
		all.Go(func() {
			tails.wants(t, 9, 10+entries, func(i int) {
				if i == 10 {
					caughtUp.Done()
				}
			})
		})
	}
	caughtUp.Wait()
	for range entries {
		m.write(1)
	}
	all.Wait()
	tails.idle.Wait()
	// One read for the entry that was there, one for the end, and if all entries are
	// written before that, one for each 50 of them.
	if lists := m.lists.Load(); lists > streams*(2+entries/50) || m.tails.Load() != 1 {
		t.Errorf("%d reads by streams and %d readers for %d entries", lists, m.tails.Load(), entries)
	}
}

// Streams come and go, fall behind, and the reader fails, while entries are written:
// each gets each entry once and in order.
func TestTailsMissNothing(t *testing.T) {
	t.Parallel()
	const entries = 3000
	m := newMemory()
	tails := newTails(m, func(err error) { t.Errorf("reported: %v", err) })
	var all sync.WaitGroup
	all.Go(func() {
		for i := range entries / 10 {
			m.write(10)
			if i == entries/20 {
				m.fail(errors.New("restored"))
			}
		}
	})
	for s := range 20 {
		all.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(s)))
			for from := 0; from < entries; {
				to := min(from+1+r.IntN(entries), entries)
				tails.wants(t, from, to, func(int) {})
				from = to
			}
		})
	}
	all.Wait()
	tails.idle.Wait()
}

// slow is an outbox whose Status goes on for a while after its reader was told to end.
type slow struct {
	*memory
	asked, ended chan struct{}
	ending       func()
}

func (s *slow) Status(ctx context.Context) (outbox.Status, error) {
	close(s.asked)
	<-ctx.Done()
	s.ending()
	close(s.ended)
	return outbox.Status{}, ctx.Err()
}

// The engine may be closed after Close: nothing reads the database any more.
func TestCloseWaitsForReaders(t *testing.T) {
	t.Parallel()
	closed := make(chan struct{})
	s := &slow{memory: newMemory(), asked: make(chan struct{}), ended: make(chan struct{})}
	s.ending = func() {
		select {
		case <-closed:
			t.Error("Close has returned while a reader runs")
		default:
		}
	}
	a := &API{tails: newTails(s, func(err error) { t.Errorf("reported: %v", err) }), feed: newFeed("", nil)}
	a.streams, a.endStreams = context.WithCancel(t.Context())
	a.tails.join()
	<-s.asked
	a.tails.leave()
	a.Close()
	close(closed)
	<-s.ended
	if a.streams.Err() == nil {
		t.Error("streams go on")
	}
}
