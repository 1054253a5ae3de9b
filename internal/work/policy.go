package work

import (
	"context"
	"encoding/json"

	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/unit"
	"github.com/perdure/perdure/retry"
)

// retryBatch is the number of items that one transaction of ChangeRetry scans.
const retryBatch = 1000

// ChangeRetry stores a retry policy with all items of a lane, including failed items, and
// returns their number. It scans all items of the kind, in many transactions. A running item
// uses the policy from its next attempt on.
func (r *Runner) ChangeRetry(ctx context.Context, lane string, p retry.Policy) (changed int64, err error) {
	if err := p.Validate(); err != nil {
		return 0, err
	}
	text, err := json.Marshal(p)
	if err != nil {
		return 0, err
	}
	for after := store.FirstID; after != store.LastID; {
		until, n := store.LastID, int64(0)
		err := unit.Transact(ctx, r.Runtime.DB, sqldb.Write, func(tx sqldb.Tx) error {
			until = store.LastID
			if err := tx.Run(ctx, r.family().RetryBound(after, retryBatch, func(id string) { until = id })); err != nil {
				return err
			}
			return tx.Run(ctx, r.family().ChangeRetry(lane, after, until, string(text), p.MaxAttempts, &n))
		})
		if err != nil {
			return changed, err
		}
		changed, after = changed+n, until
	}
	return changed, nil
}
