package fsm_test

import (
	"context"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fsm"
)

// A step cancels its own instance in the transaction of its outcome: the instance is
// cancelled, its outcome is dropped, and its row is committed once. A machine that names a
// step for it compensates.
func TestAStepCanCancelItsInstanceInItsOutcome(t *testing.T) {
	for name, compensates := range map[string]bool{"ends": false, "compensates": true} {
		t.Run(name, func(t *testing.T) {
			var lost counter
			eachWith(t, *quiet(&lost), func(f *fixture) {
				t := f.t
				f.db.Exec(t, "create table written (n integer)")
				runs, undone := 0, 0
				var o with
				if compensates {
					o.OnCancel = "undo"
				}
				d := fsm.Define("self", 1, &o, fsm.Step("only", func(_ context.Context, r run) (fsm.Outcome, error) {
					runs++
					return r.Done(nil).With(func(tx *perdure.Tx) error {
						if _, err := tx.Exec("insert into written (n) values (1)"); err != nil {
							return err
						}
						return f.CancelIn(tx, r.ID, "changed my mind")
					}), nil
				}, nil), fsm.Step("undo", func(_ context.Context, r run) (fsm.Outcome, error) {
					undone++
					return r.Stop("undone"), nil
				}, nil))
				f.register(d)
				id := start(f, d, 0, nil)
				f.drain()
				if compensates && undone != 1 {
					t.Errorf("it was undone %d times", undone)
				}
				if !compensates {
					f.wantStatus(id, fsm.Cancelled)
				}
				if n := f.db.Int(t, "select count(*) from written"); n != 1 || runs != 1 {
					t.Errorf("it ran %d times, and %d rows are committed", runs, n)
				}
				f.wantGone()
				lost.is(t, "errors", 0)
			})
		})
	}
}
