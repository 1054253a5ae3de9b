package effect

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

// These tests run the code of hooks, statement by statement, in every order that the locks
// of PostgreSQL allow, and look for broken invariants. Each pair is also run with mutants
// of single statements. Every mutant must be caught: otherwise the test proves nothing.

// stage is a database whose engine is stepped.
type stage struct {
	*interleave.Stage
	eng *perdure.Engine
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
	clear := interleave.Clear("perdure.hook_items", "perdure.hook_ends", "perdure.ready", "perdure.leases", "perdure.interrupts", "perdure.attempts", "written")
	return interleave.Statements(append([]string{clear}, fixture...)...)
}

// id returns an id of the fixtures.
func id(n int) string { return fmt.Sprintf("00000000-0000-7000-8000-%012d", n) }

const (
	space = "n"
	lane  = "hook\t" + space + "\tm"
)

// hook is a fixture: a hook without a place.
func hook(n int) string {
	return fmt.Sprintf(`insert into perdure.hook_items (id, namespace, name, queue, payload, priority, policy, max_attempts, unit_id, created_at, due_at)
		values ('%s', '%s', 'm', '%s', '1', 0, '{}', 9, 'u', '2026-01-01Z', '2026-01-01Z')`, id(n), space, lane)
}

// isReady is a fixture: the hook is due.
func isReady(n int) string {
	return fmt.Sprintf(`insert into perdure.ready (queue, priority, due_at, id) values ('%s', 0, '2026-01-01Z', '%s')`, lane, id(n))
}

// isFailed is a fixture: the hook has failed.
func isFailed(n int) string {
	return fmt.Sprintf(`insert into perdure.hook_ends (id, status, error, created_at, finished_at) values ('%s', 'failed', 'no', '2026-01-01Z', '2026-01-01Z')`, id(n))
}

// lease is a fixture: a lease on hooks, with so many seconds left.
func lease(token, left int, ids ...int) string {
	var list []string
	for _, n := range ids {
		list = append(list, id(n))
	}
	return fmt.Sprintf(`insert into perdure.leases (token, worker, queue, alone, claimed_at, expires_at, ids)
		values ('%s', 'w', '%s', false, '2025-12-31Z', timestamptz '2026-01-01Z' + interval '%d seconds', '{%s}')`,
		id(token), store.HookQueue(space), left, strings.Join(list, ","))
}

// pair is two sessions that meet.
type pair struct {
	quiet   []string
	fixture []string
	// sessions gets the mutations of the sessions, in their order; nil for the code as it
	// is.
	sessions func(s *stage, mutate []mutation) []interleave.Session
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
	s := newStage(t, p.quiet...)
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
