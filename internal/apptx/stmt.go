package apptx

import (
	"context"
	"database/sql/driver"
	"io"
	"reflect"
	"sync/atomic"

	"github.com/perdure/perdure/internal/sqldb"
)

// stmt is a prepared statement.
type stmt struct {
	inner driver.Stmt
	conn  *conn
	query string
}

// Close implements driver.Stmt.
func (s *stmt) Close() error {
	defer s.conn.guard.Use()()
	return s.inner.Close()
}

// NumInput implements driver.Stmt.
func (s *stmt) NumInput() int { return s.inner.NumInput() }

// Exec implements driver.Stmt.
func (s *stmt) Exec(args []driver.Value) (driver.Result, error) {
	return s.ExecContext(context.Background(), named(args))
}

// Query implements driver.Stmt.
func (s *stmt) Query(args []driver.Value) (driver.Rows, error) {
	return s.QueryContext(context.Background(), named(args))
}

// ExecContext implements driver.StmtExecContext.
func (s *stmt) ExecContext(ctx context.Context, args []driver.NamedValue) (result driver.Result, err error) {
	stop, err := s.conn.run(ctx, s.query, func(ctx context.Context) (err error) {
		if inner, ok := s.inner.(driver.StmtExecContext); ok {
			result, err = inner.ExecContext(ctx, args)
			return err
		}
		result, err = s.inner.Exec(values(args)) //nolint:staticcheck // an old driver has only this
		return err
	})
	stop()
	return result, err
}

// QueryContext implements driver.StmtQueryContext.
func (s *stmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	var result driver.Rows
	stop, err := s.conn.run(ctx, s.query, func(ctx context.Context) (err error) {
		if inner, ok := s.inner.(driver.StmtQueryContext); ok {
			result, err = inner.QueryContext(ctx, args)
			return err
		}
		result, err = s.inner.Query(values(args)) //nolint:staticcheck // an old driver has only this
		return err
	})
	if err != nil {
		stop()
		return nil, err
	}
	return &rows{Rows: result, query: s.query, guard: s.conn.guard, stop: stop}, nil
}

// CheckNamedValue implements driver.NamedValueChecker.
func (s *stmt) CheckNamedValue(v *driver.NamedValue) error {
	if inner, ok := s.inner.(driver.NamedValueChecker); ok {
		return inner.CheckNamedValue(v)
	}
	return s.conn.CheckNamedValue(v)
}

// ColumnConverter implements driver.ColumnConverter.
func (s *stmt) ColumnConverter(i int) driver.ValueConverter {
	if inner, ok := s.inner.(driver.ColumnConverter); ok { //nolint:staticcheck // an old driver has only this
		return inner.ColumnConverter(i)
	}
	return driver.DefaultParameterConverter
}

func named(args []driver.Value) []driver.NamedValue {
	all := make([]driver.NamedValue, len(args))
	for i, arg := range args {
		all[i] = driver.NamedValue{Ordinal: i + 1, Value: arg}
	}
	return all
}

func values(args []driver.NamedValue) []driver.Value {
	all := make([]driver.Value, len(args))
	for i, arg := range args {
		all[i] = arg.Value
	}
	return all
}

// rows reports the error that ends the rows. Each optional method has the meaning that
// database/sql gives to its absence if the driver does not have it.
type rows struct {
	driver.Rows
	query string
	guard sqldb.Guard
	stop  context.CancelFunc
	ended atomic.Bool
}

// Next implements driver.Rows.
func (r *rows) Next(dest []driver.Value) error {
	err := r.Rows.Next(dest)
	if err != nil && err != io.EOF && !r.ended.Swap(true) { //nolint:errorlint // drivers return io.EOF itself
		r.guard.After(r.query, err)
	}
	return alive(err)
}

// Close implements driver.Rows.
func (r *rows) Close() error {
	err := r.Rows.Close()
	r.stop()
	return alive(err)
}

// HasNextResultSet implements driver.RowsNextResultSet.
func (r *rows) HasNextResultSet() bool {
	inner, ok := r.Rows.(driver.RowsNextResultSet)
	return ok && inner.HasNextResultSet()
}

// NextResultSet implements driver.RowsNextResultSet.
func (r *rows) NextResultSet() error {
	if inner, ok := r.Rows.(driver.RowsNextResultSet); ok {
		return inner.NextResultSet()
	}
	return io.EOF
}

// ColumnTypeScanType implements driver.RowsColumnTypeScanType.
func (r *rows) ColumnTypeScanType(i int) reflect.Type {
	if inner, ok := r.Rows.(driver.RowsColumnTypeScanType); ok {
		return inner.ColumnTypeScanType(i)
	}
	return reflect.TypeFor[any]()
}

// ColumnTypeDatabaseTypeName implements driver.RowsColumnTypeDatabaseTypeName.
func (r *rows) ColumnTypeDatabaseTypeName(i int) string {
	if inner, ok := r.Rows.(driver.RowsColumnTypeDatabaseTypeName); ok {
		return inner.ColumnTypeDatabaseTypeName(i)
	}
	return ""
}

// ColumnTypeLength implements driver.RowsColumnTypeLength.
func (r *rows) ColumnTypeLength(i int) (length int64, ok bool) {
	if inner, ok := r.Rows.(driver.RowsColumnTypeLength); ok {
		return inner.ColumnTypeLength(i)
	}
	return 0, false
}

// ColumnTypeNullable implements driver.RowsColumnTypeNullable.
func (r *rows) ColumnTypeNullable(i int) (nullable, ok bool) {
	if inner, ok := r.Rows.(driver.RowsColumnTypeNullable); ok {
		return inner.ColumnTypeNullable(i)
	}
	return false, false
}

// ColumnTypePrecisionScale implements driver.RowsColumnTypePrecisionScale.
func (r *rows) ColumnTypePrecisionScale(i int) (precision, scale int64, ok bool) {
	if inner, ok := r.Rows.(driver.RowsColumnTypePrecisionScale); ok {
		return inner.ColumnTypePrecisionScale(i)
	}
	return 0, 0, false
}
