package fsm_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/fsm"
)

func (f *fixture) change(name string, change fsm.ScheduleChange) error {
	return f.eng.Update(f.t.Context(), func(tx *perdure.Tx) error { return f.ChangeScheduleIn(tx, name, change) })
}

func (f *fixture) scheduled(name string) fsm.ScheduleStatus {
	f.t.Helper()
	s, err := f.GetSchedule(f.t.Context(), name)
	if err != nil {
		f.t.Fatal(err)
	}
	return s
}

func TestAChangeOfAScheduleLeavesTheRestAsItIs(t *testing.T) {
	each(t, func(f *fixture) {
		d, runs := counting("report")
		f.register(d)
		f.schedule("hourly", "0 * * * *", d, &fsm.ScheduleOptions{
			Zone: "Europe/Berlin", Missed: perdure.MissedAll, MaxMissed: 7, Start: &fsm.StartOptions{Priority: perdure.High, Unique: "one", Deadline: time.Hour},
		})
		f.after(time.Hour)
		before := f.scheduled("hourly")
		if err := f.change("hourly", fsm.ScheduleChange{State: json.RawMessage(`9`)}); err != nil {
			t.Fatal(err)
		}
		got := f.scheduled("hourly")
		if string(got.State) != "9" || got.Start != before.Start || got.Start.Unique != "one" || got.Start.Deadline != time.Hour || got.MaxMissed != 7 {
			t.Errorf("the start became %s, %+v", got.State, got.Start)
		}
		if got.Spec != before.Spec || got.Zone != "Europe/Berlin" || got.Missed != perdure.MissedAll || !got.Next.Equal(before.Next) || !got.Last.Equal(before.Last) {
			t.Errorf("the schedule became %+v, was %+v", got, before)
		}
		f.after(time.Hour)
		if got := runs.Load(); got != 2 {
			t.Errorf("%d runs in 2 hours", got)
		}
	})
}

func TestOtherTicksBeginAnewAndTheSameGoOn(t *testing.T) {
	each(t, func(f *fixture) {
		d, runs := counting("report")
		f.register(d)
		f.schedule("s", "0 * * * *", d, nil)
		next := f.scheduled("s").Next
		f.clock.Advance(90 * time.Minute) // one tick has passed and is not fired yet
		same, other, zone, yes := "0 * * * *", "30 * * * *", "Asia/Kolkata", true
		if err := f.change("s", fsm.ScheduleChange{Spec: &same, Paused: &yes}); err != nil {
			t.Fatal(err)
		}
		if got := f.scheduled("s"); !got.Next.Equal(next) || !got.Paused {
			t.Errorf("the same ticks: next %v, paused %v; want %v and true", got.Next, got.Paused, next)
		}
		if err := f.change("s", fsm.ScheduleChange{Spec: &other, Zone: &zone}); err != nil {
			t.Fatal(err)
		}
		if got := f.scheduled("s"); !got.Next.After(f.clock.Now()) || got.Zone != zone || !got.Paused {
			t.Errorf("other ticks: %+v, want a next one after %v", got, f.clock.Now())
		}
		f.after(2 * time.Hour)
		if got := runs.Load(); got != 0 {
			t.Errorf("%d runs while paused", got)
		}
	})
}

func TestAChangeThatIsRefusedChangesNothing(t *testing.T) {
	each(t, func(f *fixture) {
		d, _ := counting("report")
		f.register(d)
		f.schedule("s", "0 * * * *", d, nil)
		before := f.scheduled("s")
		never, nowhere, maybe, none, no := "0 0 30 2 *", "Mars/Base", perdure.Missed("maybe"), 0, false
		for what, change := range map[string]fsm.ScheduleChange{
			"impossible date": {Spec: &never}, "unknown zone": {Zone: &nowhere}, "unknown policy": {Missed: &maybe}, "no missed": {MaxMissed: &none}, "no JSON": {State: json.RawMessage(`{`)},
		} {
			var invalid *fault.Invalid
			if err := f.change("s", change); !errors.As(err, &invalid) {
				t.Errorf("%s: %v, want *fault.Invalid", what, err)
			}
		}
		if got := f.scheduled("s"); got.Spec != before.Spec || got.Zone != before.Zone || got.Missed != before.Missed || string(got.State) != string(before.State) {
			t.Errorf("it became %+v, was %+v", got, before)
		}
		var missing *fault.NotFound
		if err := f.change("none", fsm.ScheduleChange{Paused: &no}); !errors.As(err, &missing) {
			t.Errorf("a schedule that is not there: %v, want *fault.NotFound", err)
		}
	})
}

func TestACheckDecidesAboutTheScheduleThatIsThere(t *testing.T) {
	each(t, func(f *fixture) {
		d, _ := counting("report")
		f.register(d)
		refusal := errors.New("no")
		var told []*fsm.ScheduleStatus
		set := func(spec string, answer error) error {
			return fsm.SetSchedule(t.Context(), f.eng, "s", spec, d, 1, &fsm.ScheduleOptions{Check: func(before *fsm.ScheduleStatus) error {
				told = append(told, before)
				return answer
			}})
		}
		if err := set("@daily", refusal); !errors.Is(err, refusal) {
			t.Errorf("a new one: %v", err)
		}
		var missing *fault.NotFound
		if _, err := f.GetSchedule(t.Context(), "s"); !errors.As(err, &missing) {
			t.Errorf("it is stored though it was refused: %v", err)
		}
		if err := set("@daily", nil); err != nil {
			t.Fatal(err)
		}
		before := f.scheduled("s")
		if err := set("@hourly", refusal); !errors.Is(err, refusal) {
			t.Errorf("another: %v", err)
		}
		if got := f.scheduled("s"); got.Spec != before.Spec || !got.Next.Equal(before.Next) {
			t.Errorf("it became %+v", got)
		}
		if len(told) != 3 || told[0] != nil || told[1] != nil || told[2] == nil || told[2].Spec != before.Spec {
			t.Errorf("the checks were told %v", told)
		}
	})
}
