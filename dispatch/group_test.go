package dispatch_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/fault"
)

func TestCase39AGroupIsolatesItsMembers(t *testing.T) {
	early, late := time.Unix(100, 0), time.Unix(200, 0)
	one := func(context.Context) (int, error) { return 1, nil }
	good := &fake{name: "good", process: one, next: at(late)}
	better := &fake{name: "better", process: func(context.Context) (int, error) { return 2, nil }, next: at(early)}
	idle := &fake{name: "idle"}
	failing := &fake{
		name: "failing", process: func(context.Context) (int, error) { return 0, errBoom },
		next: func(context.Context) (time.Time, error) { return time.Time{}, errBoom },
	}
	panicking := &fake{
		name: "panicking", process: func(context.Context) (int, error) { panic("oh") },
		next: func(context.Context) (time.Time, error) { panic("oh") },
	}
	group, err := dispatch.Group(failing, good, panicking, better, idle)
	noError(t, err)
	equal(t, "namespace", group.Namespace(), "failing,good,panicking,better,idle")
	n, err := group.Process(context.Background())
	equal(t, "processed", n, 3)
	var c complaints
	c.add(err)
	equal(t, "errors", c.about("failing: boom")+c.about("panicking: panic: oh"), 2)
	equal(t, "the error can be told", errors.Is(err, errBoom), true)
	next, err := group.NextWakeAt(context.Background())
	equal(t, "next wake", next, early)
	equal(t, "the error can be told", errors.Is(err, errBoom), true)

	healthy, err := dispatch.Group(good, idle, better)
	noError(t, err)
	n, err = healthy.Process(context.Background())
	noError(t, err)
	equal(t, "processed", n, 3)
	next, err = healthy.NextWakeAt(context.Background())
	noError(t, err)
	equal(t, "next wake", next, early)

	alone, err := dispatch.Group(good)
	noError(t, err)
	equal(t, "group of one", alone, dispatch.Processor(good))
	_, err = dispatch.Group()
	var invalid *fault.Invalid
	equal(t, "a group of none is refused", errors.As(err, &invalid), true)
}

// A member that fails must not delay the others by more than itself.
func TestCase39AnAlarmOfAGroupKeepsTimeBesideAFailingMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		due := began.Add(300 * time.Millisecond)
		ran := make(chan time.Duration, 1)
		good := &fake{name: "good"}
		good.next = func(context.Context) (time.Time, error) { return due, nil }
		good.process = func(context.Context) (int, error) {
			if !time.Now().Before(due) {
				due = time.Time{}
				ran <- time.Since(began)
				return 1, nil
			}
			return 0, nil
		}
		failing := &fake{name: "failing", next: func(context.Context) (time.Time, error) { return time.Time{}, errBoom }}
		group, err := dispatch.Group(failing, good)
		noError(t, err)
		var c complaints
		d, err := dispatch.NewWaker(group, &dispatch.WakerOptions{OnError: c.add})
		noError(t, err)
		d.Start()
		equal(t, "ran after", <-ran, 300*time.Millisecond)
		noError(t, d.Stop(context.Background()))
		if c.about("failing: boom") == 0 {
			t.Fatal("nobody was told of the failure")
		}
	})
}

func TestAGroupHearsAllItsMembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := &fake{name: "a"}, &fake{name: "b"}
		group, err := dispatch.Group(a, b)
		noError(t, err)
		d := startPoller(t, group, nil)
		synctest.Wait()
		b.arrive(time.Time{})
		synctest.Wait()
		equal(t, "runs", a.ran(), 1)
		equal(t, "runs", b.ran(), 1)
		noError(t, d.Stop(context.Background()))
		a.arrive(time.Time{})
		synctest.Wait()
		equal(t, "runs after the stop", a.ran(), 1)
	})
}
