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

const pauseQueue = "insert into perdure.pauses (target, reason, actor, paused_at) values ('queue:q', '', '', now())"

// pauseTest runs a claim against a session that pauses the queue and then claims, too.
func pauseTest(t *testing.T, claim string) interleave.Test {
	after := strings.ReplaceAll(claim, "'w'", "'after'")
	return interleave.Test{
		URL:       testdb.PostgresTemplate(t, "store", func(url string) error { return prepared(sqldb.Postgres, url) }),
		Isolation: "READ COMMITTED",
		Setup:     interleave.Statements(interleave.Clear("perdure.ready", "perdure.leases", "perdure.floors", "perdure.pauses"), newRow, newRow, newRow),
		Sessions: []interleave.Session{
			interleave.SQL("c", "begin", claim, "commit"), interleave.SQL("p", "begin", pauseQueue, "commit", after),
		},
		Check: func(ctx context.Context, db *sql.DB, o interleave.Outcome) error {
			if len(o.Errors) > 0 {
				return fmt.Errorf("errors: %v", o.Errors)
			}
			var paused int
			if err := db.QueryRowContext(ctx, "select count(*) from perdure.leases where worker = 'after'").Scan(&paused); err != nil {
				return err
			}
			if err := interleave.Statements("delete from perdure.pauses", claim, claim, claim)(ctx, db); err != nil {
				return err
			}
			var left, twice int
			if err := db.QueryRowContext(ctx, "select (select count(*) from perdure.ready), (select count(*) - count(distinct id) from perdure.leases, unnest(ids) as id)").Scan(&left, &twice); err != nil {
				return err
			}
			if paused+left+twice > 0 {
				return fmt.Errorf("%d claims after the pause, %d rows were not claimed after it, %d were claimed twice", paused, left, twice)
			}
			return nil
		},
	}
}

// Every order of the statements of a claim and of a pause: a claim that begins after the commit
// of the pause gets nothing, and no row is lost.
func TestEveryOrderOfAClaimAndAPause(t *testing.T) {
	t.Parallel()
	interleave.Run(t, pauseTest(t, floorClaim(t)))
}

func TestAClaimThatIgnoresPausesIsFound(t *testing.T) {
	t.Parallel()
	claim := floorClaim(t)
	mutant := strings.ReplaceAll(claim, "paused.until_at is null or", "false and paused.until_at is null or")
	if mutant == claim {
		t.Fatal("the mutant changes nothing")
	}
	report, err := interleave.Explore(t.Context(), pauseTest(t, mutant))
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Failures) == 0 {
		t.Error("no order shows it")
	}
}
