package dispatch_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/internal/wake"
)

// A commit of another process, of which nothing is known, costs a read and no
// claim, unless something is due.
func TestAnUnknownCommitOfAnotherProcessIsLookedAtBeforeAClaim(t *testing.T) {
	for name, start := range map[string]func(*testing.T, *fake){
		"alarm": func(t *testing.T, p *fake) { startAlarm(t, p, dispatch.WakerOptions{MaxSleep: -1}) },
		"poller": func(t *testing.T, p *fake) {
			d, err := dispatch.NewPoller(p, &dispatch.PollerOptions{Interval: 10 * time.Hour})
			run(t, d, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &fake{}
				start(t, p)
				synctest.Wait()
				p.arrive(wake.Unknown)
				synctest.Wait()
				runs, asked := p.counts()
				equal(t, "questions", asked, 2)
				equal(t, "runs while nothing is due", runs, 0)

				p.become(func(context.Context) (int, error) { p.become(nil, nil); return 1, nil }, at(time.Now()))
				p.arrive(wake.Unknown)
				pass(time.Millisecond)
				runs, _ = p.counts()
				equal(t, "runs when something is due", runs, 1)
			})
		})
	}
}

func TestUnknownCommitsWhileALookIsInFlightLeadToOneMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &fake{}
		startAlarm(t, p, dispatch.WakerOptions{MaxSleep: -1})
		synctest.Wait()
		release := make(chan struct{})
		p.become(nil, func(context.Context) (time.Time, error) { <-release; return time.Time{}, nil })
		for range 100 {
			p.arrive(wake.Unknown)
		}
		synctest.Wait()
		close(release)
		synctest.Wait()
		_, asked := p.counts()
		equal(t, "questions", asked, 3)
	})
}
