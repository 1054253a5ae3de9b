// Package work runs the items of one family of tables: due items are in ready, running items in
// leases, and finished items in finished. It claims items, returns the items of crashed
// processes, finds the items that crash their processes, and commits outcomes in groups. A kind
// of work provides the rest: how an item is executed, and the rows that an outcome writes to
// the kind's own tables.
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

// SealedDelay is the delay of an item that cannot be decrypted although this process has its
// key.
const SealedDelay = time.Minute

// Kind has the functions that a kind of work provides.
type Kind struct {
	// Name names an item of the kind in messages.
	Name string
	// Topic returns the topic to which dispatchers of a lane subscribe.
	Topic func(lane string) string
	// Begin executes a claimed item and decides about it once, by Runner.CommitOutcome or a similar
	// method. It need not wait for the commit.
	Begin func(ctx context.Context, i *Item)
	// Write returns the statements of the outcomes of a group. The leases are locked, and the
	// claims are valid.
	Write func(group []*Decided, wakeups *Wakeups) []sqldb.Stmt
	// Refused changes an outcome that the database rejects into a failure of the item. It
	// returns false if the outcome already is that. Nil: the item is postponed.
	Refused func(d *Decided, cause error) bool
	// Family returns the statements on items of the kind.
	Family func(*store.Store) *store.Family
	// Quarantine quarantines an item that has crashed at least MaxCrashes times.
	Quarantine func(ctx context.Context, tx sqldb.Tx, id, message string, wakeups *Wakeups) error
	// Next returns the statements that find the time until something is due in the lanes of a
	// queue, including suspects with a batch limit of at least least. found may be called more
	// than once.
	Next func(from store.Claim, least int, found func(time.Duration)) []sqldb.Stmt
	// Lanes returns the lanes of a queue whose items this process can run. Nil: the queue is
	// its only lane.
	Lanes func(queue string) []string

	// Share returns the name with which an item shares the slots of its queue with other items,
	// and the other system that it calls. Empty: it does not share.
	Share func(i *Item) (name, system string)
	// Spread is true if the items of a queue have different names. An item whose name has no
	// room is then moved to a lane of the queue, so that it does not hold up others. Kinds with
	// Lanes need no such lanes.
	Spread bool

	// The other fields are optional.

	// Rows are the statements of a kind whose claims are in its own rows. Such a kind needs no
	// Family, Quarantine and Lanes.
	Rows Rows

	// Prepare is called before each claim.
	Prepare func(ctx context.Context) error
	// Read returns statements that read rows of the kind for claimed items, in the transaction
	// of the claim.
	Read func(items []*Item) []sqldb.Stmt
	// Expire handles due times of the kind that are not items, such as the time limit of a
	// wait, in the transaction that returns expired claims.
	Expire func(queue string, wakeups *Wakeups) Expiry
	// Lock returns statements that lock the items of outcomes that change their rows, or of all
	// outcomes if all is true. It is called before the claims are verified. It is set if
	// cancellation locks the item instead of the lease.
	Lock func(group []*Decided, all bool) []sqldb.Stmt
	// Gone reports, after Lock, whether the item of an outcome was removed. Its claim then
	// counts as revoked.
	Gone func(d *Decided) bool
	// Verify returns statements that read the rows on which outcomes depend, after their leases
	// were locked. It may make outcomes void.
	Verify func(group []*Decided) []sqldb.Stmt
	// HandOver handles revoked claims that are now finished. It returns the items that become
	// ready and the leases that must be removed.
	HandOver func(ctx context.Context, tx sqldb.Runner, ended []store.Held) (ready, leases []string, err error)
	// Keep returns the statements that keep what items did before their claims were revoked and
	// they were handed over.
	Keep func(group []*Decided) []sqldb.Stmt
	// Sweep removes items whose retention has passed.
	Sweep func(ctx context.Context) error
}

// Expiry handles due times of a kind that are not items, once.
type Expiry struct {
	// Find has the statements that find due rows.
	Find []sqldb.Stmt
	// Handle handles the rows that were found, in the same transaction.
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
	// Queue is the queue for which it was claimed, Token the token of the claim.
	Queue, Token string
	// Claim is the claim in package core.
	Claim *core.Claim
	// Skipped is true if the claim has skipped items whose key this process does not have.
	Skipped bool
	// Own is data of the kind.
	Own any
	// Receipt is stored with the outcome of the item. Nil: nothing is stored.
	Receipt *store.Receipt

	parent  *string // the item that waits for the end of this item
	queue   *Queue
	suspect bool // it is a suspect; limit is its batch limit
	limit   int
}

// Options configure a Runner. All fields are required.
type Options struct {
	// Lease is the time for which a claim is valid without a heartbeat.
	Lease time.Duration
	// MaxCrashes is the number of crashes after which an item is quarantined.
	MaxCrashes int
	// SweepEvery is the shortest interval between two sweeps.
	SweepEvery time.Duration
	// OnError receives background errors. OnCrash is called for every crash of an item.
	OnError func(error)
	OnCrash func(Crash)
	// Random returns numbers in [0, 1) for delays.
	Random func() float64
}

// Crash describes an item whose process crashed while it ran.
type Crash struct {
	// ID is the public id, Name the name of the work.
	ID, Name    string
	Crashes     int
	Quarantined bool
}

// Runner runs the items of one kind in this process. Its queues share the committer of
// outcomes. It is safe for concurrent use.
type Runner struct {
	// Runtime is the engine's runtime.
	Runtime *host.Runtime
	// ID is the name of this process in leases.
	ID string

	eng     *perdure.Engine
	kind    Kind
	options Options
	outage  core.Outage
	lane    *core.Lane // lane of suspects
	queues  queues
	*committer
}

// New returns a runner without queues.
func New(eng *perdure.Engine, kind Kind, options Options) *Runner {
	return NewOn(host.Of(eng), eng, kind, options)
}

// NewOn is New with its own connections. Without an engine, outcomes have no functions of the
// application.
func NewOn(rt *host.Runtime, eng *perdure.Engine, kind Kind, options Options) *Runner {
	r := &Runner{Runtime: rt, ID: newID(), eng: eng, kind: kind, options: options}
	r.committer = newCommitter(r)
	r.lane = rt.Workers.NewLane(r.freed)
	return r
}

// newID returns a unique name for a claim or a process. It does not use the engine's
// Options.NewID, which may return anything.
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

// Publish wakes the dispatchers for the work that a transaction has made due.
func (r *Runner) Publish(wakeups *Wakeups) { wakeups.Publish(r.Runtime.Hub, r.kind.Topic) }

// Transact runs fn in a transaction on a connection that is reserved for claims. fn may run
// more than once on a cluster.
func (r *Runner) Transact(ctx context.Context, fn func(sqldb.Tx) error) error {
	return unit.Overtakable(ctx, r.Runtime.DB, func() error { return unit.Once(ctx, r.Runtime.DB, sqldb.Urgent, fn) })
}

// postponed returns the delay of an item that cannot run now for an external reason.
func (r *Runner) postponed() time.Duration { return core.Postponement(r.options.Random) }
