package interleave_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/internal/test/interleave"
	"github.com/perdure/perdure/internal/test/testdb"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// onBoth runs a test on PostgreSQL and on MariaDB, on a database with a table of
// counters.
func onBoth(t *testing.T, test func(t *testing.T, url string)) {
	t.Parallel()
	for name, database := range map[string]func(testing.TB) string{
		"Postgres": testdb.Postgres, "MySQL": testdb.MySQL,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := database(t)
			db := open(t, url)
			if _, err := db.ExecContext(t.Context(), `CREATE TABLE counter (id int PRIMARY KEY, n int NOT NULL)`); err != nil {
				t.Fatal(err)
			}
			test(t, url)
		})
	}
}

func open(t *testing.T, url string) *sql.DB {
	t.Helper()
	db, err := testdb.Open(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// twoCounters is the fixture: the counters 1 and 2, both at 0.
var twoCounters = interleave.Statements(`DELETE FROM counter`, `INSERT INTO counter VALUES (1, 0), (2, 0)`)

// increment adds one to counter 1, by reading and writing.
func increment(name, read string) interleave.Session {
	return interleave.Session{Name: name, Run: func(ctx context.Context, c *interleave.Conn) error {
		if _, err := c.Exec(ctx, `BEGIN`); err != nil {
			return err
		}
		var n int
		if err := c.QueryRow(ctx, read).Scan(&n); err != nil {
			return err
		}
		if _, err := c.Exec(ctx, fmt.Sprintf(`UPDATE counter SET n = %d WHERE id = 1`, n+1)); err != nil {
			return err
		}
		_, err := c.Exec(ctx, `COMMIT`)
		return err
	}}
}

// bothCounted checks that no increment was lost.
func bothCounted(ctx context.Context, db *sql.DB, o interleave.Outcome) error {
	for name, err := range o.Errors {
		return fmt.Errorf("session %s: %w", name, err)
	}
	var n int
	if err := db.QueryRowContext(ctx, `SELECT n FROM counter WHERE id = 1`).Scan(&n); err != nil {
		return err
	}
	if n != 2 {
		return fmt.Errorf("counter is %d after two increments", n)
	}
	return nil
}

func TestALostUpdateIsFound(t *testing.T) {
	onBoth(t, func(t *testing.T, url string) {
		const read = `SELECT n FROM counter WHERE id = 1`
		report, err := interleave.Explore(t.Context(), interleave.Test{
			URL:       url,
			Isolation: "READ COMMITTED",
			Setup:     twoCounters,
			Sessions:  []interleave.Session{increment("a", read), increment("b", read)},
			Check:     bothCounted,
		})
		if err != nil {
			t.Fatal(err)
		}
		lost := slices.ContainsFunc(report.Failures, func(f interleave.Failure) bool {
			return f.Schedule == "a1 a2 b1 b2 a3 a4 b3 b4"
		})
		if !lost {
			t.Errorf("the schedule that loses an update is not among the failures: %v", report.Failures)
		}
		serial := slices.ContainsFunc(report.Failures, func(f interleave.Failure) bool {
			return f.Schedule == "a1 a2 a3 a4 b1 b2 b3 b4"
		})
		if serial {
			t.Error("a serial schedule is among the failures")
		}
	})
}

func TestALockPreventsTheLostUpdate(t *testing.T) {
	onBoth(t, func(t *testing.T, url string) {
		const read = `SELECT n FROM counter WHERE id = 1 FOR UPDATE`
		report := interleave.Run(t, interleave.Test{
			URL:      url,
			Setup:    twoCounters,
			Sessions: []interleave.Session{increment("a", read), increment("b", read)},
			Check:    bothCounted,
		})
		if report.Waited == 0 || report.Waited == report.Schedules {
			t.Errorf("%d of %d schedules waited, want some", report.Waited, report.Schedules)
		}
	})
}

func TestADeadlockIsTheErrorOfOneSession(t *testing.T) {
	onBoth(t, func(t *testing.T, url string) {
		deadlocks := 0
		interleave.Run(t, interleave.Test{
			URL:   url,
			Setup: twoCounters,
			Sessions: []interleave.Session{
				interleave.SQL("a", `BEGIN`, `UPDATE counter SET n = n + 1 WHERE id = 1`, `UPDATE counter SET n = n + 1 WHERE id = 2`, `COMMIT`),
				interleave.SQL("b", `BEGIN`, `UPDATE counter SET n = n + 1 WHERE id = 2`, `UPDATE counter SET n = n + 1 WHERE id = 1`, `COMMIT`),
			},
			Check: func(ctx context.Context, db *sql.DB, o interleave.Outcome) error {
				if len(o.Errors) == 0 {
					return nil
				}
				deadlocks++
				for _, err := range o.Errors {
					if len(o.Errors) > 1 || !strings.Contains(strings.ToLower(err.Error()), "deadlock") {
						return fmt.Errorf("errors %v, want one deadlock", o.Errors)
					}
				}
				var sum int
				err := db.QueryRowContext(ctx, `SELECT SUM(n) FROM counter`).Scan(&sum)
				if err == nil && sum != 2 {
					err = fmt.Errorf("sum %d, want 2: the victim was not rolled back", sum)
				}
				return err
			},
		})
		if deadlocks == 0 {
			t.Error("no schedule had a deadlock")
		}
	})
}

func TestEveryMergeIsRunOnceAndWaitsAreMarked(t *testing.T) {
	onBoth(t, func(t *testing.T, url string) {
		var got []string
		interleave.Run(t, interleave.Test{
			URL:   url,
			Setup: twoCounters,
			Sessions: []interleave.Session{
				interleave.SQL("a", `BEGIN`, `UPDATE counter SET n = 1 WHERE id = 1`, `COMMIT`),
				interleave.SQL("b", `UPDATE counter SET n = 2 WHERE id = 1`),
			},
			Check: func(_ context.Context, _ *sql.DB, o interleave.Outcome) error {
				got = append(got, o.Schedule)
				return nil
			},
		})
		want := []string{"a1 a2 a3 b1", "a1 a2 b1* a3", "a1 b1 a2 a3", "b1 a1 a2 a3"}
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
	})
}

func TestSessionsThatNeverWaitHaveAllMerges(t *testing.T) {
	onBoth(t, func(t *testing.T, url string) {
		read := func(name string) interleave.Session {
			return interleave.SQL(name, `SELECT n FROM counter`, `SELECT n FROM counter`)
		}
		report := interleave.Run(t, interleave.Test{
			URL:      url,
			Sessions: []interleave.Session{read("a"), read("b"), read("c")},
		})
		if want := len(interleave.Merges(2, 2, 2)); report.Schedules != want {
			t.Errorf("%d schedules, want %d", report.Schedules, want)
		}
	})
}

func TestASessionsErrorFailsItsSchedulesUnlessTheCheckAllowsIt(t *testing.T) {
	onBoth(t, func(t *testing.T, url string) {
		test := interleave.Test{
			URL:   url,
			Setup: twoCounters,
			Sessions: []interleave.Session{
				interleave.SQL("a", `BEGIN`, `UPDATE counter SET n = 7`, `SELECT nonsense`, `COMMIT`),
				interleave.SQL("b", `SELECT n FROM counter`),
			},
		}
		report, err := interleave.Explore(t.Context(), test)
		if err != nil || len(report.Failures) != report.Schedules {
			t.Errorf("%d of %d failed, error %v; want all", len(report.Failures), report.Schedules, err)
		}
		test.Check = func(ctx context.Context, db *sql.DB, o interleave.Outcome) error {
			var n int
			if err := db.QueryRowContext(ctx, `SELECT MAX(n) FROM counter`).Scan(&n); err != nil {
				return err
			}
			if n != 0 || o.Errors["a"] == nil || o.Errors["b"] != nil {
				return fmt.Errorf("n = %d, errors %v", n, o.Errors)
			}
			return nil
		}
		interleave.Run(t, test)
	})
}

func TestAHangIsAnErrorThatNamesTheScheduleAndTheSession(t *testing.T) {
	onBoth(t, func(t *testing.T, url string) {
		_, err := interleave.Explore(t.Context(), interleave.Test{
			URL:     url,
			Timeout: 2 * time.Second,
			Sessions: []interleave.Session{
				interleave.SQL("a", `SELECT n FROM counter`),
				{Name: "b", Run: func(ctx context.Context, c *interleave.Conn) error {
					err := c.Turn(ctx)
					<-ctx.Done()
					return errors.Join(err, ctx.Err())
				}},
			},
		})
		if err == nil || !strings.Contains(err.Error(), "schedule a1 b1: b still runs") {
			t.Errorf("got %v", err)
		}
	})
}

func TestTooManySchedulesAreAnError(t *testing.T) {
	onBoth(t, func(t *testing.T, url string) {
		report, err := interleave.Explore(t.Context(), interleave.Test{
			URL:      url,
			Limit:    2,
			Sessions: []interleave.Session{interleave.SQL("a", `SELECT 1`, `SELECT 1`), interleave.SQL("b", `SELECT 1`)},
		})
		if err == nil || report.Schedules != 2 {
			t.Errorf("%d schedules, error %v; want 2 and an error", report.Schedules, err)
		}
	})
}

// TestCodeWithItsOwnConnectionIsStepped shows how the engine's own code is
// interleaved: a hook before each of its statements calls Turn.
func TestCodeWithItsOwnConnectionIsStepped(t *testing.T) {
	onBoth(t, func(t *testing.T, url string) {
		db := open(t, url)
		identify := `SELECT CONNECTION_ID()`
		if strings.HasPrefix(url, "postgres") {
			identify = `SELECT pg_backend_pid()`
		}
		var got []string
		interleave.Run(t, interleave.Test{
			URL:   url,
			Setup: twoCounters,
			Sessions: []interleave.Session{
				interleave.SQL("a", `BEGIN`, `UPDATE counter SET n = 1 WHERE id = 1`, `COMMIT`),
				{Name: "b", Run: func(ctx context.Context, c *interleave.Conn) error {
					own, err := db.Conn(ctx)
					if err != nil {
						return err
					}
					defer own.Close()
					var id int64
					if err := own.QueryRowContext(ctx, identify).Scan(&id); err != nil {
						return err
					}
					c.Watch(id)
					if err := c.Turn(ctx); err != nil {
						return err
					}
					_, err = own.ExecContext(ctx, `UPDATE counter SET n = 2 WHERE id = 1`)
					return err
				}},
			},
			Check: func(_ context.Context, _ *sql.DB, o interleave.Outcome) error {
				got = append(got, o.Schedule)
				return nil
			},
		})
		want := []string{"a1 a2 a3 b1", "a1 a2 b1* a3", "a1 b1 a2 a3", "b1 a1 a2 a3"}
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
	})
}
