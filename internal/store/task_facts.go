package store

import (
	"time"

	"github.com/perdure/perdure/internal/sqldb"
)

// SendFact is something that has happened in a process of comms.
type SendFact struct {
	// Kind is scheduled, failed or succeeded.
	Kind    string
	Attempt int
	// Task is the task of the queue that was scheduled, or 0.
	Task  int64
	Error string
	At    time.Time
}

// ListSendFacts returns the statement that reads what has happened in a process, in
// order.
func (s *Store) ListSendFacts(channel string, send int64, found func(SendFact)) sqldb.Stmt {
	return read(sqldb.Stmt{SQL: s.comms("CommsHistory", channel), Args: []any{send, send, send}}, found, func(f *SendFact) []any {
		return []any{&f.Kind, &f.Attempt, &f.Task, &f.Error, &f.At}
	})
}
