package alarm

import (
	"context"
	"fmt"
	"time"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/sqldb"
)

// purgeBatch is the number of alarms that one transaction removes.
const purgeBatch = 500

// PurgeDead removes dead letters: failed or quarantined alarms whose last attempt was due
// longer than age ago. It returns the number of removed alarms. It keeps recurring
// alarms; Cancel removes them.
func (a *Admin) PurgeDead(ctx context.Context, age time.Duration) (int64, error) {
	if age < 0 {
		return 0, fault.Invalidf("age", "must not be negative, got %v", age)
	}
	for total := int64(0); ; {
		var items []string
		err := a.transact(ctx, sqldb.Write, func(tx sqldb.Tx) error {
			items = nil
			st := a.rt.Store
			if err := tx.Run(ctx, st.DeadAlarms(age, purgeBatch, a.rt.Now(), func(item string) { items = append(items, item) })); err != nil || len(items) == 0 {
				return err
			}
			if err := tx.Run(ctx, st.RemoveAlarms(items, func(string) {})...); err != nil {
				return err
			}
			return st.RecordRemoved(ctx, tx, a.rt.Clock.Now(), int64(len(items)))
		})
		if err != nil {
			return total, fmt.Errorf("purge alarms: %w", err)
		}
		if total += int64(len(items)); len(items) < purgeBatch {
			return total, nil
		}
	}
}

// sweep removes dead letters whose retention is over.
func (a *Alarms) sweep(ctx context.Context) error {
	if a.options.DeadRetention < 0 {
		return nil
	}
	_, err := a.PurgeDead(ctx, a.options.DeadRetention)
	return err
}
