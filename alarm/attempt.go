package alarm

import (
	"context"
	"fmt"

	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/retry"
)

// Attempts returns the attempts of an alarm since it was scheduled, oldest first: the
// newest retry.MaxRecorded attempts that did not succeed, and the running attempt. For
// the dead letter of a tick, it returns the attempts of that tick. It returns a
// *fault.NotFound if there is no such alarm.
func (a *Admin) Attempts(ctx context.Context, key Key) ([]retry.Attempt, error) {
	if err := key.find(); err != nil {
		return nil, err
	}
	var all, attempts []retry.Attempt
	var row store.Alarm
	err := a.readIn(ctx, func(tx sqldb.Tx) error {
		if err := tx.Run(ctx, a.rt.Store.GetAlarm(key.stored(), func(r store.Alarm) { row = r })); err != nil {
			return err
		}
		return tx.Run(ctx, a.rt.Store.ListAttempts(store.TriedAlarm(row.Item), func(t retry.Attempt) { all = append(all, t) }))
	})
	if err != nil {
		return nil, fmt.Errorf("read attempts of alarm: %w", err)
	}
	for _, t := range all {
		if !t.Ended.Before(row.Created) { // otherwise it is an attempt of an earlier alarm with the same key
			attempts = append(attempts, t)
		}
	}
	if Status(row.Status) == Running {
		attempts = append(attempts, retry.Attempt{
			Number: row.Attempts + row.Crashes + 1, Outcome: retry.Running, Worker: edge.Value(row.Worker), Began: edge.UTC(row.LastAttempt),
		})
	}
	return attempts, nil
}
