package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// appRows are rows that the application reads. They report their end to the guard.
type appRows struct {
	pgx.Rows // nil if the query was not sent; it has methods that later versions of pgx add
	app      *application
	query    string
	stop     context.CancelFunc
	ended    bool
	err      error // if there are no rows
}

// track returns rows that are closed with the transaction. The lock must be held.
func (a *application) track(rows pgx.Rows, query string, stop context.CancelFunc) *appRows {
	r := &appRows{Rows: rows, app: a, query: query, stop: stop}
	a.stream = r.close
	return r
}

// close closes the rows. The lock must be held.
func (r *appRows) close() {
	if r.ended || r.Rows == nil {
		return
	}
	r.ended = true
	r.Rows.Close()
	r.err = r.Rows.Err()
	r.stop()
	if r.err != nil {
		r.app.guard.After(r.query, r.err)
	}
}

// usable returns an error if the unit has ended. The lock must be held.
func (r *appRows) usable() error {
	if r.Rows == nil {
		return r.err
	}
	if r.app.closed.Load() {
		return errClosed
	}
	return nil
}

// Next implements pgx.Rows.
func (r *appRows) Next() bool {
	if err := r.app.lock(); err != nil {
		return false
	}
	defer r.app.mu.Unlock()
	if r.usable() != nil || r.ended {
		return false
	}
	if r.Rows.Next() {
		return true
	}
	r.close()
	return false
}

// Close implements pgx.Rows.
func (r *appRows) Close() {
	if err := r.app.lock(); err != nil {
		return
	}
	defer r.app.mu.Unlock()
	if r.usable() == nil {
		r.close()
	}
}

// Err implements pgx.Rows.
func (r *appRows) Err() error {
	if err := r.app.lock(); err != nil {
		return err
	}
	defer r.app.mu.Unlock()
	switch {
	case r.Rows == nil || r.ended:
		return r.err
	case r.app.closed.Load():
		return errClosed
	}
	return r.Rows.Err()
}

// Scan implements pgx.Rows.
func (r *appRows) Scan(dest ...any) error {
	if err := r.app.lock(); err != nil {
		return err
	}
	defer r.app.mu.Unlock()
	if err := r.usable(); err != nil {
		return err
	}
	err := r.Rows.Scan(dest...)
	if err != nil { // pgx has closed the rows
		r.close()
	}
	return err
}

// Values implements pgx.Rows.
func (r *appRows) Values() ([]any, error) {
	if err := r.app.lock(); err != nil {
		return nil, err
	}
	defer r.app.mu.Unlock()
	if err := r.usable(); err != nil {
		return nil, err
	}
	return r.Rows.Values()
}

// RawValues implements pgx.Rows.
func (r *appRows) RawValues() [][]byte {
	if err := r.app.lock(); err != nil {
		return nil
	}
	defer r.app.mu.Unlock()
	if r.usable() != nil {
		return nil
	}
	return r.Rows.RawValues()
}

// CommandTag implements pgx.Rows.
func (r *appRows) CommandTag() pgconn.CommandTag {
	if err := r.app.lock(); err != nil {
		return pgconn.CommandTag{}
	}
	defer r.app.mu.Unlock()
	if r.Rows == nil {
		return pgconn.CommandTag{}
	}
	return r.Rows.CommandTag()
}

// FieldDescriptions implements pgx.Rows.
func (r *appRows) FieldDescriptions() []pgconn.FieldDescription {
	if err := r.app.lock(); err != nil {
		return nil
	}
	defer r.app.mu.Unlock()
	if r.Rows == nil {
		return nil
	}
	return r.Rows.FieldDescriptions()
}

// TypeMap implements pgx.Rows.
func (r *appRows) TypeMap() *pgtype.Map { return r.app.conn.TypeMap() }

// Conn implements pgx.Rows.
func (r *appRows) Conn() *pgx.Conn { return r.app.conn }

// appRow is the first of some rows.
type appRow struct{ rows pgx.Rows }

// Scan implements pgx.Row.
func (r appRow) Scan(dest ...any) error {
	defer r.rows.Close()
	if err := r.rows.Err(); err != nil {
		return err
	}
	if !r.rows.Next() {
		if err := r.rows.Err(); err != nil {
			return err
		}
		return pgx.ErrNoRows
	}
	if err := r.rows.Scan(dest...); err != nil {
		return err
	}
	r.rows.Close()
	return r.rows.Err()
}

// appBatch are the results of a batch of the application.
type appBatch struct {
	pgx.BatchResults // nil if the batch was not sent
	app              *application
	stop             context.CancelFunc
	ended            bool
	err              error
}

func failedBatch(a *application, err error) *appBatch { return &appBatch{app: a, err: err} }

// use runs fn if the results can be read.
func (b *appBatch) use(fn func() error) error {
	if err := b.app.lock(); err != nil {
		return err
	}
	defer b.app.mu.Unlock()
	switch {
	case b.BatchResults == nil:
		return b.err
	case b.app.closed.Load():
		return errClosed
	}
	err := fn()
	if err != nil {
		b.app.guard.After("", err)
	}
	return err
}

// Exec implements pgx.BatchResults.
func (b *appBatch) Exec() (tag pgconn.CommandTag, err error) {
	err = b.use(func() (err error) {
		tag, err = b.BatchResults.Exec()
		return err
	})
	return tag, err
}

// Query implements pgx.BatchResults.
func (b *appBatch) Query() (pgx.Rows, error) {
	result := &appRows{app: b.app, stop: func() {}}
	err := b.use(func() (err error) {
		result.Rows, err = b.BatchResults.Query()
		return err
	})
	if result.Rows == nil {
		result.err = err
	}
	return result, err
}

// QueryRow implements pgx.BatchResults.
func (b *appBatch) QueryRow() pgx.Row {
	rows, _ := b.Query() // Scan returns the error
	return appRow{rows}
}

// Close implements pgx.BatchResults.
func (b *appBatch) Close() error {
	if err := b.app.lock(); err != nil {
		return err
	}
	defer b.app.mu.Unlock()
	if b.BatchResults == nil || b.ended {
		return b.err
	}
	if b.app.closed.Load() {
		return errClosed
	}
	return b.close()
}

// close closes the results. The lock must be held.
func (b *appBatch) close() error {
	if b.ended {
		return b.err
	}
	b.ended = true
	b.err = b.BatchResults.Close()
	b.stop()
	if b.err != nil {
		b.app.guard.After("", b.err)
	}
	return b.err
}
