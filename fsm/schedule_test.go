package fsm_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/fsm"
)

// counting returns a machine that counts its runs.
func counting(name string) (*fsm.Definition[int], *atomic.Int64) {
	var runs atomic.Int64
	return fsm.Define(name, 1, nil, fsm.Step("only", func(_ context.Context, r *fsm.Run[int]) (fsm.Outcome, error) {
		runs.Add(1)
		return r.Done(r.State), nil
	}, nil)), &runs
}

func (f *fixture) schedule(name, spec string, d *fsm.Definition[int], options *fsm.ScheduleOptions) {
	f.t.Helper()
	if err := fsm.SetSchedule(f.t.Context(), f.eng, name, spec, d, 7, options); err != nil {
		f.t.Fatal(err)
	}
}

func TestScheduleFiresEveryTickOnce(t *testing.T) {
	each(t, func(f *fixture) {
		d, runs := counting("report")
		f.register(d)
		f.schedule("hourly", "0 * * * *", d, nil)
		for hour := range 3 {
			f.after(59 * time.Minute)
			if got := runs.Load(); got != int64(hour) {
				t.Fatalf("%d runs a minute before tick %d", got, hour+1)
			}
			f.after(time.Minute)
			f.schedule("hourly", "0 * * * *", d, nil) // as a process does that starts
			f.drain()
		}
		if got := runs.Load(); got != 3 {
			t.Errorf("%d runs in 3 hours", got)
		}
		all, err := f.Schedules(t.Context())
		if err != nil || len(all) != 1 || all[0].Text == "" || !all[0].Next.Equal(f.clock.Now().Add(time.Hour)) {
			t.Errorf("schedules: %+v, %v", all, err)
		}
	})
}

// Case 61, missed ticks: three hours without a process, then all at once. DST is in
// the tests of internal/cron.
func TestScheduleMakesUpForMissedTicks(t *testing.T) {
	each(t, func(f *fixture) {
		want := map[perdure.Missed]int64{perdure.MissedSkip: 0, perdure.MissedOnce: 1, perdure.MissedAll: 2}
		counts := map[perdure.Missed]*atomic.Int64{}
		for missed := range want {
			d, runs := counting(string(missed))
			f.register(d)
			counts[missed] = runs
			f.schedule(string(missed), "0 * * * *", d, &fsm.ScheduleOptions{Missed: missed, MaxMissed: 2})
		}
		f.after(3*time.Hour + 10*time.Minute)
		for missed, want := range want {
			if got := counts[missed].Load(); got != want {
				t.Errorf("%s: %d runs, want %d", missed, got, want)
			}
		}
		f.after(50 * time.Minute)
		for missed, want := range want {
			if got := counts[missed].Load(); got != want+1 {
				t.Errorf("%s: %d runs after the next tick, want %d", missed, got, want+1)
			}
		}
	})
}

// Case 61: two processes on one database never fire one tick twice.
func TestTwoProcessesFireATickOnce(t *testing.T) {
	each(t, func(f *fixture) {
		d, runs := counting("report")
		f.register(d)
		second, err := fsm.New(f.eng, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := second.Register(d); err != nil {
			t.Fatal(err)
		}
		f.schedule("minutely", "* * * * *", d, nil)
		for range 20 {
			f.clock.Advance(time.Minute)
			done := make(chan error, 2)
			for _, m := range []*fsm.Machines{f.Machines, second} {
				go func() {
					_, err := m.Process(t.Context())
					done <- err
				}()
			}
			for range 2 {
				if err := <-done; err != nil {
					t.Fatal(err)
				}
			}
		}
		f.drain()
		if got := runs.Load(); got != 20 {
			t.Errorf("%d runs of 20 ticks", got)
		}
	})
}

func TestSchedulePausesAndEnds(t *testing.T) {
	each(t, func(f *fixture) {
		d, runs := counting("report")
		f.register(d)
		f.schedule("s", "@every 1m", d, &fsm.ScheduleOptions{Paused: true})
		f.after(time.Hour)
		f.schedule("s", "@every 1m", d, &fsm.ScheduleOptions{Missed: perdure.MissedSkip})
		f.drain()
		if got := runs.Load(); got != 0 {
			t.Errorf("%d runs while paused", got)
		}
		if err := f.DeleteSchedule(t.Context(), "s"); err != nil {
			t.Fatal(err)
		}
		f.after(time.Hour)
		if got := runs.Load(); got != 0 {
			t.Errorf("%d runs after the end", got)
		}
		var missing *fault.NotFound
		if err := f.DeleteSchedule(t.Context(), "s"); !errors.As(err, &missing) {
			t.Errorf("second removal: %v, want *fault.NotFound", err)
		}
	})
}

func TestScheduleRefusesNonsense(t *testing.T) {
	each(t, func(f *fixture) {
		d, _ := counting("report")
		for name, set := range map[string]func() error{
			"impossible date": func() error { return fsm.SetSchedule(t.Context(), f.eng, "s", "0 0 30 2 *", d, 0, nil) },
			"no interval":     func() error { return fsm.SetSchedule(t.Context(), f.eng, "s", "@every 0s", d, 0, nil) },
			"unknown zone": func() error {
				return fsm.SetSchedule(t.Context(), f.eng, "s", "@daily", d, 0, &fsm.ScheduleOptions{Zone: "Mars/Base"})
			},
			"unknown policy": func() error {
				return fsm.SetSchedule(t.Context(), f.eng, "s", "@daily", d, 0, &fsm.ScheduleOptions{Missed: "maybe"})
			},
			"no name": func() error { return fsm.SetSchedule(t.Context(), f.eng, "", "@daily", d, 0, nil) },
		} {
			var invalid *fault.Invalid
			if err := set(); !errors.As(err, &invalid) {
				t.Errorf("%s: %v, want *fault.Invalid", name, err)
			}
		}
		if all, err := f.Schedules(t.Context()); err != nil || len(all) != 0 {
			t.Errorf("stored: %v, %v", all, err)
		}
	})
}
