// Package interleave runs transactions against each other on a real database, statement by
// statement, in every possible order.
//
// It finds races that a fake database, which runs one call after another, cannot have. A
// test lists the sessions. The runner merges their statements in all ways, runs each merge
// (a schedule) on a fresh fixture, and lets the test check the result:
//
//	interleave.Run(t, interleave.Test{
//		URL:   testdb.Postgres(t),
//		Setup: interleave.Statements(`DELETE FROM account`, `INSERT INTO account VALUES (1, 100)`),
//		Sessions: []interleave.Session{
//			interleave.SQL("a", `BEGIN`, `UPDATE account SET n = n - 10`, `COMMIT`),
//			{Name: "b", Run: func(ctx context.Context, c *interleave.Conn) error {
//				var n int
//				if err := c.QueryRow(ctx, `SELECT n FROM account`).Scan(&n); err != nil {
//					return err
//				}
//				_, err := c.Exec(ctx, `UPDATE account SET n = $1`, n-10)
//				return err
//			}},
//		},
//		Check: func(ctx context.Context, db *sql.DB, o interleave.Outcome) error { … },
//	})
//
// A statement that waits for a lock stays pending while the schedule continues with the
// other sessions. It completes when the lock is released. So no schedule is cut short, and
// schedules that the locks prevent are not counted. PostgreSQL's isolationtester works in
// the same way.
//
// A schedule is written as the steps in the order in which they started, with a star after
// steps that waited: "a1 a2 b1* a3 b2".
//
// Orders of statements that cannot matter are left out for sessions that announce the text
// of their statements, such as the sessions of a Stage; see footprint. `make soak` runs all
// orders.
//
// A Stage runs the code of Perdure in such sessions, and a Pair is a test of it with its
// mutants.
//
// Only tests may import this package.
package interleave

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"
)

// Test is a set of sessions to run against each other.
type Test struct {
	// URL is the database, of package testdb. Its tables exist already.
	URL string
	// Setup makes the fixture. It is called before each schedule.
	Setup func(ctx context.Context, db *sql.DB) error
	// Sessions are the participants, two or more.
	Sessions []Session
	// Isolation is the isolation level of the sessions' transactions, such as
	// "READ COMMITTED"; "" leaves the database's default.
	Isolation string
	// Check is called after each schedule, when all sessions have ended. Its error is a
	// failure of the schedule. nil accepts all schedules in which no session had an error.
	Check func(ctx context.Context, db *sql.DB, o Outcome) error
	// Limit is the maximum number of schedules. More schedules are an error, because missing
	// ones would not be noticed. 0 means 5000.
	Limit int
	// Timeout bounds one schedule, and therefore a wait that the database does not resolve. 0
	// means 4 min.
	Timeout time.Duration
}

// Session is one participant: code that uses the database.
type Session struct {
	// Name is one short word, "a"; steps are named after it.
	Name string
	// Run is the session's code. It is called anew for each schedule, so its variables are its
	// state. Each statement on c is a step. Run must depend only on what it reads, or
	// schedules cannot be enumerated. When it returns, with or without an error, the session
	// rolls back uncommitted changes.
	Run func(ctx context.Context, c *Conn) error
}

// SQL returns a session that executes plain statements, each as a step. It stops at the
// first error.
func SQL(name string, statements ...string) Session {
	return Session{Name: name, Run: func(ctx context.Context, c *Conn) error {
		for _, s := range statements {
			if _, err := c.Exec(ctx, s); err != nil {
				return err
			}
		}
		return nil
	}}
}

// Statements returns a Setup that executes plain statements.
func Statements(statements ...string) func(context.Context, *sql.DB) error {
	return func(ctx context.Context, db *sql.DB) error {
		for _, s := range statements {
			if _, err := db.ExecContext(ctx, s); err != nil {
				return fmt.Errorf("%s: %w", s, err)
			}
		}
		return nil
	}
}

// Clear returns the statement that empties tables before a schedule. The tables have few
// rows: PostgreSQL deletes them much faster than it creates new files for truncated tables.
func Clear(tables ...string) string { return "delete from " + strings.Join(tables, "; delete from ") }

// Outcome is the outcome of one schedule.
type Outcome struct {
	// Schedule is the order of the steps.
	Schedule string
	// Errors are the errors of the sessions that ended with one, by name: for example, of the
	// victim of a deadlock.
	Errors map[string]error
}

// Report summarizes all schedules.
type Report struct {
	// Schedules is the number of schedules that were run.
	Schedules int
	// Waited is the number of schedules in which a step waited for a lock.
	Waited int
	// Failures are the schedules that the check refused, in the order of enumeration.
	Failures []Failure
}

// Failure is a schedule that the check refused.
type Failure struct {
	Schedule string
	Err      error
}

// Run runs all schedules and fails the test for each schedule that the check refuses.
func Run(t testing.TB, test Test) Report {
	t.Helper()
	report, err := Explore(t.Context(), test)
	if err != nil {
		t.Fatalf("interleave: %v", err)
	}
	report.show(t)
	return report
}

// show fails the test for each schedule that the check refused.
func (report Report) show(t testing.TB) {
	t.Helper()
	const shown = 10
	for i, f := range report.Failures {
		if i == shown {
			t.Errorf("… and %d more", len(report.Failures)-shown)
			break
		}
		t.Errorf("schedule %s: %v", f.Schedule, f.Err)
	}
	t.Logf("%d schedules, %d with a wait, %d failed", report.Schedules, report.Waited, len(report.Failures))
}

// Explore runs all schedules and returns a report. It fails if the test could not be run:
// for example, if the fixture failed or a session hung.
func Explore(ctx context.Context, test Test) (Report, error) {
	r, err := newRunner(ctx, test)
	if err != nil {
		return Report{}, err
	}
	report, err := r.exploreAll(ctx, test)
	if e := r.close(); err == nil {
		err = e
	}
	return report, err
}
