package actor

import (
	"context"
	"fmt"

	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/statechart"
)

// Upgrade moves an actor of a stored statechart to the newest version of its machine. The new
// version must have the actor's current states; otherwise the error is a *fault.Invalid and
// nothing changes. Timers are handled as under KeepTimers. Actors of registered types are
// migrated at their next transition.
func (a *Actors) Upgrade(ctx context.Context, ref Ref, by Caller) error {
	if err := ref.find(); err != nil {
		return err
	}
	newest, err := a.newest(ctx, ref.Type)
	if err != nil {
		return fmt.Errorf("upgrade actor: %w", err)
	}
	j := &job{ref: ref, run: func(t *turn) error { return t.upgrade(newest, by) }}
	return a.operate(ctx, &operation{what: "upgrade actor", by: by, job: j})
}

func (t *turn) upgrade(to *kind, by Caller) error {
	if t.kind.options.Version >= to.options.Version {
		return nil
	}
	raw, err := t.tree.Snapshot()
	if err != nil {
		return err
	}
	tree, err := to.machine.Restore(raw)
	if err != nil {
		return err
	}
	pending, err := t.batch.pending(t)
	if err != nil {
		return err
	}
	t.kind, t.tree = to, tree
	return t.migrated(raw, pending, &by)
}

// migrate builds the tree of an actor whose machine has an earlier version.
func (b *batch) migrate(t *turn) error {
	raw := []byte(t.stored.Snapshot)
	if fn := t.kind.options.Migrate; fn != nil {
		var err error
		if raw, err = fn(t.row.Machine, raw); err != nil {
			return b.damage(t, fmt.Sprintf("migration from version %d: %v", t.row.Machine, err))
		}
	}
	tree, err := t.kind.machine.Restore(raw)
	if err != nil {
		return b.damage(t, fmt.Sprintf("snapshot of version %d does not match version %d: %v", t.row.Machine, t.kind.options.Version, err))
	}
	pending, err := b.pending(t)
	if err != nil {
		return err
	}
	t.tree = tree
	return t.migrated([]byte(t.stored.Snapshot), pending, nil)
}

// migrated records the new version of the actor's machine and gives the actor the timers of
// that version. before is the snapshot of the earlier version. The state is a checkpoint: the
// log cannot be replayed across it.
func (t *turn) migrated(before []byte, pending []statechart.Timer, by *Caller) error {
	t.checkpoint = true
	t.advance(t.nowMillis())
	versions := map[string]int64{"from": t.row.Machine, "to": t.kind.options.Version}
	e := entry{kind: EntryMigrate, event: versions, caller: by}
	_, err := t.step(e, func(now int64) (*statechart.Step, error) {
		return t.tree.Retime(now, before, pending, t.kind.options.MigrateTimers)
	})
	if err != nil {
		return t.unmigrated(err)
	}
	if !t.kind.options.SystemEvents || t.tree.Status() != statechart.Active {
		return nil
	}
	return t.system(EventMigrate)
}

// unmigrated handles a migration that failed. If the machine cannot compute its delays, the
// actor is quarantined. Other errors are errors of the database.
func (t *turn) unmigrated(err error) error {
	if t.batch.tx.Context().Err() != nil || sqldb.IsTransient(err) {
		return err
	}
	return t.batch.damage(t, fmt.Sprintf("timers of version %d: %v", t.kind.options.Version, err))
}
