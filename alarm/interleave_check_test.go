package alarm

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/perdure/perdure/internal/core"
	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/test/interleave"
	"github.com/perdure/perdure/internal/work"
)

// rules are the invariants that PostgreSQL checks after each schedule, in addition to the
// rules of doctor: what each of them returns is broken.
var rules = map[string]string{
	"ready twice": `select id::text from perdure.ready group by id having count(*) > 1`,
	"interrupt without a lease": `select x.id::text from perdure.interrupts x
		where not exists (select 1 from perdure.leases l where l.token = x.token and x.id = any(l.ids))`,
	"interrupt of an alarm that exists": `select x.id::text from perdure.interrupts x join perdure.alarm_items h on h.id = x.id`,
	"failed attempt that is not recorded": `select h.id::text from perdure.alarm_items h
		where h.attempt > (select count(*) from perdure.attempts a where a.kind = 'alarm' and a.id = h.id::text and a.outcome = 'failed')`,
	"attempt recorded twice": `select a.id from perdure.attempts a where a.kind = 'alarm' group by a.id, a.attempt, a.worker having count(*) > 1`,
}

// invariants looks for broken invariants.
func (s *stage) invariants(ctx context.Context, db *sql.DB) error {
	var broken []string
	rt := host.Of(s.eng)
	run := sqldb.StdRunner{Conn: db, Dialect: rt.DB.Dialect()}
	for _, r := range store.Rules {
		if (r.Kind != "alarm" || r.Timed) && r.Name != "InvariantInterrupt" {
			continue
		}
		err := run.Run(ctx, rt.Store.Break(r, interleave.Dawn, func(v store.Violation) {
			broken = append(broken, fmt.Sprintf("%s: %s %s", v.Rule, v.ID, v.Detail))
		}))
		if err != nil {
			return err
		}
	}
	for rule, query := range rules {
		list := sqldb.Stmt{SQL: query, Row: func(scan sqldb.Scan) error {
			var id string
			err := scan(&id)
			broken = append(broken, rule+": "+id)
			return err
		}}
		if err := run.Run(ctx, list); err != nil {
			return err
		}
	}
	if len(broken) > 0 {
		return errors.New(strings.Join(broken, "; "))
	}
	return nil
}

// alive checks that nothing is lost: once all leases have expired, every alarm that is not
// dead is returned and can be claimed, once, and nothing else.
func (s *stage) alive(ctx context.Context, db *sql.DB) error {
	if _, err := db.ExecContext(ctx, `with h as (update perdure.alarm_items set crashes = 0, batch_limit = null)
		update perdure.leases set expires_at = '2025-01-01Z', alone = false`); err != nil {
		return err
	}
	want := interleave.Number(db, "select count(*) from perdure.alarm_items where dead is null and type = 'a'")
	a, err := s.newAlarms()
	if err != nil {
		return err
	}
	if err := a.runner.Transact(ctx, func(tx sqldb.Tx) error { return reap(ctx, a, tx) }); err != nil {
		return fmt.Errorf("reap: %w", err)
	}
	if _, err := db.ExecContext(ctx, `with h as (update perdure.alarm_items set due_at = '2025-01-01Z')
		update perdure.ready set due_at = '2025-01-01Z', suspect = false`); err != nil {
		return err
	}
	claims, err := a.runner.Queues()[0].Take(ctx, 10, time.Minute)
	if err != nil {
		return fmt.Errorf("claim: %w", err)
	}
	if len(claims) != want {
		return fmt.Errorf("%d alarms can be claimed, %d are not dead", len(claims), want)
	}
	if left := interleave.Number(db, "select count(*) from perdure.interrupts"); left != 0 {
		return fmt.Errorf("%d interrupts are left without a lease", left)
	}
	return nil
}

// reap does what a claim does first.
func reap(ctx context.Context, a *Alarms, tx sqldb.Tx) error {
	var leases []store.ExpiredLease
	list := a.rt.Store.ExpiredLeases(store.AlarmQueue, 10, a.rt.Now(), func(l store.ExpiredLease) { leases = append(leases, l) })
	if err := tx.Run(ctx, list); err != nil {
		return err
	}
	_, err := a.runner.Reap(ctx, tx, leases, &work.Wakeups{})
	return err
}

// state describes an alarm: its place, its payload and the seconds after dawn at which it
// is due. An alarm that does not exist is "gone".
func state(db *sql.DB, n int) (text string) {
	err := db.QueryRowContext(context.Background(), `select coalesce((
		select case when h.dead is not null then h.dead when r.id is not null then 'ready' else 'running' end
			|| ' ' || (h.payload #>> '{}') || ' ' || extract(epoch from h.due_at - timestamptz '2026-01-01Z')::integer
		from perdure.alarm_items h
		left join perdure.ready r on r.id = h.id
		where h.alarm_id = $1), 'gone')`, x(n).ID).Scan(&text)
	if err != nil {
		return err.Error()
	}
	return text
}

// is checks that the alarm 1 is in one of these states.
func is(db *sql.DB, want ...string) error {
	got := state(db, 1)
	for _, w := range want {
		if got == w {
			return nil
		}
	}
	return fmt.Errorf("alarm is %q, want %q", got, want)
}

// ends checks that the alarm 1 has one of these states, by what a session told.
func ends(of string, want map[any][]string) func(s *stage, db *sql.DB) error {
	return func(s *stage, db *sql.DB) error {
		states, known := want[s.Told(of)]
		if !known {
			return fmt.Errorf("%s told %v, want one of %v", of, s.Told(of), want)
		}
		return is(db, states...)
	}
}

// both checks several things.
func both(checks ...func(s *stage, db *sql.DB) error) func(s *stage, db *sql.DB) error {
	return func(s *stage, db *sql.DB) (err error) {
		for _, check := range checks {
			err = errors.Join(err, check(s, db))
		}
		return err
	}
}

// notified checks that there is a notification of every outcome that a session told to be
// committed, and no other.
func notified(of string) func(s *stage, db *sql.DB) error {
	return func(s *stage, db *sql.DB) error {
		want := 0
		if s.Told(of) == "committed" {
			want = 1
		}
		if got := interleave.Number(db, "select count(*) from perdure.alarm_items where type = 'perdure.notice'"); got != want {
			return fmt.Errorf("%d notifications, want %d", got, want)
		}
		return nil
	}
}

// isLoss reports whether a claim was not held any more.
func isLoss(err error) bool { return errors.Is(err, core.ErrLost) || errors.Is(err, core.ErrTaken) }
