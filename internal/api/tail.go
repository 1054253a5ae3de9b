package api

import (
	"context"
	"errors"
	"iter"
	"sync"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/outbox"
)

// entryLog is the part of the outbox that tails reads.
type entryLog interface {
	List(ctx context.Context, after outbox.Stamp, limit int) ([]outbox.Entry, error)
	Status(ctx context.Context) (outbox.Status, error)
	Tail(ctx context.Context, after outbox.Stamp, options *outbox.TailOptions) iter.Seq2[outbox.Entry, error]
}

// tails lets any number of streams follow the outbox with one reader. A stream reads from
// the database only until it has caught up, and again if it falls behind the remembered
// entries. The reader runs only while there are streams.
type tails struct {
	log     entryLog
	onError func(error)

	mu      sync.Mutex
	streams int
	stop    context.CancelFunc
	idle    sync.WaitGroup
	// epoch counts the starts and failures of readers. Places of an earlier epoch are invalid.
	epoch   uint64
	ready   bool           // a reader follows the outbox
	recent  []outbox.Entry // the last entries that it has read
	seq     uint64         // the number of entries that it has read in this epoch
	changed chan struct{}  // closed at the next change
}

// place is the position of a stream in an epoch.
type place struct{ epoch, seq uint64 }

func newTails(log entryLog, onError func(error)) *tails {
	return &tails{log: log, onError: onError, changed: make(chan struct{})}
}

// join adds a stream. The first stream starts the reader.
func (t *tails) join() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.streams++; t.streams > 1 {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	t.stop = cancel
	epoch := t.renew(false)
	t.idle.Go(func() { t.read(ctx, epoch) })
}

// leave removes a stream.
func (t *tails) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.streams--; t.streams == 0 {
		t.stop()
		t.renew(false)
	}
}

// renew starts an epoch. The caller holds the lock.
func (t *tails) renew(ready bool) uint64 {
	t.epoch++
	t.ready, t.recent, t.seq = ready, nil, 0
	t.announce()
	return t.epoch
}

// announce wakes the streams. The caller holds the lock.
func (t *tails) announce() {
	close(t.changed)
	t.changed = make(chan struct{})
}

// read follows the outbox from its end. After an error it starts again at the end. The
// streams then read the entries in between from the database.
func (t *tails) read(ctx context.Context, epoch uint64) {
	failed := false
	for {
		status, err := t.log.Status(ctx)
		if err != nil && ctx.Err() == nil && !failed {
			t.onError(err) // only the first time: the database may be unavailable for long
		}
		if failed = err != nil; !failed {
			var current bool
			if epoch, current = t.next(epoch, true); !current {
				return
			}
			for entry, err := range t.log.Tail(ctx, status.Last, nil) {
				if err != nil || !t.add(epoch, entry) {
					break
				}
			}
			if epoch, current = t.next(epoch, false); !current {
				return
			}
		}
		if !wait(ctx, look) {
			return
		}
	}
}

// next starts the epoch after the given one. It returns false if another reader has
// started.
func (t *tails) next(epoch uint64, ready bool) (uint64, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.epoch != epoch {
		return 0, false
	}
	return t.renew(ready), true
}

// add remembers an entry. It returns false if the epoch has ended.
func (t *tails) add(epoch uint64, entry outbox.Entry) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.epoch != epoch {
		return false
	}
	t.seq++
	if t.recent = append(t.recent, entry); len(t.recent) > 2*remembered {
		t.recent = append([]outbox.Entry(nil), t.recent[remembered:]...)
	}
	t.announce()
	return true
}

// now waits until there is a reader and returns its position.
func (t *tails) now(ctx context.Context) (place, bool) {
	for {
		t.mu.Lock()
		at, ready, changed := place{t.epoch, t.seq}, t.ready, t.changed
		t.mu.Unlock()
		if ready {
			return at, true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return place{}, false
		}
	}
}

// after returns the entries after a place, and a channel that is closed when there are
// more. It returns false if the entries are no longer remembered.
func (t *tails) after(at place) ([]outbox.Entry, <-chan struct{}, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	missing := t.seq - at.seq
	if at.epoch != t.epoch || missing > uint64(len(t.recent)) {
		return nil, nil, false
	}
	return t.recent[uint64(len(t.recent))-missing:], t.changed, true
}

// follow yields the entries after a stamp, each once and in order, and then waits for new
// ones. It ends without an error when ctx is done or the engine is closed, and with an
// error if it cannot serve the stamp. The caller has joined.
func (t *tails) follow(ctx context.Context, after outbox.Stamp) iter.Seq2[outbox.Entry, error] {
	return func(yield func(outbox.Entry, error) bool) {
		for {
			at, ok := t.now(ctx) // before reading, so that nothing is missed between
			if !ok {
				return
			}
			batch, err := t.log.List(ctx, after, 0)
			switch {
			case ctx.Err() != nil || errors.Is(err, fault.ErrClosed):
				return
			case err != nil && (sqldb.IsTransient(err) || errors.Is(err, context.DeadlineExceeded)): // temporary: retry
				if !wait(ctx, look) {
					return
				}
				continue
			case err != nil:
				yield(outbox.Entry{}, err)
				return
			case len(batch) == 0: // it has caught up
				if after, ok = t.live(ctx, at, after, yield); !ok {
					return
				}
			}
			for _, entry := range batch {
				if after = entry.Stamp; !yield(entry, nil) {
					return
				}
			}
		}
	}
}

// live yields the entries that the reader has found since a place, except entries up to a
// stamp. It returns the last stamp when the place is no longer remembered. It returns false
// if the stream has ended.
func (t *tails) live(ctx context.Context, at place, after outbox.Stamp, yield func(outbox.Entry, error) bool) (outbox.Stamp, bool) {
	for {
		entries, changed, ok := t.after(at)
		if !ok {
			return after, true
		}
		for _, entry := range entries {
			at.seq++
			if entry.Stamp.Compare(after) <= 0 {
				continue
			}
			if after = entry.Stamp; !yield(entry, nil) {
				return after, false
			}
		}
		if len(entries) > 0 {
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return after, false
		}
	}
}
