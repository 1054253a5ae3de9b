package dispatch_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perdure/perdure/dispatch"
)

func TestManyFailuresToSetTheAlarmAreOneRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c complaints
		h := &wakeHost{fail: func(context.Context, string) error { return errBoom }}
		p := &fake{next: at(time.Now().Add(time.Hour))}
		d := startAlarm(t, p, dispatch.WakerOptions{Host: h, OnError: c.add})
		for range 50 {
			<-d.Wake()
		}
		before := c.count()
		pass(10500 * time.Millisecond)
		if n := c.count() - before; n > 12 {
			t.Fatalf("there were %d complaints in 10 s", n)
		}
	})
}

func TestErrorsAndPanicsDoNotWedgeAnAlarm(t *testing.T) {
	fails := map[string]func() error{"error": func() error { return errBoom }, "panic": func() error { panic(errBoom) }}
	for how, failure := range fails {
		for name, p := range map[string]*fake{
			"process": {process: func(context.Context) (int, error) { return 0, failure() }},
			"next":    {next: func(context.Context) (time.Time, error) { return time.Time{}, failure() }},
		} {
			t.Run(name+" "+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var c complaints
					if p.next == nil {
						p.next = func(context.Context) (time.Time, error) { return time.Now(), nil } // due for ever
					}
					d := startAlarm(t, p, dispatch.WakerOptions{OnError: func(err error) { c.add(err); panic("callback") }})
					pass(10500 * time.Millisecond)
					runs, asked := p.counts()
					if n := c.about("boom"); n < 9 || n > 13 || runs > 13 || asked > 13 {
						t.Fatalf("in 10 s there were %d complaints, %d runs and %d questions", n, runs, asked)
					}
					<-d.Wake() // returns in any case
					p.become(nil, nil)
					pass(time.Minute)
				})
			})
		}
	}
}

// Something is due, but a run finds nothing: another process is taking it.
func TestAnAlarmDoesNotSpin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &fake{next: func(context.Context) (time.Time, error) { return time.Now().Add(-time.Second), nil }}
		startAlarm(t, p, dispatch.WakerOptions{})
		pass(time.Second)
		if n := p.ran(); n < 10 || n > 500 {
			t.Fatalf("there were %d runs in a second", n)
		}
	})
}

func TestTheTimerOfTheProcessFiresExactly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		due := time.Now().Add(40 * time.Second)
		ran := make(chan time.Time, 1)
		p := &fake{}
		p.next = func(context.Context) (time.Time, error) { return due, nil }
		p.process = func(context.Context) (int, error) {
			due = time.Time{}
			ran <- time.Now()
			return 1, nil
		}
		want := due
		startAlarm(t, p, dispatch.WakerOptions{MaxSleep: -1})
		equal(t, "ran at", <-ran, want)
	})
}

func TestMaxSleepBoundsTheTimeWithoutALook(t *testing.T) {
	for name, c := range map[string]struct {
		options dispatch.WakerOptions
		looks   int // in ten minutes and a bit, the first included
	}{
		"default":   {dispatch.WakerOptions{}, 41},
		"given":     {dispatch.WakerOptions{MaxSleep: 5 * time.Minute}, 3},
		"unbounded": {dispatch.WakerOptions{MaxSleep: -1}, 1},
		"other":     {dispatch.WakerOptions{Host: &wakeHost{}}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &fake{next: at(time.Now().Add(24 * time.Hour))}
				startAlarm(t, p, c.options)
				pass(10*time.Minute + time.Second)
				_, asked := p.counts()
				equal(t, "looks", asked, c.looks)
			})
		})
	}
}

func TestStopOfAnAlarmIsBoundedWhateverTheHostDoes(t *testing.T) {
	for name, fail := range map[string]func(ctx context.Context, end <-chan struct{}) error{
		"until told": func(ctx context.Context, _ <-chan struct{}) error { <-ctx.Done(); return ctx.Err() },
		"for ever":   func(_ context.Context, end <-chan struct{}) error { <-end; return nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				end := make(chan struct{})
				defer close(end)
				h := &wakeHost{fail: func(ctx context.Context, _ string) error { return fail(ctx, end) }}
				p := &fake{next: at(time.Now().Add(time.Hour))}
				d, err := dispatch.NewWaker(p, &dispatch.WakerOptions{Host: h, OnError: func(error) {}})
				noError(t, err)
				d.Start()
				synctest.Wait()
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				defer cancel()
				began := time.Now()
				err = d.Stop(ctx)
				equal(t, "failed to stop", err != nil, name == "for ever")
				if took := time.Since(began); took > time.Minute+2*time.Second {
					t.Fatalf("stop took %v", took)
				}
			})
		})
	}
}

func TestAnAlarmThatIsStoppedStaysSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &fake{next: at(time.Now().Add(time.Second))}
		d := startAlarm(t, p, dispatch.WakerOptions{})
		synctest.Wait()
		noError(t, d.Stop(context.Background()))
		noError(t, d.Stop(context.Background()))
		d.Start()
		p.arrive(time.Time{})
		equal(t, "a wake after the stop returns", closed(d.Wake()), true)
		pass(time.Hour)
		runs, asked := p.counts()
		equal(t, "runs", runs, 0)
		equal(t, "questions", asked, 1)
	})
}
