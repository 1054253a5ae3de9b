package hook_test

import (
	"context"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/hook"
	"github.com/perdure/perdure/internal/test/enginetest"
)

// A handler cancels its own hook in the transaction of its outcome: the hook is cancelled,
// and the row of the handler is committed once.
func (Conformance) AHookCanCancelItselfInItsOutcome(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	db.Exec(t, "create table written (n integer)")
	f.handle(t, "a", func(ctx context.Context, _ string) error {
		id := hook.FromContext(ctx).ID
		return perdure.CommitWith(ctx, func(tx *perdure.Tx) error {
			if _, err := tx.Exec("insert into written (n) values (1)"); err != nil {
				return err
			}
			return f.admin.CancelIn(tx, id)
		})
	})
	id := f.trigger(t, "a", nil)
	f.process(t, 1)
	f.is(t, id, hook.Cancelled)
	equal(t, "rows of the application", db.Int(t, "select count(*) from written"), 1)
	for _, table := range []string{"ready", "leases", "interrupts"} {
		equal(t, "rows of "+table, f.db.Rows(t, "perdure", table), 0)
	}
}
