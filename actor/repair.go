package actor

import (
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure/internal/seal"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/statechart"
)

// repair recomputes the state of an actor with a damaged snapshot from the log. If that fails,
// the actor is quarantined.
func (b *batch) repair(t *turn, reason string) error {
	h, err := b.actors.replay(b.run, t.kind, t.ref, t.row.Sequence)
	var sealed *seal.SealedError
	var limit *statechart.LimitError
	if errors.As(err, &limit) && limit.Limit == statechart.LimitTime {
		return err // the log is intact: this process was too slow
	}
	if sqldb.IsTransient(err) || b.tx.Context().Err() != nil || errors.As(err, &sealed) {
		return err
	}
	if err != nil {
		return b.damage(t, fmt.Sprintf("%s, and the log cannot restore it: %v", reason, err))
	}
	raw, err := h.tree.Snapshot()
	if err != nil {
		return b.damage(t, reason)
	}
	b.damages = append(b.damages, Damage{Ref: t.ref, Reason: reason, Repaired: true})
	t.tree, t.repaired = h.tree, true
	t.recordState(raw)
	return nil
}

// keep returns the statements that store checkpoints and prune logs. An actor gets a checkpoint
// when it has made enough transitions since its last checkpoint.
func (b *batch) keep() ([]sqldb.Stmt, error) {
	var points []store.Checkpoint
	var pruned []store.ActorRef
	var before []int64
	for _, t := range b.order {
		if len(t.entries) == 0 || t.tree == nil || !t.checkpoint && !t.checkpointDue() {
			continue
		}
		timers, err := b.pending(t)
		if err != nil {
			return nil, err
		}
		points = append(points, store.Checkpoint{
			ActorRef: t.ref.stored(), Sequence: t.sequence, Machine: t.kind.options.Version,
			Snapshot: string(t.snapshot), Timers: *text(append([]statechart.Timer{}, timers...)), Checksum: t.checksum,
		})
		if t.kind.options.LogRetention > 0 {
			pruned, before = append(pruned, t.ref.stored()), append(before, t.sequence-int64(t.kind.options.LogRetention))
		}
	}
	var stmts []sqldb.Stmt
	stmts = set(stmts, points, b.actors.rt.Store.InsertCheckpoints)
	if len(pruned) > 0 {
		stmts = append(stmts, b.actors.rt.Store.PruneActorLogs(pruned, before)...)
	}
	return stmts, nil
}

// checkpointDue reports whether the transitions of the turn have reached the next checkpoint.
func (t *turn) checkpointDue() bool {
	every := int64(t.kind.options.LogRetention)
	return every > 0 && t.row.Sequence/every != t.sequence/every
}

// timeOf converts a machine's time to a time.Time.
func timeOf(ms int64) time.Time { return time.UnixMilli(ms).UTC() }
