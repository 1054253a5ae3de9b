package hook_test

import (
	"errors"
	"testing"
	"time"

	"github.com/perdure/perdure/hook"
	"github.com/perdure/perdure/internal/failpoint"
	"github.com/perdure/perdure/internal/test/enginetest"
)

// A process may die at every commit boundary. Failpoints are of the whole
// program, so these tests do not run beside others.
func TestDeathAtEveryCommitBoundary(t *testing.T) {
	for point, want := range map[string]struct {
		executions, again int // of the handler; by the process that follows
		crashes           int
	}{
		"core.claimed":  {executions: 1, again: 1, crashes: 1}, // claimed, not yet executed
		"hook.executed": {executions: 2, again: 1, crashes: 1}, // the effect happened, its record did not
		"hook.settled":  {executions: 1, again: 0, crashes: 0}, // everything happened
	} {
		for _, name := range enginetest.Names {
			t.Run(point+"/"+name, func(t *testing.T) {
				f := newFixture(t, enginetest.New(t, name), &hook.Options{Lease: 10 * time.Second, OnError: func(error) {}})
				f.handle(t, "a", nil)
				id := f.trigger(t, "a", nil)
				died := func() error { return errors.New("died") }
				defer failpoint.Set("core.resolve", died)() // who is dead returns nothing
				defer failpoint.Set(point, died)()
				_, _ = f.hooks.Process(enginetest.Context(t)) // dies
				failpoint.Set(point, func() error { return nil })()
				f.hooks = newHooks(t, f.eng, "test", &hook.Options{Lease: 10 * time.Second}) // the process that follows
				f.handle(t, "a", nil)
				f.process(t, 0) // the lease still holds
				f.clock.Advance(10 * time.Second)
				f.process(t, want.again)
				r := f.is(t, id, hook.Done)
				equal(t, "attempts", r.Attempts, 1)
				equal(t, "crashes", r.Crashes, want.crashes)
				equal(t, "executions", f.runs.count(), want.executions)
				for _, info := range f.runs.all() {
					equal(t, "key", info.Key, id)
				}
			})
		}
	}
}
