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

// entryLog is the outbox as tails read it.
type entryLog interface {
	List(ctx context.Context, after outbox.Stamp, limit int) ([]outbox.Entry, error)
	Status(ctx context.Context) (outbox.Status, error)
	Tail(ctx context.Context, after outbox.Stamp, options *outbox.TailOptions) iter.Seq2[outbox.Entry, error]
}

// tails lets any number of streams follow the outbox with one reader. A stream reads
// from the database only until it has caught up, and again if it falls behind what is
// remembered. While there are no streams, there is no reader.
type tails struct {
	log     entryLog
	onError func(error)

	mu      sync.Mutex
	streams int
	stop    context.CancelFunc
	idle    sync.WaitGroup
	// epoch counts the starts and failures of readers: places of an earlier epoch
	// mean nothing.
	epoch   uint64
	ready   bool           // a reader follows the outbox
	recent  []outbox.Entry // the last ones that it has read
	seq     uint64         // how many it has read in this epoch
	changed chan struct{}  // closed with the next change
}

// place is where a stream has come to in an epoch.
type place struct{ epoch, seq uint64 }

func newTails(log entryLog, onError func(error)) *tails {
	return &tails{log: log, onError: onError, changed: make(chan struct{})}
}

// join adds a stream, with a reader if it is the first.
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

// renew begins an epoch. The caller holds the lock.
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

// read follows the outbox from its end. If that fails, it begins anew at the end; the
// streams find out in the database what that means for them.
func (t *tails) read(ctx context.Context, epoch uint64) {
	failed := false
	for {
		status, err := t.log.Status(ctx)
		if err != nil && ctx.Err() == nil && !failed {
			t.onError(err) // once: the database may be away for long
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

// next begins an epoch after one; false: another reader has begun.
func (t *tails) next(epoch uint64, ready bool) (uint64, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.epoch != epoch {
		return 0, false
	}
	return t.renew(ready), true
}

// add remembers an entry; false: the epoch has ended.
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

// now waits until there is a reader and returns how far it has come.
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

// after returns the entries after a place, and what tells of more; false: they are not
// remembered.
func (t *tails) after(at place) ([]outbox.Entry, <-chan struct{}, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	missing := t.seq - at.seq
	if at.epoch != t.epoch || missing > uint64(len(t.recent)) {
		return nil, nil, false
	}
	return t.recent[uint64(len(t.recent))-missing:], t.changed, true
}

// follow yields the entries after a stamp, each once and in order, and then waits for
// new ones. It ends without an error when ctx is done or the engine is closed, and with
// one when the stamp cannot be served. The caller has joined.
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
			case err != nil && (sqldb.IsTransient(err) || errors.Is(err, context.DeadlineExceeded)): // it comes back
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

// live yields the entries that the reader has found since a place, except those up to a
// stamp. It returns the last stamp when the place is not remembered any more; false: the
// stream has ended.
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
