package alarm_test

import (
	"context"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/alarm"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/perduretest"
)

// dispatcher is what both kinds of them are.
type dispatcher interface {
	Start()
	Stop(context.Context) error
}

// Both dispatchers drive alarms, and a change wakes them.
func (Conformance) DispatchersFireAlarms(t *testing.T, db enginetest.Database) {
	eng := db.Open(t, nil)
	for _, start := range []func(*alarm.Alarms) (dispatcher, error){
		func(a *alarm.Alarms) (dispatcher, error) { return dispatch.NewPoller(a, nil) },
		func(a *alarm.Alarms) (dispatcher, error) { return dispatch.NewWaker(a, nil) },
	} {
		alarms := newAlarms(t, eng, nil)
		fired := make(chan string, 10)
		ring, err := alarm.Handle(alarms, "ring", func(_ context.Context, id string) error { fired <- id; return nil }, nil)
		enginetest.NoError(t, err)
		d, err := start(alarms)
		enginetest.NoError(t, err)
		d.Start()
		ctx := enginetest.Context(t)
		enginetest.NoError(t, ring.Schedule(ctx, alarm.ID("now"), "now", nil))
		equal(t, "fired", <-fired, "now")
		enginetest.NoError(t, ring.Schedule(ctx, alarm.ID("moved"), "moved", &alarm.ScheduleOptions{Delay: time.Hour}))
		enginetest.NoError(t, alarms.FireNow(ctx, alarm.ID("moved")))
		equal(t, "fired", <-fired, "moved")
		enginetest.NoError(t, d.Stop(ctx))
	}
}

// The clock of the database decides what is due, not that of the machine.
func TestAMachineWhoseClockIsWrong(t *testing.T) {
	t.Parallel()
	db := enginetest.New(t, enginetest.Postgres)
	for _, skew := range []time.Duration{time.Hour, -time.Hour} {
		wrong := clock.Skewed(skew)
		alarms := newAlarms(t, db.Open(t, &perdure.Options{Clock: wrong}), nil)
		ring, err := alarm.Handle(alarms, "ring", func(context.Context, string) error { return nil }, nil)
		enginetest.NoError(t, err)
		enginetest.NoError(t, ring.Schedule(enginetest.Context(t), alarm.ID("soon"), "", &alarm.ScheduleOptions{Delay: 10 * time.Minute}))
		process(t, alarms, 0)
		next, err := alarms.NextWakeAt(enginetest.Context(t))
		enginetest.NoError(t, err)
		if wait := next.Sub(wrong.Now()); wait < 5*time.Minute || wait > 10*time.Minute {
			t.Fatalf("with a clock that is wrong by %v the next wake is in %v, want 10m", skew, wait)
		}
		enginetest.NoError(t, ring.Schedule(enginetest.Context(t), alarm.ID("soon"), "", nil))
		process(t, alarms, 1)
	}
}

func (Conformance) AClockThatIsSetBackFiresNothingTwice(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	f.handle(t, "tick", nil)
	key := f.schedule(t, "x", "tick", &alarm.ScheduleOptions{Every: time.Minute})
	f.clock.Advance(time.Minute)
	f.process(t, 1)
	f.clock.Set(noon)
	f.process(t, 0)
	f.clock.Set(noon.Add(time.Minute))
	f.process(t, 0)
	equal(t, "next", f.get(t, key).Due, noon.Add(2*time.Minute))
}

// A stop gives back what has not been fired, at no cost.
func TestAStopReleasesWhatWasClaimed(t *testing.T) {
	t.Parallel()
	for _, name := range databases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock := perduretest.NewClock(noon)
			db := enginetest.New(t, name)
			eng := db.Open(t, &perdure.Options{Clock: clock})
			alarms := newAlarms(t, eng, nil)
			started := make(chan struct{})
			slow, err := alarm.Handle(alarms, "slow", func(ctx context.Context, _ int) error {
				close(started)
				<-ctx.Done()
				return ctx.Err()
			}, nil)
			enginetest.NoError(t, err)
			enginetest.NoError(t, slow.Schedule(enginetest.Context(t), alarm.ID("x"), 1, nil))
			_, err = alarms.Start(enginetest.Context(t))
			enginetest.NoError(t, err)
			<-started
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			enginetest.NoError(t, alarms.Drain(ended))
			r, err := alarms.Get(enginetest.Context(t), alarm.ID("x"))
			enginetest.NoError(t, err)
			equal(t, "status", r.Status, alarm.Ready)
			equal(t, "attempts", r.Attempts+r.Crashes, 0)
		})
	}
}
