package fsm

import (
	"context"
	"fmt"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
)

// Retry lets an instance that failed, was quarantined or was cancelled go on from
// the step at which it ended, with all attempts before it. A parent that has
// counted its end does not count it again. It fails with *EndedError if the
// instance is done, with *LiveError if it has not ended, and with
// *fault.Duplicate if its unique key was taken meanwhile.
func (m *Machines) Retry(ctx context.Context, id string) error {
	if !validID(id) {
		return fault.Invalidf("instance id", "is not a UUID in lower case")
	}
	err := m.transact(ctx, func(tx sqldb.Tx) error {
		if err := m.revive(ctx, tx, id); err != nil {
			return err
		}
		return tx.Run(ctx, m.rt.Store.EnterQueue(id)...)
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

// revive takes the end of an instance back and occupies its unique key again.
func (m *Machines) revive(ctx context.Context, tx sqldb.Runner, id string) error {
	st := m.rt.Store
	var instance store.Instance
	var ended string
	var revived bool
	err := tx.Run(ctx, st.LockInstances([]string{id}),
		st.GetInstance(id, func(i *store.Instance) { instance = *i }), st.FinishedStatus(id, func(s string) { ended = s }))
	if err != nil {
		return err
	}
	if ended == "" {
		return &LiveError{ID: id}
	}
	if instance.UniqueKey != nil {
		if err := m.reoccupy(ctx, tx, instance); err != nil {
			return err
		}
	}
	if err := tx.Run(ctx, st.ReviveInstance(id, m.rt.Now(), &revived)...); err != nil {
		return err
	}
	if !revived {
		return &EndedError{ID: id, Status: Status(ended)}
	}
	return nil
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
