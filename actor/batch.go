package actor

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure/internal/audit"
	"github.com/perdure/perdure/internal/effect"
	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
)

// job is one operation on one actor.
type job struct {
	ref Ref
	// spawn creates the actor first, unless it exists.
	spawn *store.NewActor
	// key is the idempotency key, if there is one.
	key string
	// sleeps leaves overdue timers pending and does not load the actor.
	sleeps bool
	// trace is the span of the request that caused the job.
	trace *string
	// act is the audited act of an operator or API token, or nil.
	act *audit.Act
	// aside is true if the job runs before the audited act of its context and is not that act.
	aside bool
	// run performs the operation. The actor is loaded, unless it was just created.
	run func(t *turn) error

	seen *store.ActorKey // the stored result of the key, if it was handled before
	err  error
}

// transaction is the part of a unit of work that a batch needs.
type transaction interface {
	Context() context.Context
	// Attach records statements. Flush runs the recorded statements.
	Attach(committed func(), stmts ...sqldb.Stmt) error
	Flush() error
}

var _ transaction = host.Unit(nil)

// batch runs the transitions of several actors in one transaction.
type batch struct {
	actors *Actors
	tx     transaction
	turns  map[Ref]*turn
	order  []*turn
	// had holds the cached trees that the batch has taken from the cache and owns.
	had     map[Ref]*cached
	damages []Damage
	// foreign is true if the batch met actors whose encryption key this process does not have.
	foreign bool
	// sealed are actors that this process cannot decrypt. strange are actors of another
	// release.
	sealed, strange []store.ActorRef
	// pass holds the timers that the batch fires. It is nil for a batch that serves callers.
	pass *pass
}

func (a *Actors) newBatch(tx transaction) *batch {
	return &batch{actors: a, tx: tx, turns: map[Ref]*turn{}, had: map[Ref]*cached{}}
}

// run runs statements immediately, in the transaction.
func (b *batch) run(stmts ...sqldb.Stmt) error {
	if err := b.tx.Attach(nil, stmts...); err != nil {
		return err
	}
	return b.tx.Flush()
}

// do performs the jobs and writes their results. Each job has its own error; the returned error
// is the error of the transaction.
func (b *batch) do(jobs []*job) error {
	if err := b.lock(jobs); err != nil {
		return err
	}
	for _, j := range jobs {
		j.err = b.perform(j)
		if sqldb.IsTransient(j.err) || errors.Is(j.err, errAlone) {
			return j.err
		}
	}
	return b.write()
}

// lock locks the actors and reads what their transitions need. It takes one round trip if the
// driver supports that.
func (b *batch) lock(jobs []*job) error {
	var refs []store.ActorRef
	var enter []store.NewActor
	var keys []store.ActorKey
	for _, j := range jobs {
		j.seen = nil
		if j.spawn != nil {
			enter = append(enter, *j.spawn)
		}
		if j.key != "" {
			keys = append(keys, store.ActorKey{ActorRef: j.ref.stored(), Key: j.key})
		}
		refs = append(refs, j.ref.stored())
	}
	refs = sorted(refs)
	rt := b.actors.rt
	var stmts []sqldb.Stmt
	if len(enter) > 0 {
		stmts = append(stmts, rt.Store.EnterActors(enter, rt.Now()))
	}
	stmts = append(stmts, rt.Store.LockActors(refs, b.takeCached(refs), rt.Now(), b.locked), b.readDue(refs))
	if len(keys) > 0 {
		stmts = append(stmts, rt.Store.ListActorKeys(keys, func(k store.ActorKey) { keySeen(jobs, k) }))
	}
	return b.run(stmts...)
}

func keySeen(jobs []*job, k store.ActorKey) {
	for _, j := range jobs {
		if j.key == k.Key && j.ref == refOf(k.ActorRef) {
			j.seen = &k
		}
	}
}

func sorted(refs []store.ActorRef) []store.ActorRef {
	slices.SortFunc(refs, func(x, y store.ActorRef) int {
		return cmp.Or(strings.Compare(x.Type, y.Type), strings.Compare(x.ID, y.ID))
	})
	return slices.Compact(refs)
}

// locked records an actor that the transaction has locked.
func (b *batch) locked(row store.Actor) {
	ref := refOf(row.ActorRef)
	if b.turns[ref] != nil {
		return
	}
	t := &turn{batch: b, ref: ref, row: row, stored: row.Snapshot, found: true, sequence: row.Sequence, now: row.Updated.UnixMilli(), status: Status(row.Status)}
	if row.Sequence == 0 {
		t.now = 0
	}
	b.turns[ref] = t
	b.order = append(b.order, t)
}

// takeCached takes the trees of actors out of the cache. It returns the sequence of each actor,
// -1 for an actor that is not in the cache.
func (b *batch) takeCached(refs []store.ActorRef) []int64 {
	has := make([]int64, len(refs))
	for i, r := range refs {
		has[i] = -1
		if c := b.actors.cache.take(refOf(r)); c != nil {
			b.had[c.ref], has[i] = c, c.sequence
		}
	}
	return has
}

// putBack returns trees to the cache whose actors are locked by other transactions.
func (b *batch) putBack(refs []store.ActorRef) {
	for _, r := range refs {
		ref := refOf(r)
		if c := b.had[ref]; c != nil && b.turns[ref] == nil {
			b.actors.cache.put(c)
			delete(b.had, ref)
		}
	}
}

// readDue returns the statement that reads the due timers of locked actors.
func (b *batch) readDue(refs []store.ActorRef) sqldb.Stmt {
	rt := b.actors.rt
	return rt.Store.DueTimers(refs, maxChain, rt.Now(), func(d store.ActorTimer) {
		t := b.turns[refOf(d.ActorRef)]
		switch {
		case t == nil || !b.fires(d):
		case d.Sealed != nil:
			t.sealedTimer = d.Sealed
		default:
			t.dueTimer(d)
		}
	})
}

// stored reads the snapshot of an actor.
func (b *batch) stored(ref Ref) (*store.Snapshot, error) {
	var found *store.Snapshot
	err := b.run(b.actors.rt.Store.GetSnapshot(ref.stored(), func(s *store.Snapshot) { found = s }))
	switch {
	case err != nil:
	case found == nil:
		err = errors.New("actor has no snapshot")
	default:
		err = found.Sealed
	}
	return found, err
}

// errAlone reports that a job needs a transaction without the other jobs of its group.
var errAlone = errors.New("job needs its own transaction")

// perform does one job. A spawn enters the row of its actor before the jobs of the group run:
// until it has run, the actor does not exist for other jobs.
func (b *batch) perform(j *job) error {
	t := b.turns[j.ref]
	switch {
	case t == nil && j.spawn != nil: // an earlier job of the group has deleted the actor
		return errAlone
	case t == nil, t.sequence == 0 && j.spawn == nil:
		return notFound(j.ref)
	}
	t.trace = j.trace
	if j.sleeps {
		return j.run(t)
	}
	if err := b.load(t); err != nil {
		return err
	}
	if j.seen == nil { // a duplicate event does not wake the actor
		if err := t.wake(); err != nil {
			return err
		}
	}
	return j.run(t)
}

// write writes the changes of the turns, one statement for each set.
func (b *batch) write() error {
	w := newWriting(b.actors.rt.Store, b.actors.rt.Now(), len(b.order))
	for _, t := range b.order {
		w.add(t)
	}
	stmts := b.postpone(w.stmts())
	more, err := b.keep()
	if err != nil {
		return err
	}
	if stmts = append(stmts, more...); len(stmts) == 0 {
		return nil
	}
	if err := b.tx.Attach(b.publisher(), stmts...); err != nil || len(w.stops) == 0 {
		return err
	}
	return effect.Stop(b.run, w.store, w.stops, w.now)
}

// remember caches the trees after the commit. An actor that only a timer has moved is cached
// only if it was cached before. Otherwise passes over many actors would evict the actors in
// use.
func (b *batch) remember() {
	for _, t := range b.order {
		if t.tree == nil || !t.cached || b.pass != nil && b.had[t.ref] == nil {
			continue
		}
		size := len(t.snapshot)
		if had := b.had[t.ref]; size == 0 && had != nil {
			size = had.size
		} else if size == 0 && t.stored != nil {
			size = len(t.stored.Snapshot)
		}
		b.actors.cache.put(&cached{
			ref: t.ref, incarnation: t.row.Incarnation, sequence: t.sequence, machine: t.kind.options.Version, tree: t.tree, size: size,
		})
	}
}

// damaged reports a damage to the OnDamage callback, which may panic.
func (a *Actors) damaged(d Damage) {
	defer func() { _ = recover() }() // last resort: there is no other receiver for errors
	a.options.OnDamage(d)
}

// publisher returns the function that publishes the changes after the commit.
func (b *batch) publisher() func() {
	hub, now := b.actors.rt.Hub, b.actors.rt.Clock.Now()
	var due time.Time
	topics := map[string]bool{}
	for _, t := range b.order {
		if !t.moved() {
			continue
		}
		topics[watchTopic(t.ref)] = true
		if len(t.hooks) > 0 {
			due = earlier(due, now)
		}
		for _, timer := range t.timers.put {
			due = earlier(due, now.Add(time.Duration(max(timer.Due-t.nowMillis(), 0))*time.Millisecond))
		}
	}
	return func() {
		if !due.IsZero() {
			hub.Publish(topic, due)
		}
		for name := range topics {
			hub.Publish(name, time.Time{})
		}
		for _, d := range b.damages {
			b.actors.damaged(d)
		}
	}
}

func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}
