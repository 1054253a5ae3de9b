package store

import (
	"time"

	"github.com/perdure/perdure/internal/sqldb"
)

// SendFact is a recorded fact of a business process of comms.
type SendFact struct {
	// Kind is scheduled, failed or succeeded.
	Kind    string
	Attempt int
	// Task is the scheduled task, or 0.
	Task  int64
	Error string
	At    time.Time
}

// ListSendFacts returns the statement that reads the facts of a business process, in order.
func (s *Store) ListSendFacts(channel string, send int64, found func(SendFact)) sqldb.Stmt {
	return read(sqldb.Stmt{SQL: s.comms("CommsHistory", channel), Args: []any{send, send, send}}, found, func(f *SendFact) []any {
		return []any{&f.Kind, &f.Attempt, &f.Task, &f.Error, &f.At}
	})
}
