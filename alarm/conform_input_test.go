package alarm_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/alarm"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/retry"
)

// optionsWith returns the options of an engine on the fixture's clock.
func optionsWith(f *fixture) *perdure.Options { return &perdure.Options{Clock: f.clock} }

// Case 38 of the notes is among these: an interval that is not more than 0.
func (Conformance) Case38BadInputIsRefusedAndStoresNothing(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, &alarm.Options{MaxPayload: 100})
	key := alarm.ID("x")
	at := noon.Add(time.Hour)
	long := strings.Repeat("x", 1000)
	for i, c := range []struct {
		key     alarm.Key
		typ     string
		payload any
		options alarm.ScheduleOptions
	}{
		{alarm.ID(""), "a", nil, alarm.ScheduleOptions{}},
		{alarm.ID(long), "a", nil, alarm.ScheduleOptions{}},
		{alarm.ID("a\x00b"), "a", nil, alarm.ScheduleOptions{}},
		{alarm.ID("\xff"), "a", nil, alarm.ScheduleOptions{}},
		{alarm.Of("", "1", "x"), "a", nil, alarm.ScheduleOptions{}},
		{alarm.Of("order", "", "x"), "a", nil, alarm.ScheduleOptions{}},
		{alarm.Of(long, "1", "x"), "a", nil, alarm.ScheduleOptions{}},
		{key, "", nil, alarm.ScheduleOptions{}},
		{key, " a", nil, alarm.ScheduleOptions{}},
		{key, "perdure.notice", nil, alarm.ScheduleOptions{}},
		{key, "a", long, alarm.ScheduleOptions{}},
		{key, "a", math.NaN(), alarm.ScheduleOptions{}},
		{key, "a", func() {}, alarm.ScheduleOptions{}},
		{key, "a", nil, alarm.ScheduleOptions{Every: -time.Second}},
		{key, "a", nil, alarm.ScheduleOptions{Every: -1}},
		{key, "a", nil, alarm.ScheduleOptions{Every: 1}}, // a nanosecond
		{key, "a", nil, alarm.ScheduleOptions{Every: math.MaxInt64}},
		{key, "a", nil, alarm.ScheduleOptions{Every: time.Hour, Cron: "@daily"}},
		{key, "a", nil, alarm.ScheduleOptions{Every: time.Hour, Zone: "Europe/Berlin"}},
		{key, "a", nil, alarm.ScheduleOptions{Cron: "0 0 30 2 *"}},
		{key, "a", nil, alarm.ScheduleOptions{Cron: "61 * * * *"}},
		{key, "a", nil, alarm.ScheduleOptions{Cron: "@every 5s"}},
		{key, "a", nil, alarm.ScheduleOptions{Cron: "@daily", Zone: "Mars/Olympus"}},
		{key, "a", nil, alarm.ScheduleOptions{Cron: "@daily", At: at}},
		{key, "a", nil, alarm.ScheduleOptions{Missed: perdure.MissedAll}},
		{key, "a", nil, alarm.ScheduleOptions{Every: time.Hour, Missed: "some"}},
		{key, "a", nil, alarm.ScheduleOptions{Every: time.Hour, Missed: perdure.MissedAll, MaxMissed: -1}},
		{key, "a", nil, alarm.ScheduleOptions{Every: time.Hour, Missed: perdure.MissedAll, MaxMissed: 10_001}},
		{key, "a", nil, alarm.ScheduleOptions{Every: time.Hour, Missed: perdure.MissedSkip, MaxMissed: 1}},
		{key, "a", nil, alarm.ScheduleOptions{At: at, Delay: time.Second}},
		{key, "a", nil, alarm.ScheduleOptions{Delay: -time.Second}},
		{key, "a", nil, alarm.ScheduleOptions{Delay: math.MaxInt64}},
		{key, "a", nil, alarm.ScheduleOptions{At: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}},
		{key, "a", nil, alarm.ScheduleOptions{Priority: 2}},
		{key, "a", nil, alarm.ScheduleOptions{Retry: retry.Policy{Kind: "often", MaxAttempts: 1}}},
		{key, "a", nil, alarm.ScheduleOptions{Webhook: "example.org"}},
		{key, "a", nil, alarm.ScheduleOptions{Webhook: "ftp://example.org"}},
		{key, "a", nil, alarm.ScheduleOptions{Webhook: "https://me:secret@example.org"}},
		{key, "a", nil, alarm.ScheduleOptions{Webhook: "https://example.org/" + strings.Repeat("x", 3000)}},
		{key, alarm.Webhook, nil, alarm.ScheduleOptions{}},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			err := f.alarms.Schedule(enginetest.Context(t), c.key, c.typ, c.payload, &c.options)
			enginetest.As[*fault.Invalid](t, err)
			if strings.Contains(err.Error(), "secret") {
				t.Fatalf("the error shows what may be secret: %v", err)
			}
			f.rows(t, 0)
		})
	}
}

func (Conformance) BadFiltersAndKeysAreRefused(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	ctx := enginetest.Context(t)
	for _, filter := range []alarm.Filter{{Statuses: []alarm.Status{"done"}}, {Unowned: true, ActorType: "order"}, {Type: "\xff"}} {
		_, _, err := f.alarms.List(ctx, filter, "", 0)
		enginetest.As[*fault.Invalid](t, err)
		_, err = f.alarms.CancelAll(ctx, filter)
		enginetest.As[*fault.Invalid](t, err)
		_, err = f.alarms.RetryAll(ctx, filter)
		enginetest.As[*fault.Invalid](t, err)
	}
	for _, limit := range []int{-1, alarm.MaxLimit + 1} {
		_, _, err := f.alarms.List(ctx, alarm.Filter{}, "", limit)
		enginetest.As[*fault.Invalid](t, err)
	}
	for _, key := range []alarm.Key{{}, alarm.Of("order", "", "x"), alarm.ID("\xff")} {
		_, err := f.alarms.Get(ctx, key)
		enginetest.As[*fault.NotFound](t, err)
		_, err = f.alarms.Cancel(ctx, key)
		enginetest.As[*fault.Invalid](t, err)
		enginetest.As[*fault.NotFound](t, f.alarms.Move(ctx, key, noon))
	}
	enginetest.As[*fault.Invalid](t, f.alarms.Move(ctx, alarm.ID("x"), time.Time{}))
	enginetest.As[*fault.Invalid](t, f.alarms.Move(ctx, alarm.ID("x"), time.Date(20000, 1, 1, 0, 0, 0, 0, time.UTC)))
	_, err := f.alarms.Get(ctx, alarm.ID("x"))
	notFound(t, err)
	_, err = f.alarms.Next(ctx, alarm.Filter{})
	notFound(t, err)
}

func (Conformance) AnAlarmBelongsToItsEngine(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	other := enginetest.New(t, db.Name).Open(t, nil)
	err := other.Update(enginetest.Context(t), func(tx *perdure.Tx) error { return f.alarms.ScheduleIn(tx, alarm.ID("x"), "a", nil, nil) })
	enginetest.As[*fault.Invalid](t, err)
}

func TestBadOptionsAreRefused(t *testing.T) {
	t.Parallel()
	eng := enginetest.New(t, enginetest.SQLite).Open(t, nil)
	for i, o := range []alarm.Options{
		{Concurrency: -1},
		{Concurrency: 10_001},
		{Lease: time.Millisecond},
		{MaxCrashes: -1},
		{Timeout: -1},
		{MaxPayload: -1},
		{Retry: retry.Policy{Kind: retry.KindFixed}},
		{Notify: "nowhere"},
		{Notifications: []alarm.NotificationKind{"rung"}},
	} {
		_, err := alarm.New(eng, &o)
		if err == nil {
			t.Fatalf("options %d were accepted: %+v", i, o)
		}
		enginetest.As[*fault.Invalid](t, err)
	}
	_, err := alarm.New(nil, nil)
	enginetest.As[*fault.Invalid](t, err)
	alarms := newAlarms(t, eng, nil)
	handle := func(name string, fn func(context.Context, int) error, o *alarm.HandlerOptions) error {
		_, err := alarm.Handle(alarms, name, fn, o)
		return err
	}
	good := func(context.Context, int) error { return nil }
	enginetest.NoError(t, handle("good", good, nil))
	for _, err := range []error{
		handle("good", good, nil), handle("", good, nil), handle("x", nil, nil), handle("perdure.x", good, nil), handle(alarm.Webhook, good, nil),
		handle("x", good, &alarm.HandlerOptions{Timeout: -1}), handle("x", good, &alarm.HandlerOptions{Retry: retry.Policy{Kind: "x"}}),
	} {
		enginetest.As[*fault.Invalid](t, err)
	}
}
