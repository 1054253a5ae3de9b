package alarm

import (
	"context"
	"fmt"

	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/retry"
)

// ChangeRetry stores a retry policy with all existing alarms of a type, including dead
// letters. It returns the number of alarms that it changed. Alarms that are scheduled
// later have the policy that they are scheduled with. A running alarm uses the new policy
// from its next attempt.
func (a *Alarms) ChangeRetry(ctx context.Context, typ string, p retry.Policy) (int64, error) {
	changed, err := a.runner.ChangeRetry(ctx, store.AlarmLane(typ), p)
	if err != nil {
		return changed, fmt.Errorf("change retry policy of alarms %s: %w", typ, err)
	}
	return changed, nil
}
