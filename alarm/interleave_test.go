package alarm

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/internal/test/interleave"
)

// These tests run the code of alarms, statement by statement, in every order that the locks
// of PostgreSQL allow, and look for broken invariants. Each pair is also run with mutants
// of single statements. Every mutant must be caught: otherwise the test proves nothing.

// stage is a database whose engine is stepped.
type stage struct {
	*interleave.Stage
	eng *perdure.Engine
	// notify has processes notify a webhook.
	notify bool
}

func newStage(t *testing.T, quiet ...string) *stage {
	t.Helper()
	db := enginetest.New(t, enginetest.Postgres)
	eng, err := perdure.Open(t.Context(), db.DSN, &perdure.Options{Clock: interleave.Still{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = eng.Close() })
	db.Exec(t, "create table written (id text not null)")
	return &stage{Stage: &interleave.Stage{URL: db.DSN, Dialect: host.Of(eng).DB.Dialect(), Quiet: quiet}, eng: eng}
}

// setup clears the tables and fills them.
func setup(fixture ...string) func(context.Context, *sql.DB) error {
	clear := interleave.Clear("perdure.alarm_items", "perdure.ready", "perdure.leases", "perdure.interrupts", "perdure.attempts", "written")
	return interleave.Statements(append([]string{clear}, fixture...)...)
}

// id returns an id of the fixtures, x the key of the alarm that has it.
func id(n int) string { return fmt.Sprintf("00000000-0000-7000-8000-%012d", n) }

func x(n int) Key { return Key{ID: fmt.Sprintf("x%d", n)} }

// The fixtures. All alarms were scheduled with the payload "old", for dawn.

const lane = store.AlarmQueue + "a"

// once is an alarm without a place.
func once(n int) string { return stored(n, "", "") }

// often is a recurring alarm without a place. It has a tick every minute.
func often(n int) string {
	return stored(n, ", every_us, base_at, missed, missed_cap", ", 60000000, '2026-01-01Z', 'once', 100")
}

func stored(n int, columns, values string) string {
	return fmt.Sprintf(`insert into perdure.alarm_items (id, actor_type, actor_id, alarm_id, type, queue, priority, due_at, occurs_at, sequence, generation, payload, policy, max_attempts, created_at%s)
		values ('%s', '', '', '%s', 'a', '%s', 0, '2026-01-01Z', '2026-01-01Z', %d, 1, '"old"', '{}', 9, '2026-01-01Z'%s)`, columns, id(n), x(n).ID, lane, n, values)
}

// isReady puts an alarm into its lane, due.
func isReady(n int) string {
	return fmt.Sprintf(`insert into perdure.ready (queue, priority, due_at, id) values ('%s', 0, '2026-01-01Z', '%s')`, lane, id(n))
}

// isDead makes an alarm a dead letter.
func isDead(n int) string {
	return fmt.Sprintf(`update perdure.alarm_items set dead = 'failed', error = 'no', attempt = 0 where id = '%s'`, id(n))
}

// lease is a lease on alarms, with so many seconds left.
func lease(token, left int, ids ...int) string {
	var list []string
	for _, n := range ids {
		list = append(list, id(n))
	}
	return fmt.Sprintf(`insert into perdure.leases (token, worker, queue, alone, claimed_at, expires_at, ids)
		values ('%s', 'w', '%s', false, '2025-12-31Z', timestamptz '2026-01-01Z' + interval '%d seconds', '{%s}')`,
		id(token), store.AlarmQueue, left, strings.Join(list, ","))
}

// pair is two or three sessions that meet.
type pair struct {
	quiet   []string
	fixture []string
	// notify has processes notify a webhook of outcomes.
	notify bool
	// sessions gets the mutations of the sessions, in their order; nil for the code as it
	// is.
	sessions func(s *stage, m []mutation) []interleave.Session
	// more checks what only this pair promises.
	more func(s *stage, db *sql.DB) error
	// mutants are the mutations of the sessions, by what they break.
	mutants map[string][]mutation
	// variants are sessions of which one breaks a rule in its code, by what it breaks.
	variants map[string]func(s *stage) []interleave.Session
	// alike says that the sessions never wait for each other.
	alike bool
}

// run explores a pair, its mutants and its variants.
func (p pair) run(t *testing.T) {
	t.Helper()
	t.Parallel()
	s := newStage(t, append(p.quiet, quietly...)...)
	s.notify = p.notify
	variants := map[string][]interleave.Session{}
	for name, sessions := range p.variants {
		variants[name] = sessions(s)
	}
	s.Run(t, interleave.Pair{
		Setup: setup(p.fixture...), Sessions: func(m []mutation) []interleave.Session { return p.sessions(s, m) },
		Mutants: p.mutants, Variants: variants, Alike: p.alike,
		Check: func(ctx context.Context, db *sql.DB) error {
			err := s.invariants(ctx, db)
			if p.more != nil {
				err = errors.Join(err, p.more(s, db))
			}
			if err == nil {
				err = s.alive(ctx, db)
			}
			return err
		},
	})
}
