package store

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/internal/sqldb"
)

// hookStep is the migration that moves hooks to the tables of due and running work.
const hookStep = 27

// oldHook is a row of the table that the migration replaces.
type oldHook struct {
	id, name, status            string
	priority, attempts, crashes int
	limit                       *int
	fault                       *string
	created, due                time.Time
	next, last, finished, lease *time.Time
	worker, token               *string
	trace                       *string
}

var oldEpoch = time.Date(2026, 3, 4, 5, 6, 7, 123456000, time.UTC)

// minute returns a time, in minutes after the first one, with a fraction.
func minute(n int) time.Time { return oldEpoch.Add(time.Duration(n) * time.Minute) }

// oldHooks are hooks of every status, each with an id that is a UUID and with one that
// users chose.
func oldHooks() []oldHook {
	var all []oldHook
	for i, form := range []string{"018f4e5a-0000-7abc-8def-%012x", "order %d – für Ünal"} {
		n := 0
		add := func(status string, change func(*oldHook)) {
			n++
			h := oldHook{id: fmt.Sprintf(form, n), name: "send", status: status, created: minute(n), due: minute(n + 20 - 3*i)}
			if change != nil {
				change(&h)
			}
			all = append(all, h)
		}
		add("pending", nil)
		add("pending", func(h *oldHook) { // scheduled
			h.name, h.priority, h.due = "later", 1, minute(1e6)
			h.next = new(h.due)
		})
		add("pending", func(h *oldHook) { // a suspect that waits for its next attempt
			h.priority, h.attempts, h.crashes, h.limit, h.fault = -1, 2, 3, new(4), new("crashed: it's over")
			h.next, h.last, h.trace = new(h.due), new(minute(n)), new("00-trace-01")
		})
		add("processing", func(h *oldHook) { // its lease ends after its due time
			h.attempts, h.worker, h.token, h.last = 1, new("host-1"), new("00000000-0000-4000-8000-000000000001"), new(minute(n))
			h.lease = new(h.due.Add(30 * time.Second))
		})
		add("completed", func(h *oldHook) {
			h.attempts, h.last, h.finished, h.worker = 2, new(minute(n)), new(minute(n+1)), new("host-1")
		})
		add("failed", func(h *oldHook) {
			h.attempts, h.fault, h.last, h.finished = 5, new("refused"), new(minute(n)), new(minute(n+1))
		})
		add("quarantined", func(h *oldHook) {
			h.crashes, h.fault, h.limit, h.finished = 5, new("crashed"), new(1), new(minute(n+1))
		})
		add("cancelled", func(h *oldHook) { h.finished = new(minute(n + 1)) })
	}
	return all
}

// before returns a database without the migrations from version on, with hooks and attempts
// that were stored before hookStep.
func before(t *testing.T, dialect string, version int, hooks []oldHook) (sqldb.DB, *Store, Migration) {
	t.Helper()
	db, err := open(t, dialect)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	st, err := New(db)
	if err != nil {
		t.Fatal(err)
	}
	steps, err := Migrations(db.Dialect())
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(steps, func(m Migration) bool { return m.Version == version })
	if at < 0 {
		t.Fatalf("there is no migration %d", version)
	}
	err = db.Exclusively(t.Context(), func(run sqldb.Runner) error {
		for _, text := range bootstrap[dialect] {
			if err := run.Run(t.Context(), sqldb.Exec(text)); err != nil {
				return err
			}
		}
		first := slices.IndexFunc(steps, func(m Migration) bool { return m.Version == hookStep })
		for _, m := range steps[:first] {
			if err := st.apply(t.Context(), run, m, oldEpoch); err != nil {
				return err
			}
		}
		for _, h := range hooks {
			if err := run.Run(t.Context(), old(db.Dialect(), h)...); err != nil {
				return err
			}
		}
		for _, m := range steps[first:at] {
			if err := st.apply(t.Context(), run, m, oldEpoch); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return db, st, steps[at]
}

// old returns the statements that insert a hook, with two attempts, into the tables before
// the migration.
func old(d sqldb.Dialect, h oldHook) []sqldb.Stmt {
	own := func(text string, args ...any) sqldb.Stmt {
		return sqldb.Stmt{SQL: d.Rebind(localize(d, text)), Args: args}
	}
	stmts := []sqldb.Stmt{own(`insert into perdure.hooks (id, namespace, name, payload, status, priority, policy, max_attempts, attempts, crashes, batch_limit, error, unit_id, trace,
		created_at, next_attempt_at, due_at, last_attempt_at, finished_at, worker, token, lease_expires_at)
		values (?, 'shop', ?, '{"a":1}', ?, ?, '{"p":2}', 5, ?, ?, ?, ?, 'unit', ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		h.id, h.name, h.status, h.priority, h.attempts, h.crashes, h.limit, h.fault, h.trace, h.created, h.next, h.due, h.last, h.finished, h.worker, h.token, h.lease)}
	for seq := 1; seq <= 2; seq++ {
		stmts = append(stmts, own(`insert into perdure.attempts (kind, id, seq, attempt, outcome, error, ended_at) values ('hook', ?, ?, ?, 'failed', ?, ?)`,
			h.id, seq, seq, "attempt of "+h.id, oldEpoch))
	}
	return stmts
}

// run runs statements in a transaction that is committed.
func run(t *testing.T, db sqldb.DB, stmts ...sqldb.Stmt) error {
	t.Helper()
	tx, err := db.Begin(t.Context(), sqldb.Write)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if err := tx.Run(t.Context(), stmts...); err != nil {
		return err
	}
	return tx.Commit(t.Context())
}

// texted returns the rows of a query as texts, columns separated by a bar. Its columns must
// be texts.
func texted(t *testing.T, db sqldb.DB, columns int, query string, args ...any) []string {
	t.Helper()
	d := db.Dialect()
	var all []string
	err := sqldb.Each(t.Context(), db, func(scan sqldb.Scan) error {
		values, dest := make([]*string, columns), make([]any, columns)
		for i := range values {
			dest[i] = &values[i]
		}
		if err := scan(dest...); err != nil {
			return err
		}
		var texts []string
		for _, v := range values {
			if v == nil {
				v = new("null")
			}
			texts = append(texts, *v)
		}
		all = append(all, strings.Join(texts, "|"))
		return nil
	}, d.Rebind(localize(d, query)), args...)
	if err != nil {
		t.Fatalf("%v\n%s", err, query)
	}
	return all
}

// viewed returns the hooks as the view shows them, by their ids.
func viewed(t *testing.T, db sqldb.DB) map[string]oldHook {
	t.Helper()
	d := db.Dialect()
	all := map[string]oldHook{}
	err := sqldb.Each(t.Context(), db, func(scan sqldb.Scan) error {
		var h oldHook
		var namespace, payload, policy, unit string
		var most int
		err := scan(&h.id, &namespace, &h.name, &payload, &h.status, &h.priority, &policy, &most, &h.attempts, &h.crashes, &h.limit, &h.fault, &unit, &h.trace,
			&h.created, &h.next, &h.due, &h.last, &h.finished, &h.worker, &h.lease)
		if got := fmt.Sprint(namespace, payload, policy, most, unit); err == nil && got != `shop{"a":1}{"p":2}5unit` {
			t.Errorf("%s has %s", h.id, got)
		}
		all[h.id] = h
		return err
	}, d.Rebind(localize(d, `select id, namespace, name, payload, status, priority, policy, max_attempts, attempts, crashes, batch_limit, error, unit_id, trace,
		created_at, next_attempt_at, due_at, last_attempt_at, finished_at, worker, lease_expires_at from perdure.hooks`)))
	if err != nil {
		t.Fatal(err)
	}
	return all
}
