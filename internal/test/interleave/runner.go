package interleave

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure/internal/test/testdb"
)

const (
	defaultLimit   = 5000
	defaultTimeout = 4 * time.Minute
)

// runner runs the schedules of a test, one after another, and of its mutants. Its sessions
// keep their connections from one schedule to the next, and with them the plans of their
// statements.
type runner struct {
	test    Test
	first   bool // the first failure ends the exploration
	db      *sql.DB
	dialect dialect
	monitor *sql.Conn
	conns   []*Conn
}

func newRunner(ctx context.Context, test Test) (*runner, error) {
	d, err := dialectOf(test.URL)
	if err != nil {
		return nil, err
	}
	db, err := testdb.OpenKeepingPlans(test.URL)
	if err != nil {
		return nil, err
	}
	db.SetMaxIdleConns(len(test.Sessions) + 2) // a new connection would plan all statements anew
	r := &runner{db: db, dialect: d}
	if r.monitor, err = db.Conn(ctx); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return r, nil
}

func (r *runner) close() error {
	var errs []error
	for _, c := range r.conns {
		if c != nil {
			errs = append(errs, c.conn.Close())
		}
	}
	return errors.Join(append(errs, r.monitor.Close(), r.db.Close())...)
}

// exploreAll runs the schedules of a test.
func (r *runner) exploreAll(ctx context.Context, test Test) (Report, error) {
	if test.Limit == 0 {
		test.Limit = defaultLimit
	}
	if test.Timeout == 0 {
		test.Timeout = defaultTimeout
	}
	r.test = test
	for len(r.conns) < len(test.Sessions) {
		r.conns = append(r.conns, nil)
	}
	var (
		report Report
		e      enumerator
	)
	for more := true; more; more = e.advance() {
		if report.Schedules == r.test.Limit {
			return report, fmt.Errorf("more than %d schedules", r.test.Limit)
		}
		e.begin()
		s, err := r.runOne(ctx, &e)
		if err != nil {
			return report, err
		}
		report.Schedules++
		if s.waited {
			report.Waited++
		}
		if err := r.check(ctx, s.outcome()); err != nil {
			report.Failures = append(report.Failures, Failure{Schedule: s.String(), Err: err})
			if r.first {
				break
			}
		}
	}
	return report, nil
}

// runOne runs the next schedule on a fresh fixture.
func (r *runner) runOne(ctx context.Context, e *enumerator) (*schedule, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, r.test.Timeout, fmt.Errorf("no end after %s", r.test.Timeout))
	defer cancel()
	if r.test.Setup != nil {
		if err := r.test.Setup(ctx, r.db); err != nil {
			return nil, fmt.Errorf("setup: %w", err)
		}
	}
	s := &schedule{watch: r.waits}
	for i, session := range r.test.Sessions {
		conn, err := r.connection(ctx, i)
		if err != nil {
			return nil, err
		}
		s.parts = append(s.parts, &participant{session: session, conn: conn})
	}
	return s, s.run(ctx, e)
}

// check calls the test's check for a schedule's outcome.
func (r *runner) check(ctx context.Context, o Outcome) error {
	if r.test.Check != nil {
		return r.test.Check(ctx, r.db, o)
	}
	var errs []error
	for name, err := range o.Errors {
		errs = append(errs, fmt.Errorf("session %s: %w", name, err))
	}
	return errors.Join(errs...)
}

// connection returns the connection of session i, a new one if the last
// schedule broke it.
func (r *runner) connection(ctx context.Context, i int) (*Conn, error) {
	if c := r.conns[i]; c != nil {
		if r.identify(ctx, c) == nil {
			return c, nil
		}
		_ = c.conn.Close() // it is broken
		r.conns[i] = nil
	}
	conn, err := r.db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	r.conns[i] = newConn(conn)
	for _, statement := range r.dialect.prepare(r.test.Isolation) {
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			return nil, fmt.Errorf("%s: %w", statement, err)
		}
	}
	return r.conns[i], r.identify(ctx, r.conns[i])
}

// identify queries the database's id of the connection. In the previous schedule, a session
// may have watched another connection.
func (r *runner) identify(ctx context.Context, c *Conn) error {
	id, err := r.dialect.identify(ctx, c.conn)
	c.Watch(id)
	return err
}

// waits queries the database whether the step of p waits for a lock.
func (r *runner) waits(ctx context.Context, p *participant) (bool, error) {
	all := make([]int64, len(r.test.Sessions))
	for i, c := range r.conns[:len(all)] {
		all[i] = c.backend.Load()
	}
	return r.dialect.waits(ctx, r.monitor, p.conn.backend.Load(), all)
}

// rollback rolls back the transaction that a session left open. Without one it does
// nothing.
func rollback(ctx context.Context, c *Conn) error {
	if ctx.Err() != nil {
		return nil // the connection is closed or about to be closed, which rolls back
	}
	if _, err := c.conn.ExecContext(ctx, "ROLLBACK"); err != nil {
		return fmt.Errorf("roll back: %w", err)
	}
	return nil
}
