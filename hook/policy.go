package hook

import (
	"context"
	"fmt"

	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/retry"
)

// ChangeRetry stores a retry policy with all existing hooks of a name, including dead
// letters. It returns the number of hooks that it changed. Hooks that are triggered later
// have the policy that they are triggered with. A running hook uses the new policy from
// its next attempt.
func (h *Hooks) ChangeRetry(ctx context.Context, name string, p retry.Policy) (int64, error) {
	changed, err := h.runner.ChangeRetry(ctx, store.HookLane(h.namespace, name), p)
	if err != nil {
		return changed, fmt.Errorf("change retry policy of hooks %s: %w", name, err)
	}
	return changed, nil
}
