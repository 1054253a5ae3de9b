package fsm

import (
	"context"
	"fmt"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
)

// Retry reopens an instance that failed, was stopped, quarantined or cancelled. The
// instance continues as if it had not finished. A failed step receives the same signals
// again, with TimedOut as it was. An instance that was waiting waits again, for the rest
// of its time limit. Its attempts count from the start again, and it has the rest of its
// deadline. A parent that has counted its end does not count it again.
//
// Descendants that were finished together with the instance are reopened in the same way.
// An instance that was waiting for children waits for them again. A child whose unique
// key was occupied by another instance in the meantime stays cancelled. Retry returns
// when all are reopened. If ctx is done before that, Retry also returns nil: processes
// that serve state machines reopen the rest. If an operator retries only a child, a
// parent that has counted its end does not count it again.
//
// A deadline that has passed is removed. A pending delay or backoff keeps its due time.
//
// Retry returns a *perdure.StateError if the instance is done or not finished, and a
// *fault.Duplicate if another instance occupies its unique key.
func (a *Admin) Retry(ctx context.Context, id string) error {
	if !validID(id) {
		return unknown(id)
	}
	r := reopening{machines: a.machines, root: id}
	err := a.transact(ctx, func(tx sqldb.Tx) error {
		r.tx = tx
		return a.rt.Store.Act(ctx, tx, func() error {
			enter, err := r.one(ctx, id)
			if err != nil {
				return err
			}
			return tx.Run(ctx, enter...)
		})
	})
	if err != nil {
		return fmt.Errorf("retry instance %s: %w", id, err)
	}
	a.rt.Hub.PublishAll()
	if r.tree {
		a.machines.endChildren(ctx, id)
	}
	return nil
}

// reopening reopens instances in one transaction.
type reopening struct {
	machines *Machines
	tx       sqldb.Runner
	// root is the instance whose retry started this.
	root string
	tree bool // instances have children, which may have to be reopened
}

// one reopens the instance that the caller named. It returns the statements that put the
// instance back into its place.
func (r *reopening) one(ctx context.Context, id string) (enter []sqldb.Stmt, err error) {
	st := r.machines.rt.Store
	var instance store.Instance
	ended := Status("")
	err = r.tx.Run(ctx, st.LockInstances([]string{id}),
		st.GetInstance(id, func(i *store.Instance) { instance = *i }), st.FinishedStatus(id, func(s string) { ended = Status(s) }))
	switch {
	case err != nil:
		return nil, err
	case ended == "":
		return nil, stateError(id, live)
	case ended == Done:
		return nil, stateError(id, ended)
	}
	enter, taken, err := r.all(ctx, []store.Instance{instance})
	if owner, ok := taken[id]; ok && err == nil {
		err = &fault.Duplicate{Constraint: "unique key of instance " + owner, Err: fmt.Errorf("unique key %q is already in use", *instance.UniqueKey)}
	}
	return enter, err
}

// all reopens instances and occupies their unique keys again. The instances must be
// locked. It returns the statements that put the instances back into their places. taken
// has the instances whose unique key another instance owns, with that owner; they are not
// reopened.
func (r *reopening) all(ctx context.Context, instances []store.Instance) (enter []sqldb.Stmt, taken map[string]string, err error) {
	taken, err = r.occupy(ctx, instances)
	if err != nil {
		return nil, nil, err
	}
	var free []store.Instance
	var ids []string
	for _, i := range instances {
		if _, ok := taken[i.ID]; !ok {
			free, ids = append(free, i), append(ids, i.ID)
		}
	}
	if len(ids) == 0 {
		return nil, taken, nil
	}
	if err := r.tx.Run(ctx, r.machines.rt.Store.ReopenInstances(ids, r.machines.rt.Now())...); err != nil {
		return nil, nil, err
	}
	return r.places(free), taken, nil
}

// occupy claims the unique keys of instances. It returns the instances whose key another
// instance owns, with that owner.
func (r *reopening) occupy(ctx context.Context, instances []store.Instance) (taken map[string]string, err error) {
	st := r.machines.rt.Store
	var mine []store.Occupied
	var keys []store.UniqueKey
	for _, i := range instances {
		if i.UniqueKey != nil {
			key := store.UniqueKey{Name: *i.UniqueName, Key: *i.UniqueKey}
			mine, keys = append(mine, store.Occupied{UniqueKey: key, ID: i.ID}), append(keys, key)
		}
	}
	taken = map[string]string{}
	if len(keys) == 0 {
		return taken, nil
	}
	owners := map[store.UniqueKey]string{}
	err = r.tx.Run(ctx, st.EnterUniques(mine), st.UniqueOwners(keys, func(key store.UniqueKey, id string) { owners[key] = id }))
	for _, m := range mine {
		if owner := owners[m.UniqueKey]; owner != m.ID {
			taken[m.ID] = owner
		}
	}
	return taken, err
}

// places returns the statements that put instances back into their places: a wait, or
// their queues. A partition may have another head now. Its instances are queued, and they
// wait again when they are claimed.
func (r *reopening) places(instances []store.Instance) []sqldb.Stmt {
	st, now := r.machines.rt.Store, r.machines.rt.Now()
	var waiting, queued []string
	var parks []store.Park
	var barriers []store.Barrier
	var trees []store.TreeEnd
	for _, i := range instances {
		switch {
		case i.Wait == nil || i.Partition != nil:
			queued = append(queued, i.ID)
		case i.Wait.For == store.WaitedForSignals:
			waiting, parks = append(waiting, i.ID), append(parks, waitAgain(&i))
		default:
			waiting, barriers = append(waiting, i.ID), append(barriers, joinAgain(&i))
		}
		if i.Fanout > 0 {
			trees = append(trees, reopened(&i, r.root))
		}
	}
	var stmts []sqldb.Stmt
	if len(waiting) > 0 {
		stmts = append(stmts, st.ClearWaits(waiting))
	}
	if len(parks) > 0 {
		stmts = append(stmts, st.ParkInstances(parks, now, func(string) {})...)
	}
	if len(barriers) > 0 {
		stmts = append(stmts, st.RaiseBarriers(barriers, now))
	}
	if r.tree = r.tree || len(trees) > 0; len(trees) > 0 {
		stmts = append(stmts, st.InsertTreeEnds(trees, takeover, now))
	}
	if len(queued) > 0 {
		stmts = append(stmts, st.EnterQueues(queued)...)
	}
	return stmts
}
