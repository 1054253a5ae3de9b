package sqldb

import (
	"context"
	"database/sql"
)

// StdConn is implemented by *sql.Tx, *sql.Conn and *sql.DB.
type StdConn interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// StdRunner runs statements through database/sql, one round trip each. The SQLite and MySQL
// drivers use it, and it also runs statements on a user's *sql.Tx.
type StdRunner struct {
	Conn    StdConn
	Dialect Dialect
	// Ran counts the statements. Default: they are not counted.
	Ran *Counter
}

// Run implements Runner.
func (r StdRunner) Run(ctx context.Context, stmts ...Stmt) error {
	r.Ran.Add(len(stmts))
	for i, s := range stmts {
		if _, ok := s.LockLimit(); ok {
			continue
		}
		rows, err := r.one(ctx, s)
		if err != nil {
			return Failed(i, s, r.Dialect.Translate(err))
		}
		if err := checkRows(i, s, rows); err != nil {
			return err
		}
	}
	return nil
}

func (r StdRunner) one(ctx context.Context, s Stmt) (int64, error) {
	args := r.args(s.Args)
	if s.Row == nil {
		result, err := r.Conn.ExecContext(ctx, s.SQL, args...)
		if err != nil {
			return 0, err
		}
		return affected(result)
	}
	rows, err := r.Conn.QueryContext(ctx, s.SQL, args...)
	if err != nil {
		return 0, err
	}
	return r.each(rows, s)
}

// affected returns the number of rows that a statement affected. For text that is not a
// statement (empty, or a comment) SQLite's driver returns no result, and database/sql
// panics.
func affected(result sql.Result) (rows int64, err error) {
	defer func() {
		if recover() != nil {
			rows, err = 0, nil
		}
	}()
	return result.RowsAffected()
}

func (r StdRunner) each(rows *sql.Rows, s Stmt) (n int64, err error) {
	defer rows.Close()
	scan := r.scan(rows, s.Exact)
	for rows.Next() {
		if err := s.Row(scan); err != nil {
			return n, err
		}
		n++
	}
	return n, rows.Err()
}

func (r StdRunner) scan(rows *sql.Rows, exact bool) Scan {
	var times bounder
	var converted []any // the caller may scan every row into the same destinations
	return func(dest ...any) error {
		if !exact {
			times.note(dest)
		}
		converted = append(converted[:0], dest...)
		if r.Dialect.Dest != nil {
			r.Dialect.Dest(converted)
		}
		if err := rows.Scan(converted...); err != nil {
			return err
		}
		times.bound()
		return nil
	}
}

func (r StdRunner) args(args []any) []any {
	if r.Dialect.Args == nil || len(args) == 0 {
		return args
	}
	converted := append([]any(nil), args...) // the statement may run again
	r.Dialect.Args(converted)
	return converted
}

// Query implements Runner.
func (r StdRunner) Query(ctx context.Context, query string, args ...any) (Rows, error) {
	r.Ran.Add(1)
	rows, err := r.Conn.QueryContext(ctx, query, r.args(args)...) //nolint:rowserrcheck // the caller does
	if err != nil {
		return nil, r.Dialect.Translate(err)
	}
	return &stdRows{Rows: rows, dialect: r.Dialect}, nil
}

type stdRows struct {
	*sql.Rows
	dialect Dialect
}

func (r *stdRows) Scan(dest ...any) error {
	if r.dialect.Dest != nil {
		r.dialect.Dest(dest)
	}
	return r.Rows.Scan(dest...)
}

func (r *stdRows) Err() error {
	if err := r.Rows.Err(); err != nil {
		return r.dialect.Translate(err)
	}
	return nil
}
