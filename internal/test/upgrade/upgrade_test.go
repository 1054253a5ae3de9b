// Package upgrade tests that a database of the release before the tables of hooks changed
// is migrated, and its work finished. The fixtures and the program that made them are in
// testdata; see testdata/README.md.
package upgrade_test

import (
	"testing"
	"time"

	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/doctor"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/internal/test/testdb"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// TestOldWorkIsFinished opens databases that the old release left in the middle of its
// work. All that was live is run once, at its time; all that had ended stays as it was.
func TestOldWorkIsFinished(t *testing.T) {
	t.Parallel()
	for _, name := range enginetest.Names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, before := load(t, name)
			p := start(t, db)
			p.healthy()
			p.compareUnrun(before)
			p.compareTables(db)
			p.finish()
			p.healthy()
			p.compareEnds(before)
			p.compareTables(db)
		})
	}
}

// healthy ends the test if the doctor finds anything broken.
func (p *process) healthy() {
	p.t.Helper()
	results, err := doctor.Run(enginetest.Context(p.t), p.eng, doctor.Options{})
	enginetest.NoError(p.t, err)
	for _, r := range results {
		if r.Severity == doctor.Broken && r.Name != "durability" { // servers of tests do not sync
			p.t.Errorf("doctor: %s: %+v", r.Name, r.Findings)
		}
	}
}

// finish runs all work to its end.
func (p *process) finish() {
	p.t.Helper()
	p.expect(0,
		`hook "dead chosen" attempt 1`, `hook "dead new" attempt 1`,
		`hook "pending chosen" attempt 1`, `hook "pending new" attempt 1`,
		`hook "pending secret chosen" attempt 1`, `hook "pending secret new" attempt 1`,
		`hook "pending shared" attempt 1`,
		`hook "suspect chosen" attempt 1 crashes 2`, `hook "suspect new" attempt 1 crashes 2`,
		`hook "urgent chosen" attempt 1`, `hook "urgent new" attempt 1`,
		`alarm "dead" attempt 1`, `alarm "pending" attempt 1`, `alarm "pending secret" attempt 1`,
		`alarm "recurring" attempt 1`, `alarm "suspect alarm" attempt 1 crashes 2`,
		`step begin "dead" attempt 1 crashes 1`, `step begin "ready" attempt 1`, `step begin "ready secret" attempt 1`,
		`task "dead" attempt 1 crashes 1`, `task "pending" attempt 1`, `task "Order" attempt 1`,
		`effect "dead sent" attempt 1`, `effect "pending sent" attempt 1`,
		`invocation "dead paid" attempt 1`, `invocation "pending paid" attempt 1`, `invocation "pending secret" attempt 1`,
	)
	p.signal("awaiting signal", "paid")
	p.signal("awaiting first", "paid")
	p.signal("waiting child", "go")
	p.expect(time.Second, `step paid "awaiting signal" attempt 1`,
		`step paid "awaiting first" attempt 1`, `step begin "ready second" attempt 1`,
		`step end "waiting child" attempt 1`, `step join "parent" attempt 1`)
	p.expect(30*time.Second - time.Microsecond)
	p.expect(31*time.Second,
		`hook "live chosen" attempt 1`, `hook "live new" attempt 1`,
		`alarm "live" attempt 1`, `step begin "live" attempt 1 crashes 1`, `task "live" attempt 1 crashes 1`,
		`effect "live sent" attempt 1`, `invocation "live paid" attempt 1`)
	p.expect(time.Hour, `alarm "recurring" attempt 1`, `step begin "tick" attempt 1`)
	p.expect(2*time.Hour - time.Microsecond)
	p.expect(2*time.Hour,
		`hook "retrying chosen" attempt 3`, `hook "retrying new" attempt 3`,
		`hook "scheduled chosen" attempt 1`, `hook "scheduled new" attempt 1`,
		`alarm "owned" attempt 1`, `alarm "recurring" attempt 1`, `alarm "retrying" attempt 3`, `alarm "scheduled" attempt 1`,
		`step begin "retrying" attempt 2`, `step begin "scheduled" attempt 1`, `step begin "tick" attempt 1`,
		`task "scheduled" attempt 1`,
		`effect "retrying sent" attempt 2`, `invocation "retrying paid" attempt 2`)
	p.stopTicks()
	p.expect(4 * time.Hour) // an instance fails at its deadline
	p.expect(5*time.Hour, `step paid "awaiting timeout" attempt 1`)
}

// signal sends a signal to the instance with a label.
func (p *process) signal(label, name string) {
	p.t.Helper()
	if !p.whole {
		return
	}
	for _, i := range p.instances() {
		if labelOf(i.Record) == label {
			_, err := fsm.Send(enginetest.Context(p.t), p.eng, i.Record.ID, name, label, nil)
			enginetest.NoError(p.t, err)
			return
		}
	}
	p.t.Fatalf("there is no instance %q", label)
}
