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

// startPoller starts a poller with an interval of 5 s that is stopped at the
// end of the test.
func startPoller(t *testing.T, p dispatch.Processor, onError func(error)) *dispatch.Poller {
	t.Helper()
	if onError == nil {
		onError = func(err error) { t.Errorf("poller: %v", err) }
	}
	d, err := dispatch.NewPoller(p, &dispatch.PollerOptions{OnError: onError})
	noError(t, err)
	d.Start()
	t.Cleanup(func() { noError(t, d.Stop(context.Background())) })
	return d
}

func TestCase33APollRunsTheProcessorOnlyIfSomethingIsDue(t *testing.T) {
	for name, c := range map[string]struct {
		next  func() time.Time
		polls int // runs in three polls
	}{
		"none":   {func() time.Time { return time.Time{} }, 0},
		"future": {func() time.Time { return time.Now().Add(time.Minute) }, 0},
		"past":   {func() time.Time { return time.Now().Add(-time.Minute) }, 3},
		"now":    {time.Now, 3},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &fake{
					next:    func(context.Context) (time.Time, error) { return c.next(), nil },
					process: func(context.Context) (int, error) { return 1, nil },
				}
				startPoller(t, p, nil)
				synctest.Wait() // at once
				equal(t, "runs at the start", p.ran(), min(c.polls, 1))
				pass(2*dispatch.DefaultInterval + time.Second)
				runs, asked := p.counts()
				equal(t, "runs", runs, c.polls)
				equal(t, "polls", asked, 3)
			})
		})
	}
}

func TestCase34AnyNumberOfWakesDuringARunIsOneMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inRun, end := make(chan struct{}), make(chan struct{})
		p := &fake{process: func(context.Context) (int, error) {
			inRun <- struct{}{}
			<-end
			return 1, nil
		}}
		d := startPoller(t, p, nil)
		first := d.Wake()
		<-inRun
		var others []<-chan struct{}
		for range 10 {
			others = append(others, d.Wake())
		}
		end <- struct{}{} // the first run
		<-first
		<-inRun
		synctest.Wait()
		for _, other := range others {
			equal(t, "returned before the second run has ended", closed(other), false)
		}
		end <- struct{}{}
		for _, other := range others {
			<-other
		}
		synctest.Wait()
		equal(t, "runs", p.ran(), 2)
	})
}

func TestCase35ErrorsAndPanicsDoNotWedgeAPoller(t *testing.T) {
	fails := map[string]func() error{
		"error": func() error { return errBoom },
		"panic": func() error { panic(errBoom) },
	}
	for how, failure := range fails {
		for name, p := range map[string]*fake{
			"process": {process: func(context.Context) (int, error) { return 0, failure() }},
			"next":    {next: func(context.Context) (time.Time, error) { return time.Time{}, failure() }},
		} {
			t.Run(name+" "+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var c complaints
					if p.next == nil {
						p.next = func(context.Context) (time.Time, error) { return time.Now(), nil }
					}
					d := startPoller(t, p, func(err error) { c.add(err); panic("callback") })
					pass(3*dispatch.DefaultInterval + time.Second)
					synctest.Wait()
					equal(t, "complaints", c.about("boom"), 4)
					before := p.ran()
					<-d.Wake() // returns in any case
					equal(t, "runs", p.ran(), before+1)
				})
			})
		}
	}
}

func TestCase36StartAndStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &fake{next: at(time.Now())}
		d := startPoller(t, p, nil)
		d.Start()
		d.Start()
		pass(3*dispatch.DefaultInterval + time.Second)
		runs, asked := p.counts()
		equal(t, "polls of one poller", asked, 4)
		noError(t, d.Stop(context.Background()))
		noError(t, d.Stop(context.Background()))
		d.Start()
		p.arrive(time.Time{})
		equal(t, "a wake after the stop returns", closed(d.Wake()), true)
		pass(time.Hour)
		equal(t, "runs after the stop", p.ran(), runs)

		never, err := dispatch.NewPoller(p, nil)
		noError(t, err)
		noError(t, never.Stop(context.Background()))
	})
}

func TestCase36StopWaitsForARunWithinABound(t *testing.T) {
	for name, c := range map[string]struct {
		process func(ctx context.Context) (int, error)
		took    time.Duration
		fails   bool
	}{
		"ends by itself":    {func(context.Context) (int, error) { pass(10 * time.Second); return 1, nil }, 10 * time.Second, false},
		"ends when told":    {func(ctx context.Context) (int, error) { <-ctx.Done(); return 0, ctx.Err() }, time.Minute, false},
		"does not end":      {func(context.Context) (int, error) { pass(time.Hour); return 0, nil }, time.Minute + time.Second, true},
		"always finds more": {func(context.Context) (int, error) { pass(time.Second); return 1, nil }, time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var c2 complaints
				p := &fake{process: c.process}
				d, err := dispatch.NewPoller(p, &dispatch.PollerOptions{OnError: c2.add})
				noError(t, err)
				d.Start()
				done := d.Wake()
				synctest.Wait()
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				defer cancel()
				began := time.Now()
				err = d.Stop(ctx)
				equal(t, "time to stop", time.Since(began), c.took)
				equal(t, "failed to stop", err != nil, c.fails)
				<-done
				equal(t, "runs", p.ran(), 1)
			})
		})
	}
}

func TestAPollerRunsAtOnceWhatArrives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &fake{}
		startPoller(t, p, nil)
		synctest.Wait()
		p.arrive(time.Now().Add(time.Second)) // polling will find it
		synctest.Wait()
		equal(t, "runs", p.ran(), 0)
		p.arrive(time.Time{})
		p.arrive(time.Now())
		synctest.Wait()
		if n := p.ran(); n < 1 || n > 2 {
			t.Fatalf("runs are %d", n)
		}
	})
}

func TestAProcessorThatHangsInNextWakeAtDoesNotHangStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := make(chan struct{})
		defer close(end)
		p := &fake{next: func(context.Context) (time.Time, error) { <-end; return time.Time{}, nil }}
		d, err := dispatch.NewPoller(p, nil)
		noError(t, err)
		d.Start()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := d.Stop(ctx); err == nil {
			t.Fatal("stop says that nothing runs any more")
		}
	})
}

func TestOptionsAreChecked(t *testing.T) {
	var invalid *fault.Invalid
	if _, err := dispatch.NewPoller(nil, nil); !errors.As(err, &invalid) {
		t.Errorf("no processor: %v", err)
	}
	if _, err := dispatch.NewPoller(&fake{}, &dispatch.PollerOptions{Interval: -1}); !errors.As(err, &invalid) {
		t.Errorf("negative interval: %v", err)
	}
	if _, err := dispatch.NewWaker(nil, nil); !errors.As(err, &invalid) {
		t.Errorf("no processor: %v", err)
	}
}
