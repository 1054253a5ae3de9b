package kinds

import (
	"context"
	"testing"
	"time"

	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/limit"
	"github.com/perdure/perdure/perduretest"
)

// An instance whose definition no process has is ready while the definition is paused, and has
// no worker as soon as the pause has ended.
func TestAnEndedPauseHidesNoMissingWorker(t *testing.T) {
	enginetest.Each(t, func(t *testing.T, db enginetest.Database) {
		eng := db.Open(t, nil)
		known := fsm.Define("order", 1, nil, fsm.Step("only", func(_ context.Context, r *fsm.Run[int]) (fsm.Outcome, error) { return r.Done(nil), nil }, nil))
		machines, err := fsm.New(eng, nil)
		enginetest.NoError(t, err)
		started, err := fsm.Start(t.Context(), eng, known, 0, nil)
		enginetest.NoError(t, err)
		want := func(status fsm.Status) {
			t.Helper()
			i, err := machines.Get(t.Context(), started.ID)
			enginetest.NoError(t, err)
			if i.Status != status {
				t.Errorf("the status is %s, want %s", i.Status, status)
			}
		}
		enginetest.NoError(t, limit.Pause(t.Context(), eng, "fsm:order", nil))
		perduretest.Drain(t, machines)
		want(fsm.Ready)
		enginetest.NoError(t, limit.Pause(t.Context(), eng, "fsm:order", &limit.PauseOptions{Until: time.Now().Add(-time.Hour)}))
		want(fsm.NoWorker)
	})
}
