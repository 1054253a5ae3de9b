package fsm_test

import (
	"slices"
	"testing"

	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/test/enginetest"
)

// A queue that is served later is served by the dispatcher that runs already.
func TestAQueueThatIsServedLaterRuns(t *testing.T) {
	t.Parallel()
	enginetest.Each(t, func(t *testing.T, db enginetest.Database) {
		d := machine("late", done, with{Queue: "late"})
		f := live(t, db, nil, d)
		alarm, err := dispatch.NewWaker(f, nil)
		enginetest.NoError(t, err)
		alarm.Start()
		defer func() { enginetest.NoError(t, alarm.Stop(enginetest.Context(t))) }()
		before := start(f, d, 1, nil)
		for range 2 { // a second time changes nothing
			enginetest.NoError(t, f.ServeQueue("late", 3))
		}
		f.ends(before, fsm.Done)
		f.ends(start(f, d, 2, nil), fsm.Done)
		if got := f.Queues(); !slices.Equal(got, []string{fsm.DefaultQueue, "late"}) {
			t.Errorf("queues are %v", got)
		}
		enginetest.As[*fault.Invalid](t, f.ServeQueue("", 1))
		enginetest.As[*fault.Invalid](t, f.ServeQueue("other", -1))
	})
}
