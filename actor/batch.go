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

// job is something that is to be done with one actor.
type job struct {
	ref Ref
	// spawn creates the actor first, unless it is there.
	spawn *store.NewActor
	// key is the idempotency key, if there is one.
	key string
	// sleeps leaves delays that are overdue where they are, and the actor
	// unloaded.
	sleeps bool
	// trace is the span that asked for it.
	trace *string
	// act is what an operator or a token does with it, or nil.
	act *audit.Act
	// aside says that the job is not the act of its context, but comes before it.
	aside bool
	// run does it. The actor is loaded, but for one that was just created.
	run func(t *turn) error

	seen *store.ActorKey // what the key led to before
	err  error
}

// transaction is the part of a unit of work that a batch needs.
type transaction interface {
	Context() context.Context
	// Attach records statements, Flush runs what was recorded.
	Attach(committed func(), stmts ...sqldb.Stmt) error
	Flush() error
}

var _ transaction = host.Unit(nil)

// batch moves actors in one transaction.
type batch struct {
	actors *Actors
	tx     transaction
	turns  map[Ref]*turn
	order  []*turn
	// had are the cached trees of actors, which the batch owns.
	had     map[Ref]*cached
	damages []Damage
	// foreign is true if there were actors whose key this process does not have.
	foreign bool
	// sealed cannot be opened by this process, strange are of another release.
	sealed, strange []store.ActorRef
	// pass are the delays that the batch fires, nil for one that serves callers.
	pass *pass
}

func (a *Actors) newBatch(tx transaction) *batch {
	return &batch{actors: a, tx: tx, turns: map[Ref]*turn{}, had: map[Ref]*cached{}}
}

// run runs statements now, in the transaction.
func (b *batch) run(stmts ...sqldb.Stmt) error {
	if err := b.tx.Attach(nil, stmts...); err != nil {
		return err
	}
	return b.tx.Flush()
}

// do moves the actors of the jobs and writes what came of it. Each job has its
// own error; the one that is returned is of the transaction.
func (b *batch) do(jobs []*job) error {
	if err := b.lock(jobs); err != nil {
		return err
	}
	for _, j := range jobs {
		j.err = b.perform(j)
		if sqldb.IsTransient(j.err) {
			return j.err
		}
	}
	return b.write()
}

// lock locks the actors and reads what is needed to move them, in one round
// trip where the driver can.
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

// locked notes an actor that the transaction has locked.
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

// takeCached takes the trees of actors out of the cache and returns the sequence of each,
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

// putBack returns the trees of actors that others have locked to the cache.
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

// perform does one job.
func (b *batch) perform(j *job) error {
	t := b.turns[j.ref]
	if t == nil {
		return notFound(j.ref)
	}
	t.trace = j.trace
	if j.sleeps {
		return j.run(t)
	}
	if err := b.load(t); err != nil {
		return err
	}
	if j.seen == nil { // what was handled before wakes nobody
		if err := t.wake(); err != nil {
			return err
		}
	}
	return j.run(t)
}

// write writes what the turns have to be written, set by set.
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
	if err := b.tx.Attach(b.tell(), stmts...); err != nil || len(w.stops) == 0 {
		return err
	}
	return effect.Stop(b.run, w.store, w.stops, w.now)
}

// remember caches the trees, after the commit. An actor that only a delay has moved is not
// cached if it was not before: passes over many of them would evict those that are used.
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

// damaged tells of a damage. The callback is the user's and may panic.
func (a *Actors) damaged(d Damage) {
	defer func() { _ = recover() }() // the last resort: nobody is left to tell
	a.options.OnDamage(d)
}

// tell returns what tells others of the changes, after the commit.
func (b *batch) tell() func() {
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
			due = earlier(due, now.Add(time.Duration(max(timer.Due-t.wall(), 0))*time.Millisecond))
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
