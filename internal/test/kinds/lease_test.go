package kinds

import (
	"context"
	"strconv"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/alarm"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/hook"
	"github.com/perdure/perdure/internal/test/enginetest"
)

type drainable interface {
	dispatch.Processor
	Drain(ctx context.Context) error
}

// pairs start two work items that one claim takes. run is called with 1 and 2.
var pairs = map[string]func(t *testing.T, eng *perdure.Engine, run func(ctx context.Context, n int) error) drainable{
	"hook": func(t *testing.T, eng *perdure.Engine, run func(context.Context, int) error) drainable {
		hooks, err := hook.New(eng, "shop", nil)
		enginetest.NoError(t, err)
		h, err := hook.Define(hooks, "send", run, nil)
		enginetest.NoError(t, err)
		enginetest.NoError(t, eng.Update(t.Context(), func(tx *perdure.Tx) error {
			for n := 1; n <= 2; n++ {
				if _, err := h.TriggerIn(tx, n, nil); err != nil {
					return err
				}
			}
			return nil
		}))
		return hooks
	},
	"alarm": func(t *testing.T, eng *perdure.Engine, run func(context.Context, int) error) drainable {
		alarms, err := alarm.New(eng, nil)
		enginetest.NoError(t, err)
		remind, err := alarm.Handle(alarms, "remind", run, nil)
		enginetest.NoError(t, err)
		enginetest.NoError(t, eng.Update(t.Context(), func(tx *perdure.Tx) error {
			for n := 1; n <= 2; n++ {
				if err := remind.ScheduleIn(tx, alarm.ID(strconv.Itoa(n)), n, nil); err != nil {
					return err
				}
			}
			return nil
		}))
		return alarms
	},
}

// Each of two outcomes that are committed at the same time finds the other claim in their
// lease. The lease is removed all the same. A deferred trigger holds the first one in its
// COMMIT until the second one is committed.
func TestConcurrentOutcomesLeaveNoLease(t *testing.T) {
	t.Parallel()
	for name, start := range pairs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := enginetest.New(t, enginetest.Postgres)
			eng := db.Open(t, nil)
			for _, statement := range []string{
				"create table written (n integer not null)",
				`create function wait() returns trigger language plpgsql as $$
				begin
					if new.n = 1 then perform pg_advisory_xact_lock(42); end if;
					return null;
				end $$`,
				"create constraint trigger waits after insert on written deferrable initially deferred for each row execute function wait()",
			} {
				db.Exec(t, statement)
			}
			gate, err := db.SQL(t).BeginTx(t.Context(), nil)
			enginetest.NoError(t, err)
			defer func() { _ = gate.Rollback() }()
			_, err = gate.ExecContext(t.Context(), "select pg_advisory_xact_lock(42)")
			enginetest.NoError(t, err)
			first := make(chan struct{})
			p := start(t, eng, func(ctx context.Context, n int) error {
				if n == 2 {
					<-first
				}
				return perdure.CommitWith(ctx, func(tx *perdure.Tx) error {
					_, err := tx.Exec("insert into written (n) values (" + strconv.Itoa(n) + ")")
					return err
				})
			})
			processed := make(chan error, 1)
			go func() {
				_, err := p.Process(context.Background())
				processed <- err
			}()
			enginetest.Eventually(t, "the first outcome is in its COMMIT", func() bool {
				return db.Int(t, "select count(*) from pg_locks where locktype = 'advisory' and not granted and database = (select oid from pg_database where datname = current_database())") == 1
			})
			if n := db.Rows(t, "perdure", "leases"); n != 1 {
				t.Fatalf("there are %d leases, want one for both", n)
			}
			close(first)
			enginetest.Eventually(t, "the second outcome is committed", func() bool { return db.Int(t, "select count(*) from written") == 1 })
			enginetest.NoError(t, gate.Rollback())
			enginetest.NoError(t, <-processed)
			enginetest.NoError(t, p.Drain(context.Background()))
			if n := db.Rows(t, "perdure", "leases"); n != 0 {
				t.Errorf("%d leases are left", n)
			}
		})
	}
}
