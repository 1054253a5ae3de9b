package dispatch_test

import (
	"context"
	"fmt"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/hook"
)

// printing returns an engine with hooks that print their payload.
func printing(ctx context.Context, done chan<- struct{}) (*perdure.Engine, *hook.Hooks, *hook.Hook[string]) {
	eng, err := perdure.Open(ctx, "sqlite::memory:", nil)
	if err != nil {
		panic(err)
	}
	hooks, err := hook.New(eng, "example", nil)
	if err != nil {
		panic(err)
	}
	printed, err := hook.Define(hooks, "print", func(_ context.Context, text string) error {
		fmt.Println(text)
		done <- struct{}{}
		return nil
	}, nil)
	if err != nil {
		panic(err)
	}
	return eng, hooks, printed
}

func ExampleNewPoller() {
	ctx := context.Background()
	done := make(chan struct{})
	eng, hooks, printed := printing(ctx, done)
	defer eng.Close()

	poller, err := dispatch.NewPoller(hooks, &dispatch.PollerOptions{Interval: 10 * time.Second})
	if err != nil {
		panic(err)
	}
	poller.Start()
	err = eng.Update(ctx, func(tx *perdure.Tx) error {
		_, err := printed.TriggerIn(tx, "hello", nil)
		return err
	})
	if err != nil {
		panic(err)
	}
	<-done // immediately, not after ten seconds

	stop, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if err := poller.Stop(stop); err != nil {
		panic(err)
	}
	// Output: hello
}

// cell is an alarm host: anything that can remember one time. This one is only
// a variable; another may be a scheduler that starts the process.
type cell struct{ alarm time.Time }

func (c *cell) Set(_ context.Context, at time.Time) error { c.alarm = at; return nil }
func (c *cell) Get(context.Context) (time.Time, error)    { return c.alarm, nil }
func (c *cell) Delete(context.Context) error              { c.alarm = time.Time{}; return nil }
func (c *cell) due(now time.Time) bool                    { return !c.alarm.IsZero() && !c.alarm.After(now) }
func (c *cell) fire(a *dispatch.Waker) (finished <-chan struct{}) {
	c.alarm = time.Time{}
	return a.Fire()
}

// A host of one's own keeps the alarm, and fires it.
func ExampleWakeHost() {
	ctx := context.Background()
	done := make(chan struct{}, 1)
	eng, hooks, printed := printing(ctx, done)
	defer eng.Close()
	err := eng.Update(ctx, func(tx *perdure.Tx) error {
		_, err := printed.TriggerIn(tx, "the alarm went off", &hook.TriggerOptions{Delay: 50 * time.Millisecond})
		return err
	})
	if err != nil {
		panic(err)
	}

	host := &cell{}
	waker, err := dispatch.NewWaker(hooks, &dispatch.WakerOptions{Host: host})
	if err != nil {
		panic(err)
	}
	<-waker.Wake() // runs due work, and sets the alarm of the host
	fmt.Println("the alarm is set:", !host.alarm.IsZero())
	for !host.due(time.Now()) { // other work of the host
		<-time.After(10 * time.Millisecond)
	}
	<-host.fire(waker)
	<-done
	if err := waker.Stop(ctx); err != nil {
		panic(err)
	}
	// Output:
	// the alarm is set: true
	// the alarm went off
}
