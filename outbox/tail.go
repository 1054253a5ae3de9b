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

// DefaultPoll is how often a Tail looks for entries of other processes.
const DefaultPoll = 250 * time.Millisecond

// TailOptions configure a Tail. The zero value of every field is its default.
type TailOptions struct {
	// Poll is how often to look for entries of other processes; those of this
	// process are seen at once. Default: DefaultPoll.
	Poll time.Duration
	// Batch is how many entries to read at a time. Default: DefaultLimit.
	Batch int
}

func (o *TailOptions) withDefaults() (TailOptions, error) {
	var options TailOptions
	if o != nil {
		options = *o
	}
	if options.Poll < 0 {
		return options, fault.Invalidf("TailOptions.Poll", "is negative")
	}
	if options.Poll == 0 {
		options.Poll = DefaultPoll
	}
	var err error
	options.Batch, err = edge.Limit("TailOptions.Batch", options.Batch, DefaultLimit, MaxLimit)
	return options, err
}

// Tail streams the entries after a stamp, each once and in order, and then
// waits for new ones. It ends without an error when ctx is done or the engine
// is closed, and with one when the stamp cannot be served (see List) or an
// entry cannot be read. A lost connection is not an error: Tail waits for the
// database to come back.
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

// batches streams what Tail streams as it is read: no batch is empty.
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
			changed := o.wakeup() // before reading, so that nothing slips between
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

// away reports whether an error means that the database cannot be reached just
// now: the connection is lost, or it does not answer in time.
func away(err error) bool {
	return sqldb.IsTransient(err) || errors.Is(err, context.DeadlineExceeded)
}

// untilClosed returns a context that ends with ctx or with the outbox.
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
