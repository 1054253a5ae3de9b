package fsm

import (
	"context"
	"fmt"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
)

// Retry takes the end of an instance back that failed, was stopped, quarantined or
// cancelled. The instance continues with exactly the run that it would have had: a
// step that failed is given the same signals again, with TimedOut as it was, and an
// instance that was waiting waits again, for the rest of its time limit. It has all
// attempts before it, and what was left of its deadline. A parent that has counted
// its end does not count it again.
//
// Children that ended with a cancelled instance stay cancelled: a parent that was
// waiting for them continues at once with the step after the join. Retry them one by
// one if they are needed. A deadline that has passed is removed. A pending delay or
// backoff keeps its due time.
//
// Retry fails with *EndedError if the instance is done, with *LiveError if it has
// not ended, and with *fault.Duplicate if its unique key was taken since.
func (m *Machines) Retry(ctx context.Context, id string) error {
	if !validID(id) {
		return fault.Invalidf("instance id", "is not a UUID in lower case")
	}
	err := m.transact(ctx, func(tx sqldb.Tx) error {
		enter, err := m.revive(ctx, tx, id)
		if err != nil {
			return err
		}
		return tx.Run(ctx, enter...)
	})
	if err != nil {
		return fmt.Errorf("retry instance %s: %w", id, err)
	}
	m.rt.Hub.PublishAll()
	return nil
}

// LiveError says that an instance has not ended.
type LiveError struct{ ID string }

func (e *LiveError) Error() string { return fmt.Sprintf("instance %q has not ended", e.ID) }

// revive takes the end of an instance back and occupies its unique key again. It
// returns the statements that put the instance where it was.
func (m *Machines) revive(ctx context.Context, tx sqldb.Runner, id string) (enter []sqldb.Stmt, err error) {
	st := m.rt.Store
	var instance store.Instance
	var ended string
	var revived bool
	err = tx.Run(ctx, st.LockInstances([]string{id}),
		st.GetInstance(id, func(i *store.Instance) { instance = *i }), st.FinishedStatus(id, func(s string) { ended = s }))
	if err != nil {
		return nil, err
	}
	if ended == "" {
		return nil, &LiveError{ID: id}
	}
	if instance.UniqueKey != nil {
		if err := m.reoccupy(ctx, tx, instance); err != nil {
			return nil, err
		}
	}
	if err := tx.Run(ctx, st.ReviveInstance(id, m.rt.Now(), &revived)...); err != nil {
		return nil, err
	}
	if !revived {
		return nil, &EndedError{ID: id, Status: Status(ended)}
	}
	if w := instance.Wait; w != nil && w.For == store.WaitedForSignals && instance.Partition == nil {
		return append([]sqldb.Stmt{st.ClearWaits([]string{id})}, st.ParkInstances([]store.Park{waitAgain(&instance)}, m.rt.Now(), func(string) {})...), nil
	}
	// A partition may have another head now: the instance queues up, and waits
	// again when it is claimed.
	return st.EnterQueue(id), nil
}

func (m *Machines) reoccupy(ctx context.Context, tx sqldb.Runner, i store.Instance) error {
	key := store.UniqueKey{Name: *i.UniqueName, Key: *i.UniqueKey}
	owner := ""
	err := tx.Run(ctx, m.rt.Store.EnterUnique(store.Occupied{UniqueKey: key, ID: i.ID}),
		m.rt.Store.UniqueOwners([]store.UniqueKey{key}, func(_ store.UniqueKey, id string) { owner = id }))
	if err == nil && owner != i.ID {
		err = &fault.Duplicate{Constraint: "unique key of instance " + owner, Err: fmt.Errorf("unique key %q is taken", key.Key)}
	}
	return err
}
