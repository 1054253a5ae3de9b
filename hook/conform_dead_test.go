package hook_test

import (
	"testing"
	"time"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/hook"
	"github.com/perdure/perdure/internal/test/enginetest"
)

func (Conformance) DeadLettersArePurgedSeparately(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	fill(t, db, 1500, "failed")
	ctx := enginetest.Context(t)
	removed, err := f.admin.Purge(ctx, 0)
	enginetest.NoError(t, err)
	equal(t, "removed with the others", removed, 0)
	removed, err = f.admin.PurgeDead(ctx, 1_000_000*time.Hour)
	enginetest.NoError(t, err)
	equal(t, "removed that are younger", removed, 0)
	removed, err = f.admin.PurgeDead(ctx, time.Hour)
	enginetest.NoError(t, err)
	equal(t, "removed", removed, 1500)
	equal(t, "rows", f.hooksRows(t), 0)
	_, err = f.admin.PurgeDead(ctx, -1)
	enginetest.As[*fault.Invalid](t, err)
}

func (Conformance) DeadLettersAreRemovedAfterTheirRetention(t *testing.T, db enginetest.Database) {
	for keep, left := range map[time.Duration]int64{0: 0, -1: 3} { // 30 days; no limit
		f := newFixture(t, enginetest.New(t, db.Name), &hook.Options{DeadRetention: keep})
		fill(t, f.db, 3, "quarantined")
		f.handle(t, "ok", nil)
		f.trigger(t, "ok", nil)
		f.process(t, 1) // a sweep follows
		equal(t, "dead letters", f.hooksRows(t)-1, left)
	}
}
