package outbox

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
)

const (
	// DefaultPoll is the default interval at which a Tail reads entries although no
	// wake-up has arrived.
	DefaultPoll = 20 * time.Second
	// firstPoll is the first interval on a database without wake-ups between processes.
	// It doubles up to DefaultPoll while no entry arrives.
	firstPoll = 250 * time.Millisecond
	// again is the interval while the database is not reachable.
	again = time.Second
)

// TailOptions configure a Tail. The zero value of every field is its default.
type TailOptions struct {
	// Poll is the interval at which to read entries although no wake-up has arrived.
	// Entries of this process are read immediately, and so are entries of other processes
	// on PostgreSQL and SQLite. MySQL has no wake-ups between processes. Default:
	// DefaultPoll. On MySQL, the interval is 250 ms after an entry and doubles up to
	// DefaultPoll while no entry arrives.
	Poll time.Duration
	// Batch is the maximum number of entries per read. Default: DefaultLimit.
	Batch int
}

func (o *TailOptions) withDefaults() (TailOptions, error) {
	var options TailOptions
	if o != nil {
		options = *o
	}
	if options.Poll < 0 {
		return options, fault.Invalidf("TailOptions.Poll", "must not be negative, got %v", options.Poll)
	}
	var err error
	options.Batch, err = edge.Limit("TailOptions.Batch", options.Batch, DefaultLimit, MaxLimit)
	return options, err
}

// Tail streams the entries after a stamp, each once and in order, and then waits for new
// entries. It ends without an error when ctx is done or the engine is closed. It ends
// with an error if entries cannot be read from the stamp (see List) or an entry cannot be
// decoded. A lost connection is not an error: Tail waits until the database is reachable
// again.
func (o *Outbox) Tail(ctx context.Context, after Stamp, options *TailOptions) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for batch, err := range o.batches(ctx, after, options) {
			if err != nil {
				yield(Entry{}, err)
				return
			}
			for _, entry := range batch {
				if !yield(entry, nil) {
					return
				}
			}
		}
	}
}

// batches streams the entries of Tail in the batches in which they are read. No batch is
// empty.
func (o *Outbox) batches(ctx context.Context, after Stamp, options *TailOptions) iter.Seq2[[]Entry, error] {
	return func(yield func([]Entry, error) bool) {
		opts, err := options.withDefaults()
		if err != nil {
			yield(nil, err)
			return
		}
		ctx, cancel := o.untilClosed(ctx)
		defer cancel()
		defer o.subscribe(topic, func(time.Time) { o.Wake() })()
		poll := pollOf(opts, o.hasRemoteWakeups())
		for ctx.Err() == nil {
			changed := o.wakeup() // before the read, so that no wake-up is lost
			batch, clock, err := o.list(ctx, after, opts.Batch)
			switch {
			case ctx.Err() != nil || o.stopped.Err() != nil:
				return
			case err != nil && !away(err):
				yield(nil, err)
				return
			case err != nil:
				o.wait(ctx, changed, again)
			case len(batch) == 0:
				o.idle(ctx, changed, &poll, clock)
			default:
				if !yield(batch, nil) {
					return
				}
				poll.restart()
				after = batch[len(batch)-1].Stamp
			}
		}
	}
}

// idle waits until entries may have arrived since the counter was clock: after a wake-up,
// or when the counter has changed.
func (o *Outbox) idle(ctx context.Context, changed <-chan struct{}, poll *poll, clock store.Clock) {
	for ctx.Err() == nil {
		if o.wait(ctx, changed, poll.next()) {
			return
		}
		var now store.Clock
		err := o.read(ctx, func() []sqldb.Stmt { return []sqldb.Stmt{o.store.ReadClock(&now)} })
		if err != nil || now != clock {
			return
		}
	}
}

// poll is the interval between two reads while no entry arrives.
type poll struct{ first, now, max time.Duration }

func pollOf(o TailOptions, remote bool) poll {
	switch {
	case o.Poll > 0:
		return poll{o.Poll, o.Poll, o.Poll}
	case remote:
		return poll{DefaultPoll, DefaultPoll, DefaultPoll}
	}
	return poll{firstPoll, firstPoll, DefaultPoll}
}

// next returns the interval and doubles it.
func (p *poll) next() time.Duration {
	now := p.now
	p.now = min(2*now, p.max)
	return now
}

func (p *poll) restart() { p.now = p.first }

// away reports whether an error means that the database is temporarily unreachable: the
// connection is lost, or the database does not respond in time.
func away(err error) bool {
	return sqldb.IsTransient(err) || errors.Is(err, context.DeadlineExceeded)
}

// untilClosed returns a context that is cancelled when ctx is cancelled or the outbox is
// closed.
func (o *Outbox) untilClosed(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(o.stopped, cancel)
	return ctx, func() { stop(); cancel() }
}

// wait waits for a wake-up, at most for poll. It reports whether one has arrived.
func (o *Outbox) wait(ctx context.Context, changed <-chan struct{}, poll time.Duration) bool {
	timer := o.clock.NewTimer(poll)
	defer timer.Stop()
	select {
	case <-changed:
		return true
	case <-timer.C():
	case <-ctx.Done():
	}
	return false
}
