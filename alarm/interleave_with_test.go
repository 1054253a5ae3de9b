package alarm

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/internal/test/interleave"
)

// write is the body of a transaction that records the outcome of the claim with a token
// and, unless that is stale, a row of the application, as commitWith does. A careless one
// does not look.
func (s *stage) write(token string, careless bool) body {
	row := store.Alarm{AlarmKey: store.AlarmKey{ID: "x"}, Type: "a", Generation: 1, Payload: "1", Policy: "{}", Occurs: dawn}
	f := &fire{row: row, plan: plan{scheduled: dawn}}
	return func(ctx context.Context, tx sqldb.Runner) error {
		o := s.alarms.outcome(f, f.hold(token), nil)
		if err := tx.Run(ctx, o.stmts...); err != nil {
			return err
		}
		if o.stale && !careless {
			return errStale
		}
		return tx.Run(ctx, sqldb.Exec("insert into written (n) values (1)"))
	}
}

// lenient is a session that ends when its outcome is stale.
func lenient(session interleave.Session) interleave.Session {
	run := session.Run
	session.Run = func(ctx context.Context, c *interleave.Conn) error {
		if err := run(ctx, c); !errors.Is(err, errStale) {
			return err
		}
		return nil
	}
	return session
}

// A process whose lease has expired commits a row with its outcome, while another one
// returns the claim, makes it again and does the same. There is one row, or the alarm is
// still to be fired.
func TestRowsOfAnExpiredClaimMeetTheReaper(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	enginetest.Database{Name: enginetest.Postgres, DSN: s.url}.Exec(t, "create table written (n integer)")
	test := func(careless bool) interleave.Test {
		claim := func(ctx context.Context, tx sqldb.Runner) error {
			return tx.Run(ctx, s.alarms.rt.Store.ClaimAlarms(store.AlarmClaim{
				Types: []string{"a"}, Worker: "next", Token: "next", Lease: time.Minute, Limit: 10,
			}, s.alarms.rt.Now(), func(store.Alarm) {}))
		}
		reap := func(ctx context.Context, tx sqldb.Runner) error {
			st, now := s.alarms.rt.Store, s.alarms.rt.Now()
			var expired []store.LostAlarm
			if err := tx.Run(ctx, st.ExpiredAlarms(10, now, func(l store.LostAlarm) { expired = append(expired, l) })); err != nil {
				return err
			}
			_, err := st.ReturnAlarms(ctx, tx, expired, s.alarms.judge, lost, now)
			return err
		}
		return interleave.Test{
			URL: s.url, Isolation: "READ COMMITTED",
			Sessions: []interleave.Session{lenient(s.transactions("late", mutation{}, s.write("t", careless))), lenient(s.transactions("next", mutation{}, reap, claim, s.write("next", careless)))},
			Setup: func(ctx context.Context, db *sql.DB) error {
				s.told = map[string]int{}
				clear := interleave.Clear("perdure.alarms", "perdure.attempts", "written")
				return interleave.Statements(append([]string{clear}, held("2025-12-31Z")...)...)(ctx, db)
			},
			Check: func(ctx context.Context, db *sql.DB, o interleave.Outcome) error {
				for name, failed := range o.Errors {
					return fmt.Errorf("session %s: %w", name, failed)
				}
				var rows, left int
				err := db.QueryRowContext(ctx, "select (select count(*) from written), (select count(*) from perdure.alarms where alarm_id = 'x')").Scan(&rows, &left)
				if err == nil && rows+left != 1 {
					err = fmt.Errorf("%d rows were committed, and %d alarms are left", rows, left)
				}
				return err
			},
		}
	}
	interleave.Run(t, test(false))
	if report, err := interleave.Explore(t.Context(), test(true)); err != nil || len(report.Failures) == 0 {
		t.Errorf("a mutant that does not look whether its outcome is stale is not caught in %d schedules: %v", report.Schedules, err)
	}
}
