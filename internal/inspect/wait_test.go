package inspect_test

import (
	"context"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/inspect"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/perduretest"
)

var late = fsm.Define("late", 1, nil, fsm.Step("only", func(_ context.Context, r *fsm.Run[int]) (fsm.Outcome, error) { return r.Done(nil), nil }, nil))

func TestWaitsAreKeptByEveryProcessOnceInAnInterval(t *testing.T) {
	t.Parallel()
	for _, name := range []string{enginetest.SQLite, enginetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock := perduretest.NewClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
			eng := enginetest.New(t, name).Open(t, &perdure.Options{Clock: clock})
			machines, err := fsm.New(eng, nil)
			enginetest.NoError(t, err)
			enginetest.NoError(t, machines.Register(late))
			i, began := inspect.New(eng, machines), clock.Now()
			run := func(n int, wait time.Duration) {
				_, err := fsm.StartMany(t.Context(), eng, late, make([]int, n), nil)
				enginetest.NoError(t, err)
				clock.Advance(wait)
				_, err = machines.Process(t.Context())
				enginetest.NoError(t, err)
			}
			run(3, 20*time.Second)
			enginetest.NoError(t, i.SampleWaits(t.Context(), "a"))
			run(2, time.Second) // in the same interval: kept with the next sample
			enginetest.NoError(t, i.SampleWaits(t.Context(), "a"))
			run(1, 10*time.Second)
			enginetest.NoError(t, i.SampleWaits(t.Context(), "a"))
			enginetest.NoError(t, i.SampleWaits(t.Context(), "a"))
			waits, err := i.Waits(t.Context(), began)
			if err != nil || len(waits) != 2 || waits[0].Total() != 3 || waits[1].Total() != 3 {
				t.Fatalf("%+v, %v", waits, err)
			}
			if got := waits[0].Quantile(0.5); got < 10*time.Second || got > 30*time.Second {
				t.Errorf("half of them waited %v", got)
			}
			if !waits[0].At.Before(waits[1].At) {
				t.Errorf("the intervals end at %v and %v", waits[0].At, waits[1].At)
			}
		})
	}
}
