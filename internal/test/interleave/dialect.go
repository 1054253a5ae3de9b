package interleave

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// dialect queries a database for sessions that wait.
type dialect interface {
	// prepare returns the statements that a new session starts with.
	prepare(isolation string) []string
	// identify returns the database's id of the connection.
	identify(ctx context.Context, c *sql.Conn) (int64, error)
	// waits reports whether the connection id waits for a lock that one of the others has.
	waits(ctx context.Context, monitor *sql.Conn, id int64, others []int64) (bool, error)
}

func dialectOf(url string) (dialect, error) {
	scheme, _, _ := strings.Cut(url, ":")
	switch scheme {
	case "postgres", "postgresql":
		return postgres{}, nil
	case "mysql":
		return mysql{}, nil
	}
	return nil, fmt.Errorf("cannot interleave on a database with the scheme %q", scheme)
}

type postgres struct{}

// prepare makes PostgreSQL look for deadlocks early. By default each would take a second.
func (postgres) prepare(isolation string) []string {
	statements := []string{`SET deadlock_timeout = '25ms'`}
	if isolation != "" {
		statements = append(statements, `SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL `+isolation)
	}
	return statements
}

func (postgres) identify(ctx context.Context, c *sql.Conn) (id int64, err error) {
	err = c.QueryRowContext(ctx, `SELECT pg_backend_pid()`).Scan(&id)
	return id, err
}

// waits counts only locks of the schedule's sessions. Other locks, for example an
// autovacuum's, are released independently.
func (postgres) waits(ctx context.Context, monitor *sql.Conn, id int64, others []int64) (waits bool, err error) {
	err = monitor.QueryRowContext(ctx, `SELECT pg_blocking_pids($1::int)::bigint[] && $2::bigint[]`, id, others).Scan(&waits)
	return waits, err
}

type mysql struct{}

func (mysql) prepare(isolation string) []string {
	if isolation == "" {
		return nil
	}
	return []string{`SET SESSION TRANSACTION ISOLATION LEVEL ` + isolation}
}

func (mysql) identify(ctx context.Context, c *sql.Conn) (id int64, err error) {
	err = c.QueryRowContext(ctx, `SELECT CONNECTION_ID()`).Scan(&id)
	return id, err
}

// waits reads InnoDB's report, for row locks, and the process list, for table and named
// locks. information_schema.innodb_trx also has the row locks, but returns an old copy if
// it is queried more often than every 100 ms.
func (mysql) waits(ctx context.Context, monitor *sql.Conn, id int64, _ []int64) (bool, error) {
	var kind, name, report string
	if err := monitor.QueryRowContext(ctx, `SHOW ENGINE INNODB STATUS`).Scan(&kind, &name, &report); err != nil {
		return false, err
	}
	if waitsForRow(report, id) {
		return true, nil
	}
	var state string
	err := monitor.QueryRowContext(ctx,
		`SELECT COALESCE(MAX(state), '') FROM information_schema.processlist WHERE id = ?`, id).Scan(&state)
	return isLockState(state), err
}

// thread is the line of InnoDB's report that names a transaction's connection.
var thread = regexp.MustCompile(`\n(?:MySQL|MariaDB) thread id (\d+),`)

// waitsForRow looks for the connection's transaction in InnoDB's report. The lines between
// its head and the line with its connection's id show whether it waits.
func waitsForRow(report string, id int64) bool {
	// A section on the last deadlock comes before the list, in the same form.
	_, list, _ := strings.Cut(report, "\nLIST OF TRANSACTIONS FOR EACH SESSION:")
	for _, transaction := range strings.Split(list, "\n---TRANSACTION ") {
		at := thread.FindStringSubmatchIndex(transaction)
		if at == nil || transaction[at[2]:at[3]] != strconv.FormatInt(id, 10) {
			continue
		}
		return strings.Contains(transaction[:at[0]], "\nLOCK WAIT ")
	}
	return false
}

func isLockState(state string) bool {
	return strings.HasPrefix(state, "Waiting for") && strings.HasSuffix(state, "lock") || state == "User lock"
}
