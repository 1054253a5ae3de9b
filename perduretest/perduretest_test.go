package perduretest_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/alarm"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/hook"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/internal/test/testdb"
	"github.com/perdure/perdure/perduretest"
	"github.com/perdure/perdure/retry"
)

func TestMain(m *testing.M) { testdb.Main(m) }

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Fatalf("%s is %v, want %v", what, got, want)
	}
}

func TestTheClockStandsStillUntilItIsMoved(t *testing.T) {
	c := perduretest.NewClock(noon.In(time.FixedZone("x", 3600)))
	equal(t, "now", c.Now(), noon)
	short, long, stopped := c.NewTimer(time.Second), c.NewTimer(time.Minute), c.NewTimer(time.Second)
	stopped.Stop()
	stopped.Stop()
	equal(t, "timers", c.Timers(), 2)
	c.Advance(time.Second - 1)
	equal(t, "timers", c.Timers(), 2)
	c.Advance(1)
	equal(t, "fired at", <-short.C(), noon.Add(time.Second))
	equal(t, "timers", c.Timers(), 1)
	c.Set(noon) // backwards
	equal(t, "now", c.Now(), noon)
	c.Set(noon.Add(time.Hour))
	<-long.C()
	<-c.NewTimer(0).C()
	<-c.NewTimer(-time.Second).C()
	equal(t, "timers", c.Timers(), 0)
	select {
	case <-stopped.C():
		t.Fatal("a timer fired that was stopped")
	default:
	}
}

func TestTheClockIsMovedByMany(t *testing.T) {
	c := perduretest.NewClock(noon)
	done := make(chan struct{})
	for range 10 {
		go func() {
			defer func() { done <- struct{}{} }()
			for range 100 {
				timer := c.NewTimer(time.Millisecond)
				c.Advance(time.Millisecond)
				<-timer.C()
			}
		}()
	}
	for range 10 {
		<-done
	}
	equal(t, "now", c.Now(), noon.Add(time.Second))
}

func TestDrainRunsWhatItMakesDue(t *testing.T) {
	enginetest.Each(t, func(t *testing.T, db enginetest.Database) {
		clock := perduretest.NewClock(noon)
		eng := db.Open(t, &perdure.Options{Clock: clock})
		hooks, err := hook.New(eng, "a", nil)
		enginetest.NoError(t, err)
		others, err := hook.New(eng, "b", nil)
		enginetest.NoError(t, err)
		var count *hook.Hook[int]
		trigger := func(n int) error {
			return eng.Update(t.Context(), func(tx *perdure.Tx) error {
				_, err := count.TriggerIn(tx, n, nil)
				return err
			})
		}
		count, err = hook.Define(hooks, "count", func(_ context.Context, n int) error {
			if n == 0 {
				return eng.Update(t.Context(), func(tx *perdure.Tx) error {
					_, err := others.TriggerIn(tx, "end", "x", nil)
					return err
				})
			}
			return trigger(n - 1)
		}, nil)
		enginetest.NoError(t, err)
		_, err = hook.Define(others, "end", func(context.Context, string) error { return errors.New("tried again tomorrow") }, nil)
		enginetest.NoError(t, err)
		enginetest.NoError(t, trigger(5))
		equal(t, "runs", perduretest.Drain(t, hooks, others), 7)
		equal(t, "runs", perduretest.Drain(t, hooks, others), 0)
		equal(t, "hooks that wait", len(perduretest.Triggered(t, eng, "b", "end")), 1)
		equal(t, "hooks that wait", len(perduretest.Triggered(t, eng, "a", "count")), 0)
	})
}

func TestTriggeredIsOldestFirst(t *testing.T) {
	eng := enginetest.New(t, enginetest.SQLite).Open(t, nil)
	hooks, err := hook.New(eng, "a", nil)
	enginetest.NoError(t, err)
	var want []string
	for i := range 3 {
		enginetest.NoError(t, eng.Update(t.Context(), func(tx *perdure.Tx) error {
			id, err := hooks.TriggerIn(tx, "x", i, nil)
			want = append(want, id)
			return err
		}))
	}
	var got []string
	for _, r := range perduretest.Triggered(t, eng, "a", "x") {
		got = append(got, r.ID)
	}
	if !slices.Equal(got, want) {
		t.Fatalf("the hooks are %v, want %v", got, want)
	}
	failed := failure(func(tb *recording) { perduretest.RequireTriggered[int](tb, eng, "a", "x") })
	equal(t, "failure", failed, "hook a/x was triggered 3 times, want once")
	failed = failure(func(tb *recording) { perduretest.RequireTriggered[int](tb, eng, "a", "y") })
	equal(t, "failure", failed, "hook a/y was triggered 0 times, want once")
}

// broken is a processor that fails, or never comes to an end.
type broken struct{ err error }

func (broken) Namespace() string                                  { return "broken" }
func (b broken) Process(context.Context) (int, error)             { return 1, b.err }
func (broken) NextWakeAt(context.Context) (at time.Time, e error) { return at, e }

var _ dispatch.Processor = broken{}

func TestDrainFailsTheTest(t *testing.T) {
	failed := failure(func(tb *recording) { perduretest.Drain(tb, broken{errors.New("boom")}) })
	equal(t, "failure", failed, "drain broken: boom")
	failed = failure(func(tb *recording) { perduretest.Drain(tb, broken{}) })
	if !strings.Contains(failed, "still due") {
		t.Fatalf("the failure is %q", failed)
	}
	failed = failure(func(tb *recording) { perduretest.Drain(tb) })
	equal(t, "failure", failed, "drain: group must have at least one processor")
}

// failure returns what fn fails its test with.
func failure(fn func(*recording)) string {
	tb := &recording{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		fn(tb)
	}()
	<-done
	return tb.message
}

type recording struct {
	testing.TB
	message string
}

func (*recording) Helper()                  {}
func (*recording) Context() context.Context { return context.Background() }

func (r *recording) Fatalf(format string, args ...any) {
	r.message = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func TestRequireScheduledWantsAnAlarmThatWaits(t *testing.T) {
	clock := perduretest.NewClock(noon)
	eng := enginetest.New(t, enginetest.SQLite).Open(t, &perdure.Options{Clock: clock})
	alarms, err := alarm.New(eng, nil)
	enginetest.NoError(t, err)
	_, err = alarm.Handle(alarms, "a", func(context.Context, int) error { return errors.New("no") }, nil)
	enginetest.NoError(t, err)
	key := alarm.Of("order", "1", "x")
	require := func() string {
		return failure(func(tb *recording) { perduretest.RequireScheduled[int](tb, eng, key) })
	}
	equal(t, "failure", require(), `alarm order/1/x is not scheduled: get alarm: alarm "order/1/x" does not exist`)
	enginetest.NoError(t, alarms.Schedule(t.Context(), key, "a", 7, &alarm.ScheduleOptions{Retry: retry.None()}))
	equal(t, "payload", perduretest.RequireScheduled[int](t, eng, key), 7)
	perduretest.Drain(t, alarms)
	equal(t, "failure", require(), "alarm order/1/x is failed, want one of [scheduled ready retrying]")
	enginetest.NoError(t, alarms.Schedule(t.Context(), key, "a", "text", nil))
	if !strings.Contains(require(), "decode payload") {
		t.Fatalf("the failure is %q", require())
	}
}
