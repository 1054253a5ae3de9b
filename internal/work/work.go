// Package work runs the items of one family of tables: what is due is in ready, what
// runs in leases, and what has ended in finished. It claims items, returns those of
// crashed processes, finds the items that crash their processes, and commits outcomes in
// groups. A kind of work brings the rest: how an item is executed, and the rows of its
// own that an outcome writes.
package work

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/core"
	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/unit"
)

// SealedDelay is the time that an item waits that cannot be decrypted although this process
// has its key.
const SealedDelay = time.Minute

// Kind is everything that a kind of work brings.
type Kind struct {
	// Name names an item of the kind in messages.
	Name string
	// Topic returns the topic that dispatchers of a lane listen to.
	Topic func(lane string) string
	// Begin executes a claimed item and decides about it by Runner.Settle or a similar
	// method, once. It need not wait for that.
	Begin func(ctx context.Context, i *Item)
	// Write returns the statements of the outcomes of a group. The leases are locked, and
	// the claims are held.
	Write func(group []*Decided, news *News) []sqldb.Stmt
	// Refused changes an outcome that the database refuses into the end of the item. It
	// returns false if the outcome is that already. Nil: the item waits for a while.
	Refused func(d *Decided, cause error) bool
	// Family returns the statements on items of the kind.
	Family func(*store.Store) *store.Family
	// Quarantine ends an item that has crashed too many processes.
	Quarantine func(ctx context.Context, tx sqldb.Tx, id, message string, news *News) error
	// Next returns the statement that finds how long it is until something is due in a
	// queue, for suspects with a batch limit of at least least. found may be called more
	// than once.
	Next func(queue string, least int, found func(time.Duration)) []sqldb.Stmt
	// Lanes returns the lanes of a queue that this process can run items of. Nil: the
	// queue is the only one.
	Lanes func(queue string) []string

	// The others are optional.

	// Rows are the statements of a kind whose claims are in its own rows. Then it needs no
	// Family, Quarantine and Lanes.
	Rows Rows

	// Prepare is called before each claim.
	Prepare func(ctx context.Context) error
	// Read returns statements that read rows of the kind for claimed items, in the
	// transaction of the claim.
	Read func(items []*Item) []sqldb.Stmt
	// Expire returns what handles due times of the kind that are not items, such as the
	// time limit of a wait, in the transaction that returns expired claims.
	Expire func(queue string, news *News) Expiry
	// Lock returns statements that lock the items of outcomes that change their rows, or
	// of all if that is asked for. It is called before the claims are verified, if
	// cancellation does not lock the lease but the item.
	Lock func(group []*Decided, all bool) []sqldb.Stmt
	// Gone reports, after Lock, whether the item of an outcome was removed. Its claim counts
	// as taken away then.
	Gone func(d *Decided) bool
	// Verify returns statements that read what outcomes depend on, after their leases
	// were locked. It may make outcomes void.
	Verify func(group []*Decided) []sqldb.Stmt
	// HandOver handles claims that were taken away and have ended now. It returns the
	// items that become ready and the leases that are to be removed.
	HandOver func(ctx context.Context, tx sqldb.Runner, ended []store.Held) (ready, leases []string, err error)
	// Sweep removes items whose retention is over.
	Sweep func(ctx context.Context) error
}

// Expiry handles due times of a kind that are not items, once.
type Expiry struct {
	// Find returns the statements that find what is due.
	Find []sqldb.Stmt
	// Handle handles what was found, in the same transaction.
	Handle func(ctx context.Context, tx sqldb.Tx) error
	// Committed is called after the commit.
	Committed func()
}

// Item is a work item that this process has claimed.
type Item struct {
	// ID is the id of the item.
	ID string
	// Row is the row of the kind's own table.
	Row any
	// Queue is the queue that it was claimed for, Token that of the claim.
	Queue, Token string
	// Claim is the claim as the core knows it.
	Claim *core.Claim
	// Skipped is true if the claim has skipped items whose key is not known here.
	Skipped bool
	// Own belongs to the kind.
	Own any

	parent  *string // the item that waits for its end
	queue   *Queue
	suspect bool // it crashed before; limit is its batch limit
	limit   int
}

// Options configure a Runner. All fields are needed.
type Options struct {
	// Lease is the time that a claim is held without a heartbeat.
	Lease time.Duration
	// MaxCrashes is the number of crashes after which an item is quarantined.
	MaxCrashes int
	// SweepEvery is the least time between two sweeps.
	SweepEvery time.Duration
	// OnError receives errors that have no caller, OnCrash items whose process crashed.
	OnError func(error)
	OnCrash func(Crash)
	// Random returns numbers in [0, 1) for delays.
	Random func() float64
}

// Crash describes an item whose process crashed while it ran.
type Crash struct {
	// ID is the id that users know, Name the name of the work.
	ID, Name    string
	Crashes     int
	Quarantined bool
}

// Runner runs the items of one kind in this process. Its queues share the committer of
// outcomes. It is safe for concurrent use.
type Runner struct {
	// Runtime is that of the engine.
	Runtime *host.Runtime
	// ID is the name of this process in leases.
	ID string

	eng     *perdure.Engine
	kind    Kind
	options Options
	outage  core.Outage
	lane    *core.Lane // of suspects
	queues  queues
	*committer
}

// New returns a runner without queues.
func New(eng *perdure.Engine, kind Kind, options Options) *Runner {
	return NewOn(host.Of(eng), eng, kind, options)
}

// NewOn is New on connections of their own. Without an engine, outcomes have no functions
// of the application.
func NewOn(rt *host.Runtime, eng *perdure.Engine, kind Kind, options Options) *Runner {
	r := &Runner{Runtime: rt, ID: newID(), eng: eng, kind: kind, options: options}
	r.committer = newCommitter(r)
	r.lane = rt.Workers.NewLane(r.freed)
	return r
}

// newID returns a name for a claim or a process that no other has. It is not one of
// Options.NewID of the engine, which may be anything.
func newID() string { return uuid.Must(uuid.NewV7()).String() }

// NewID returns a new id of an item.
func NewID() string { return newID() }

func (r *Runner) newToken() string { return newID() }

// MayReap reports whether expired leases of other processes may be reaped.
func (r *Runner) MayReap() bool {
	return r.outage.Over(r.Runtime.Clock.Now(), r.options.Lease)
}

// family returns the statements on items of the kind.
func (r *Runner) family() *store.Family { return r.kind.Family(r.Runtime.Store) }

// Publish tells the dispatchers of what a transaction has made due.
func (r *Runner) Publish(news *News) { news.Publish(r.Runtime.Hub, r.kind.Topic) }

// Transact runs fn in a transaction on a connection that is kept for claims.
func (r *Runner) Transact(ctx context.Context, fn func(sqldb.Tx) error) error {
	return unit.Once(ctx, r.Runtime.DB, sqldb.Urgent, fn)
}

// postponed returns the delay of an item that cannot be run now for a reason that is not
// its own.
func (r *Runner) postponed() time.Duration { return core.Postponement(r.options.Random) }
