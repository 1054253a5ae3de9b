package outbox

import (
	"context"
	"fmt"

	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
)

// Restart starts a new incarnation and returns it. An operator calls it once, before
// writers start, after the database was restored from a backup or failed over to a
// lagging replica. Otherwise, counters that consumers have already seen would be reused
// for other units. All later stamps are greater than all earlier stamps, including the
// stamps that the database lost.
func (o *Outbox) Restart(ctx context.Context, reason string) (Incarnation, error) {
	if err := edge.Text("reason", reason, 1024); err != nil {
		return Incarnation{}, err
	}
	var begun Incarnation
	err := o.write(ctx, func(ctx context.Context, tx sqldb.Tx) error {
		var old, now store.Clock
		if err := tx.Run(ctx, o.store.LockClock(&old), o.store.Restart(), o.store.ReadClock(&now)); err != nil {
			return err
		}
		begun = Incarnation{
			Number: now.Incarnation, After: NewStamp(old.Incarnation, old.Counter, 0),
			Reason: reason, Created: o.clock.Now().UTC(),
		}
		insert := o.store.InsertIncarnation(store.Incarnation{Number: begun.Number, After: begun.After[:], Reason: reason, Created: begun.Created})
		if err := tx.Run(ctx, insert); err != nil {
			return err
		}
		return o.store.RecordAct(ctx, tx)
	})
	if err != nil {
		return Incarnation{}, fmt.Errorf("start incarnation: %w", err)
	}
	return begun, nil
}
