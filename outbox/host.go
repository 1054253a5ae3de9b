package outbox

import (
	"context"
	"time"

	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/core"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/wake"
)

// topic is the topic of wake-ups for new entries.
const topic = "outbox"

// Host has the parts of an engine that its outbox uses. Only Clock is required.
type Host struct {
	Clock clock.Clock
	// Hub carries wake-ups between processes. Nil: only Wake wakes readers.
	Hub *wake.Hub
	// Workers is the list to which processors are added.
	Workers *core.Workers
	// Update runs functions that handlers have added, in one unit of work, after check
	// has verified the lease in the same transaction. Nil: handlers cannot add functions.
	Update func(ctx context.Context, check func(run func(...sqldb.Stmt) error) error, with []func(tx any) error) error
	// Yield waits before the next attempt of a transaction that transactions of other nodes
	// of a cluster have overtaken. Nil: such a transaction is retried like any other.
	Yield func(ctx context.Context, attempt int, err error)
}

// now returns the time for a statement, or nil if the server's clock decides.
func (o *Outbox) now() store.Now {
	if o.store.DB().Dialect().ServerClock && clock.OfMachine(o.clock) {
		return nil
	}
	now := o.clock.Now().UTC().Truncate(time.Microsecond)
	return &now
}

// Announce wakes the readers of the outbox in all processes. On MySQL, other processes
// are not woken: they poll.
func (o *Outbox) Announce() {
	o.Wake()
	if o.host.Hub != nil {
		o.host.Hub.Publish(topic, time.Time{})
	}
}

// subscribe calls fn when entries may have arrived, in this process or in another process that sends wake-ups.
func (o *Outbox) subscribe(topic string, fn func(due time.Time)) (cancel func()) {
	if o.host.Hub == nil {
		return func() {}
	}
	return o.host.Hub.Subscribe(topic, fn)
}

// hasRemoteWakeups reports whether wake-ups of other processes arrive.
func (o *Outbox) hasRemoteWakeups() bool { return o.host.Hub != nil && o.host.Hub.HasRemote() }
