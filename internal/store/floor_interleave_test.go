package store

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/test/interleave"
	"github.com/perdure/perdure/internal/test/testdb"
)

// The sessions of these tests: a claim of up to two rows, and those that add, remove and move
// rows of the lane.
const (
	// later is a transaction that ends before others that began earlier.
	later = "select pg_current_xact_id()"

	oldRow   = "insert into perdure.ready (queue, priority, due_at, id) values ('q', 0, now() - interval '1 hour', gen_random_uuid())"
	newRow   = "insert into perdure.ready (queue, priority, due_at, id) values ('q', 0, now(), gen_random_uuid())"
	movedRow = "update perdure.ready set due_at = due_at - interval '1 day' where ctid = (select ctid from perdure.ready order by due_at desc limit 1 for update)"
	goneRow  = "delete from perdure.ready where ctid = (select ctid from perdure.ready order by due_at limit 1 for update)"
)

// floorClaim returns the statement that claims, without placeholders.
func floorClaim(t *testing.T) string {
	loaded, err := load(sqldb.Dialect{Name: sqldb.Postgres})
	if err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer("$1", "'q'", "$2::timestamptz", "null::timestamptz", "$3", "2", "$4::uuid", "gen_random_uuid()", "$5", "'w'", "$6", "false", "$7::bigint", "60000000").
		Replace(loaded.plain["InstanceClaim"])
}

// Every order of the statements of a claim and of a session that adds, removes or moves rows, or
// claims as well: each row is taken once, and none stays behind.
func TestEveryOrderOfClaimsAndArrivals(t *testing.T) {
	t.Parallel()
	claim := floorClaim(t)
	claims := interleave.SQL("c", later, "begin", claim, "commit")
	for name, other := range map[string][]string{
		"a late commit":          {"begin", oldRow, "commit"},
		"a late commit, due now": {"begin", newRow, "commit"},
		"a rollback":             {"begin", oldRow, "rollback"},
		"a cancel":               {"begin", goneRow, "commit"},
		"a cancel, rolled back":  {"begin", goneRow, "rollback"},
		"a move":                 {"begin", movedRow, "commit"},
		"a claim":                {"begin", claim, "commit"},
		"a claim, rolled back":   {"begin", claim, "rollback"},
		"a claim that returns":   {"begin", newRow, claim, oldRow, "commit"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			interleave.Run(t, floorTest(t, claim, claims, interleave.SQL("o", other...)))
		})
	}
}

// Each part of the statement is needed in some order.
func TestEveryPartOfAFloorIsNeeded(t *testing.T) {
	t.Parallel()
	claim := floorClaim(t)
	for name, m := range map[string]struct {
		part, instead string
		other         []string
	}{
		"open transactions":   {"asked.open || pg_current_xact_id()", "array[pg_current_xact_id()]", []string{"begin", oldRow, "commit"}},
		"own transaction":     {"asked.open || pg_current_xact_id()", "asked.open", []string{"begin", newRow, "{claim}", oldRow, "commit"}},
		"arrivals":            {"w.arrived >= l.seen_to and w.arrived < asked.seen_to", "false", []string{"begin", oldRow, "commit"}},
		"pins":                {"case when b.n between 1 and 1000 then b.all_at else '{}' end", "'{}'::timestamptz[]", []string{"begin", oldRow, oldRow, oldRow, "commit"}},
		"the first row stays": {"when f.id is not null then f.at", "", []string{"begin", "{claim}", "rollback"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if !strings.Contains(claim, m.part) {
				t.Fatal("the mutant changes nothing")
			}
			mutant := strings.ReplaceAll(claim, m.part, m.instead)
			var other []string
			for _, s := range m.other {
				other = append(other, strings.ReplaceAll(s, "{claim}", mutant))
			}
			report, err := interleave.Explore(t.Context(), floorTest(t, mutant, interleave.SQL("c", later, "begin", mutant, "commit"), interleave.SQL("o", other...)))
			if err != nil {
				t.Fatal(err)
			}
			if len(report.Failures) == 0 {
				t.Error("no order shows it")
			}
		})
	}
}

// floorTest is a test that begins with three rows and a floor, and ends with claims until nothing
// is due.
func floorTest(t *testing.T, claim string, sessions ...interleave.Session) interleave.Test {
	url := testdb.PostgresTemplate(t, "store", func(url string) error { return prepared(sqldb.Postgres, url) })
	return interleave.Test{
		URL:       url,
		Isolation: "READ COMMITTED",
		Setup:     interleave.Statements(interleave.Clear("perdure.ready", "perdure.leases", "perdure.floors"), newRow, claim, newRow, newRow),
		Sessions:  sessions,
		Check: func(ctx context.Context, db *sql.DB, o interleave.Outcome) error {
			if len(o.Errors) > 0 {
				return fmt.Errorf("errors: %v", o.Errors)
			}
			var lost, left, twice int
			if err := db.QueryRowContext(ctx, unreachable).Scan(&lost); err != nil {
				return err
			}
			for range 5 {
				if err := interleave.Statements(claim)(ctx, db); err != nil {
					return err
				}
			}
			if err := db.QueryRowContext(ctx, "select (select count(*) from perdure.ready), (select count(*) - count(distinct id) from perdure.leases, unnest(ids) as id)").Scan(&left, &twice); err != nil {
				return err
			}
			if lost+left+twice > 0 {
				return fmt.Errorf("%d rows were unreachable, %d were not claimed, %d were claimed twice", lost, left, twice)
			}
			return nil
		},
	}
}
