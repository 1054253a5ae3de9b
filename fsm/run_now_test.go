package fsm_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/retry"
)

// An operator runs an instance now that waits for another attempt or for its due time. Its
// attempts are kept: the retry policy still ends it.
func TestAnOperatorRunsWaitingInstancesNow(t *testing.T) {
	each(t, func(f *fixture) {
		ctx := enginetest.Context(t)
		d := machine("charge", func(context.Context, run) (fsm.Outcome, error) {
			return fsm.Outcome{}, errors.New("connection refused")
		}, with{Retry: retry.Fixed(3, time.Hour)})
		f.register(d)
		failing, later := start(f, d, 0, nil), start(f, d, 0, &fsm.StartOptions{Delay: 24 * time.Hour})
		f.drain()
		f.wantStatus(failing, fsm.Retrying)
		f.wantStatus(later, fsm.Scheduled)
		if n, err := f.MaxAttempts(ctx, f.get(failing)); n != 3 || err != nil {
			t.Errorf("attempts that the policy allows: %d, %v", n, err)
		}
		for _, id := range []string{failing, later, failing} {
			enginetest.NoError(t, f.RunNow(ctx, id))
			if due := f.get(id).Due; !due.Equal(f.clock.Now()) {
				t.Errorf("due at %v, want %v", due, f.clock.Now())
			}
		}
		f.drain()
		if i := f.get(failing); i.Status != fsm.Retrying || i.Failures != 2 || !i.Due.After(f.clock.Now()) {
			t.Errorf("after one run: %s with %d failures, due %v", i.Status, i.Failures, i.Due)
		}
		f.wantStatus(later, fsm.Retrying)
		enginetest.NoError(t, f.RunNow(ctx, failing))
		f.drain()
		f.wantStatus(failing, fsm.Failed)
		if refused := enginetest.As[*perdure.StateError](t, f.RunNow(ctx, failing)); refused.Status != string(fsm.Failed) {
			t.Errorf("refused because it is %s", refused.Status)
		}
		enginetest.As[*fault.NotFound](t, f.RunNow(ctx, "00000000-0000-7000-8000-000000000001"))
		enginetest.As[*fault.NotFound](t, f.RunNow(ctx, "x"))
	})
}

// An instance that waits for a signal, or runs, cannot be run now.
func TestOnlyWhatWaitsForATimeIsRunNow(t *testing.T) {
	each(t, func(f *fixture) {
		ctx := enginetest.Context(t)
		d := parker("parker", "go")
		f.register(d)
		id := start(f, d, 0, nil)
		f.drain()
		if refused := enginetest.As[*perdure.StateError](t, f.RunNow(ctx, id)); refused.Status != string(fsm.Waiting) {
			t.Errorf("refused because it is %s", refused.Status)
		}
		f.wantWait(id, fsm.ForSignal)
	})
}
