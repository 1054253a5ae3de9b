// Package sqlcstd has the form of the code that sqlc generates for database/sql.
package sqlcstd

import (
	"context"
	"database/sql"
)

// DBTX is a connection or a transaction.
type DBTX interface {
	ExecContext(context.Context, string, ...interface{}) (sql.Result, error)
	PrepareContext(context.Context, string) (*sql.Stmt, error)
	QueryContext(context.Context, string, ...interface{}) (*sql.Rows, error)
	QueryRowContext(context.Context, string, ...interface{}) *sql.Row
}

// New returns queries on a connection or a transaction.
func New(db DBTX) *Queries { return &Queries{db: db} }

// Queries are the queries of the application.
type Queries struct{ db DBTX }

// WithTx returns the queries in a transaction.
func (q *Queries) WithTx(tx *sql.Tx) *Queries { return &Queries{db: tx} }

const createNote = `-- name: CreateNote :one
INSERT INTO notes (id, note) VALUES ($1, $2) RETURNING id`

// CreateNoteParams are the values of CreateNote.
type CreateNoteParams struct {
	ID   int32
	Note string
}

// CreateNote inserts a note.
func (q *Queries) CreateNote(ctx context.Context, arg CreateNoteParams) (int32, error) {
	row := q.db.QueryRowContext(ctx, createNote, arg.ID, arg.Note)
	var id int32
	err := row.Scan(&id)
	return id, err
}
