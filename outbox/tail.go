package outbox

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/sqldb"
)

// DefaultPoll is the default interval at which a Tail reads entries of other processes.
const DefaultPoll = 250 * time.Millisecond

// TailOptions configure a Tail. The zero value of every field is its default.
type TailOptions struct {
	// Poll is the interval at which to read entries of other processes. Entries of this
	// process are read immediately. Default: DefaultPoll.
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
	if options.Poll == 0 {
		options.Poll = DefaultPoll
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
		for ctx.Err() == nil {
			changed := o.wakeup() // before the read, so that no wake-up is lost
			batch, err := o.List(ctx, after, opts.Batch)
			switch {
			case ctx.Err() != nil || o.stopped.Err() != nil:
				return
			case err != nil && !away(err):
				yield(nil, err)
				return
			case len(batch) == 0:
				o.wait(ctx, changed, opts.Poll)
			default:
				if !yield(batch, nil) {
					return
				}
				after = batch[len(batch)-1].Stamp
			}
		}
	}
}

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

func (o *Outbox) wait(ctx context.Context, changed <-chan struct{}, poll time.Duration) {
	timer := o.clock.NewTimer(poll)
	defer timer.Stop()
	select {
	case <-changed:
	case <-timer.C():
	case <-ctx.Done():
	}
}
