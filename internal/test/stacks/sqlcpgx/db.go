// Package sqlcpgx has the form of the code that sqlc generates with sql_package "pgx/v5".
package sqlcpgx

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// DBTX is a connection or a transaction.
type DBTX interface {
	Exec(context.Context, string, ...interface{}) (pgconn.CommandTag, error)
	Query(context.Context, string, ...interface{}) (pgx.Rows, error)
	QueryRow(context.Context, string, ...interface{}) pgx.Row
	CopyFrom(ctx context.Context, tableName pgx.Identifier, columnNames []string, rowSrc pgx.CopyFromSource) (int64, error)
	SendBatch(context.Context, *pgx.Batch) pgx.BatchResults
}

// New returns queries on a connection or a transaction.
func New(db DBTX) *Queries { return &Queries{db: db} }

// Queries are the queries of the application.
type Queries struct{ db DBTX }

// WithTx returns the queries in a transaction.
func (q *Queries) WithTx(tx pgx.Tx) *Queries { return &Queries{db: tx} }

const createNote = `-- name: CreateNote :one
INSERT INTO notes (id, note) VALUES ($1, $2) RETURNING id`

// CreateNoteParams are the values of CreateNote.
type CreateNoteParams struct {
	ID   int32
	Note string
}

// CreateNote inserts a note.
func (q *Queries) CreateNote(ctx context.Context, arg CreateNoteParams) (int32, error) {
	row := q.db.QueryRow(ctx, createNote, arg.ID, arg.Note)
	var id int32
	err := row.Scan(&id)
	return id, err
}
