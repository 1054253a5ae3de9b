package store

import (
	"cmp"
	"math"
	"time"

	"github.com/perdure/perdure/internal/sqldb"
)

// Dead is a dead letter: work that failed permanently or was quarantined.
type Dead struct {
	Kind, ID, Name, Status, Error string
	Attempts                      int
	Created, Died                 time.Time
	// Item is the id of a hook's row, by which the list of hooks is ordered.
	Item string
}

// DeadPosition is the position at which a list of the dead letters of one kind continues. The
// zero value is the start.
type DeadPosition struct {
	ID  string    `json:"i,omitempty"`
	Seq int64     `json:"s,omitempty"`
	At  time.Time `json:"t,omitzero"`
}

// firstID sorts before every UUID.
const firstID = "00000000-0000-0000-0000-000000000000"

// latest is after every stored time.
var latest = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// DeadLetters returns the statement that reads dead letters of a kind.
func (s *Store) DeadLetters(kind string, at DeadPosition, limit int, found func(Dead)) sqldb.Stmt {
	if kind == ConsumerKind {
		return s.deadConsumers(at, limit, found)
	}
	stmt := s.deadLetters(kind, at, limit)
	stmt.Row = func(scan sqldb.Scan) error {
		d := Dead{Kind: kind}
		into := []any{&d.ID, &d.Name, &d.Status, &d.Error, &d.Attempts, &d.Created, &d.Died}
		if kind == HookKind {
			into = append(into, &d.Item)
		}
		err := scan(into...)
		if err == nil {
			d.Created, d.Died = d.Created.UTC(), d.Died.UTC()
			found(d)
		}
		return err
	}
	return stmt
}

func (s *Store) deadLetters(kind string, at DeadPosition, limit int) sqldb.Stmt {
	before, seq := at.At, at.Seq
	if before.IsZero() {
		before = latest
	}
	if seq == 0 {
		seq = math.MaxInt64
	}
	switch kind {
	case InstanceKind:
		return s.stmt("DeadInstances", cmp.Or(at.ID, lastID), limit)
	case HookKind:
		return s.stmt("DeadHooks", before, cmp.Or(at.ID, firstID), limit)
	case TaskKind:
		return s.stmt("DeadTasks", seq, limit)
	case AlarmKind:
		return s.stmt("DeadAlarms", before, before, at.ID, limit)
	default:
		return s.stmt("DeadActors", before, before, at.ID, limit)
	}
}
