package alarm_test

import (
	"errors"
	"testing"
	"time"

	"github.com/perdure/perdure/alarm"
	"github.com/perdure/perdure/internal/failpoint"
	"github.com/perdure/perdure/internal/test/enginetest"
)

// Case 33 of the notes: a process may die at every commit boundary; success is the
// row gone, also if it dies right after that. Failpoints are of the whole program,
// so these tests do not run beside others.
func TestCase33DeathAtEveryCommitBoundary(t *testing.T) {
	for point, want := range map[string]struct {
		fires, again int // of the handler; by the process that follows
		crashes      int // as the last handler saw them
	}{
		"core.claimed":   {fires: 1, again: 1, crashes: 1}, // claimed, not yet fired
		"alarm.executed": {fires: 2, again: 1, crashes: 1}, // the effect happened, its record did not
		"alarm.settled":  {fires: 1, again: 0},             // everything happened
	} {
		for _, name := range databases {
			t.Run(point+"/"+name, func(t *testing.T) {
				f := newFixture(t, enginetest.New(t, name), &alarm.Options{Lease: 10 * time.Second, OnError: func(error) {}})
				f.handle(t, "a", nil)
				f.schedule(t, "x", "a", nil)
				died := func() error { return errors.New("died") }
				defer failpoint.Set("core.resolve", died)() // who is dead returns nothing
				defer failpoint.Set(point, died)()
				_, _ = f.alarms.Process(enginetest.Context(t)) // dies
				failpoint.Set(point, func() error { return nil })()
				f.alarms = newAlarms(t, f.eng, &alarm.Options{Lease: 10 * time.Second}) // the process that follows
				f.handle(t, "a", nil)
				f.process(t, 0) // the lease still holds
				f.clock.Advance(10 * time.Second)
				f.process(t, want.again)
				f.rows(t, 0)
				equal(t, "fires", f.runs.count(), want.fires)
				equal(t, "crashes", f.runs.last().Crashes, want.crashes)
				for _, info := range f.runs.all() {
					equal(t, "key", info.Key, f.runs.all()[0].Key)
				}
			})
		}
	}
}
