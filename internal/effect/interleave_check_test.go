package effect

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
	"ready as another suspect": `select h.id::text from perdure.ready r join perdure.hook_items h on h.id = r.id
		where r.suspect <> (h.batch_limit is not null)`,
	"interrupt without a lease": `select x.id::text from perdure.interrupts x where not exists (select 1 from perdure.leases l where l.token = x.token and x.id = any(l.ids))`,
	"held by a claim that was taken away": `select h.id::text from perdure.hook_items h
		where not exists (select 1 from perdure.hook_ends e where e.id = h.id) and not exists (select 1 from perdure.ready r where r.id = h.id)
			and (select exists (select 1 from perdure.interrupts x where x.id = h.id and x.token = l.token)
				from perdure.leases l where h.id = any(l.ids) order by l.seq desc limit 1)`,
	"cancelled with an outcome": `select e.id::text from perdure.hook_ends e where e.status = 'cancelled' and (e.worker is not null or e.error is not null)`,
	"failed attempt that is not recorded": `select h.id::text from perdure.hook_items h
		where h.attempt > (select count(*) from perdure.attempts a where a.kind = 'hook' and a.id = h.id::text and a.outcome = 'failed')`,
	"attempt recorded twice": `select a.id from perdure.attempts a where a.kind = 'hook' group by a.id, a.attempt, a.worker having count(*) > 1`,
}

// invariants looks for broken invariants.
func (s *stage) invariants(ctx context.Context, db *sql.DB) error {
	var broken []string
	rt := host.Of(s.eng)
	run := sqldb.StdRunner{Conn: db, Dialect: rt.DB.Dialect()}
	for _, r := range store.Rules {
		if r.Kind != "hook" || r.Timed {
			continue
		}
		err := run.Run(ctx, rt.Store.Break(r, interleave.Dawn, func(v store.Violation) {
			broken = append(broken, fmt.Sprintf("%s: %s %s", v.Rule, v.ID[34:], v.Detail))
		}))
		if err != nil {
			return err
		}
	}
	for rule, query := range rules {
		list := sqldb.Stmt{SQL: query, Row: func(scan sqldb.Scan) error {
			var id string
			err := scan(&id)
			broken = append(broken, rule+": "+id[34:])
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

// alive checks that nothing is lost: once all leases have expired, every hook that has not
// ended is returned and can be claimed, and nothing else.
func (s *stage) alive(ctx context.Context, db *sql.DB) error {
	if _, err := db.ExecContext(ctx, "update perdure.leases set expires_at = '2025-01-01Z'"); err != nil {
		return err
	}
	want := interleave.Number(db, "select count(*) from perdure.hook_items h where not exists (select 1 from perdure.hook_ends e where e.id = h.id)")
	r := s.newRunner()
	err := r.Transact(ctx, func(tx sqldb.Tx) error { return reap(ctx, r, tx) })
	if err != nil {
		return fmt.Errorf("reap: %w", err)
	}
	if _, err := db.ExecContext(ctx, `with h as (update perdure.hook_items set due_at = '2025-01-01Z', batch_limit = null)
		update perdure.ready set due_at = '2025-01-01Z', suspect = false`); err != nil {
		return err
	}
	claims, err := r.Queues()[0].Take(ctx, 10, time.Minute)
	if err != nil {
		return fmt.Errorf("claim: %w", err)
	}
	if len(claims) != want {
		return fmt.Errorf("%d hooks can be claimed, %d have not ended", len(claims), want)
	}
	if left := interleave.Number(db, "select count(*) from perdure.interrupts"); left != 0 {
		return fmt.Errorf("%d interrupts are left without a lease", left)
	}
	return nil
}

// reap does what a claim does first.
func reap(ctx context.Context, r *Runner, tx sqldb.Tx) error {
	var leases []store.ExpiredLease
	list := r.rt.Store.ExpiredLeases(store.HookQueue(space), 10, r.rt.Now(), func(l store.ExpiredLease) { leases = append(leases, l) })
	if err := tx.Run(ctx, list); err != nil {
		return err
	}
	_, err := r.Reap(ctx, tx, leases, &work.Wakeups{})
	return err
}

// statusOf returns the status of a hook that has ended, and "live" or "gone" for others.
func statusOf(db *sql.DB, n int) (status string) {
	err := db.QueryRowContext(context.Background(), `select coalesce((select e.status from perdure.hook_ends e where e.id = $1::uuid),
		case when exists (select 1 from perdure.hook_items h where h.id = $1::uuid) then 'live' else 'gone' end)`, id(n)).Scan(&status)
	if err != nil {
		return err.Error()
	}
	return status
}

// isLoss reports whether a claim was not held any more.
func isLoss(err error) bool { return errors.Is(err, core.ErrLost) || errors.Is(err, core.ErrTaken) }
