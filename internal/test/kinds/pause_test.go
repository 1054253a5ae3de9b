package kinds

import (
	"context"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/limit"
	"github.com/perdure/perdure/perduretest"
	"github.com/perdure/perdure/retry"
)

// paused are the targets that hold each kind of work.
var paused = map[string]struct {
	kind   kind
	target string
}{
	"hook": {kinds["hook"], "hook:send"}, "alarm": {kinds["alarm"], "alarm:remind"}, "queue": {kinds["step"], "queue:default"},
	"definition": {kinds["step"], "fsm:order"}, "task": {sender, "task:ship"},
}

// eachPaused runs a test for each target and database, with a work item that is due.
func eachPaused(t *testing.T, test func(p pausing)) {
	t.Parallel()
	for name, c := range paused {
		for _, database := range c.kind.on {
			t.Run(name+"/"+database, func(t *testing.T) {
				t.Parallel()
				p := pausing{T: t, clock: perduretest.NewClock(start), target: c.target, runs: new(int)}
				p.db = enginetest.New(t, database)
				p.eng = p.db.Open(t, &perdure.Options{Clock: p.clock})
				p.kind = c.kind
				test(p)
			})
		}
	}
}

// pausing is a test of one target.
type pausing struct {
	*testing.T
	db     enginetest.Database
	eng    *perdure.Engine
	clock  *perduretest.Clock
	kind   kind
	target string
	runs   *int
}

func (p pausing) subject() subject {
	return subject{t: p.T, eng: p.eng, policy: retry.Fixed(3, time.Minute), run: func(context.Context, int) error { *p.runs++; return nil }}
}

func TestPausedWorkIsNotClaimedUntilItIsResumed(t *testing.T) {
	eachPaused(t, func(p pausing) {
		enginetest.NoError(p, limit.Pause(p.Context(), p.eng, p.target, &limit.PauseOptions{Reason: "provider is down", Actor: "ada"}))
		processor := p.kind.start(p.subject())
		perduretest.Drain(p, processor)
		if *p.runs != 0 {
			p.Fatal("paused work ran")
		}
		if next, err := processor.NextWakeAt(p.Context()); err != nil || !next.IsZero() && !next.After(p.clock.Now()) {
			p.Errorf("the next wake of paused work is %v, %v: a dispatcher would not rest", next, err)
		}
		all, err := limit.Pauses(p.Context(), p.eng)
		enginetest.NoError(p, err)
		if len(all) != 1 || all[0] != (limit.Paused{Target: p.target, Reason: "provider is down", Actor: "ada", At: start}) {
			p.Errorf("pauses: %+v", all)
		}
		joined := p.subject()
		joined.joins = true
		perduretest.Drain(p, p.kind.start(joined)) // another process
		if *p.runs != 0 {
			p.Fatal("paused work ran in another process")
		}
		enginetest.NoError(p, limit.Resume(p.Context(), p.eng, p.target))
		perduretest.Drain(p, processor)
		if *p.runs != 1 {
			p.Errorf("resumed work ran %d times", *p.runs)
		}
	})
}

func TestAPauseEndsByItself(t *testing.T) {
	eachPaused(t, func(p pausing) {
		until := start.Add(time.Hour)
		enginetest.NoError(p, limit.Pause(p.Context(), p.eng, p.target, &limit.PauseOptions{Until: until}))
		processor := p.kind.start(p.subject())
		perduretest.Drain(p, processor)
		next, err := processor.NextWakeAt(p.Context())
		if err != nil || !next.Equal(until) {
			p.Errorf("the next wake is %v, %v, want the end of the pause", next, err)
		}
		p.clock.Set(until)
		perduretest.Drain(p, processor)
		if *p.runs != 1 {
			p.Errorf("after the pause the work ran %d times", *p.runs)
		}
		if all, err := limit.Pauses(p.Context(), p.eng); err != nil || len(all) != 0 {
			p.Errorf("pauses: %v, %v", all, err)
		}
	})
}

func TestAPauseHoldsNothingElse(t *testing.T) {
	eachPaused(t, func(p pausing) {
		for _, other := range []string{"hook:sent", "hook:remind", "alarm:send", "queue:send", "fsm:orders", "task:order", "queue:order", "task:send"} {
			enginetest.NoError(p, limit.Pause(p.Context(), p.eng, other, nil))
		}
		perduretest.Drain(p, p.kind.start(p.subject()))
		if *p.runs != 1 {
			p.Errorf("the work ran %d times", *p.runs)
		}
	})
}

func TestABadPauseIsRefused(t *testing.T) {
	t.Parallel()
	eng := enginetest.New(t, enginetest.SQLite).Open(t, nil)
	for _, target := range []string{"", "mail", "mail:", "queue:", "pool:mail", "queue: ", "queue:a\tb", "queue:" + string(make([]byte, 10<<20))} {
		enginetest.As[*fault.Invalid](t, limit.Pause(t.Context(), eng, target, nil))
		enginetest.As[*fault.Invalid](t, limit.Resume(t.Context(), eng, target))
	}
	for _, o := range []limit.PauseOptions{
		{Reason: string(make([]byte, 1001))}, {Actor: "a\x00"}, {Until: time.Date(12000, 1, 1, 0, 0, 0, 0, time.UTC)},
	} {
		enginetest.As[*fault.Invalid](t, limit.Pause(t.Context(), eng, "queue:mail", &o))
	}
}
