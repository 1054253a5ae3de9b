package store

import (
	"time"

	"github.com/perdure/perdure/internal/sqldb"
)

// Horizon describes what keeps the database from removing deleted rows.
type Horizon struct {
	// Holder is "session", "prepared" (a prepared transaction), "slot", "standby", or empty if
	// there is none. Name is the process id, the name of the transaction, of the slot or of the
	// standby.
	Holder, Name, Detail string
	// Since is the start of the transaction. Slots and standbys have none.
	Since *time.Time
	// Dead is the number of deleted rows that were not removed yet, by the server's estimate.
	Dead int64
}

// Horizon returns the statement that finds the oldest transaction for which deleted rows are
// kept, if it has been open for some time. found is called once. It returns nothing for databases
// that remove deleted rows by themselves.
func (s *Store) Horizon(open time.Duration, found func(Horizon)) []sqldb.Stmt {
	if s.text("Horizon") == "" {
		return nil
	}
	return []sqldb.Stmt{read(s.stmt("Horizon", open.Microseconds()), found, func(h *Horizon) []any {
		return []any{&h.Holder, &h.Name, &h.Detail, &h.Since, &h.Dead}
	})}
}
