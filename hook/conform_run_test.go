package hook_test

import (
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/hook"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/retry"
)

// A hook that waits for another attempt or for its due time can be run now. Its attempts
// are kept.
func (Conformance) AnOperatorRunsWaitingHooksNow(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	ctx := enginetest.Context(t)
	f.handle(t, "a", fail)
	policy := retry.Fixed(2, time.Hour)
	failing, later := f.trigger(t, "a", &hook.TriggerOptions{Retry: policy}), f.trigger(t, "a", &hook.TriggerOptions{Delay: 24 * time.Hour, Retry: policy})
	f.process(t, 1)
	f.is(t, failing, hook.Retrying)
	for _, id := range []string{failing, later} {
		enginetest.NoError(t, f.admin.RunNow(ctx, id))
		equal(t, "due", f.get(t, id).Due, f.clock.Now())
	}
	f.process(t, 2)
	equal(t, "attempts", f.is(t, failing, hook.Failed).Attempts, 2)
	equal(t, "attempts", f.is(t, later, hook.Retrying).Attempts, 1)
	equal(t, "status", enginetest.As[*perdure.StateError](t, f.admin.RunNow(ctx, failing)).Status, string(hook.Failed))
	enginetest.As[*fault.NotFound](t, f.admin.RunNow(ctx, "no such hook"))
}
