package store

import (
	"time"

	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/retry"
)

// Tried identifies the work item of attempts.
type Tried struct{ Kind, ID string }

// TriedHook identifies a hook.
func TriedHook(id string) Tried { return Tried{Kind: "hook", ID: id} }

// TriedInstance identifies an instance.
func TriedInstance(id string) Tried { return Tried{Kind: "instance", ID: id} }

// TriedAlarm identifies an alarm by the id of its row.
func TriedAlarm(item string) Tried { return Tried{Kind: "alarm", ID: item} }

func (t Tried) args() []any { return []any{t.Kind, t.ID} }

// ListAttempts returns the statement that reads the attempts that did not succeed,
// oldest first.
func (s *Store) ListAttempts(of Tried, found func(retry.Attempt)) sqldb.Stmt {
	list := s.stmt("AttemptList", of.args()...)
	list.Row = func(scan sqldb.Scan) error {
		var a retry.Attempt
		var began *time.Time
		if err := scan(&a.Step, &a.Number, &a.Outcome, &a.Error, &a.Worker, &began, &a.Ended); err != nil {
			return err
		}
		if began != nil {
			a.Began = began.UTC()
		}
		a.Ended = a.Ended.UTC()
		found(a)
		return nil
	}
	return list
}

// RunningInstance returns the statement that reads the worker of a running instance and the
// time of its start.
func (s *Store) RunningInstance(id string, found func(worker string, since *time.Time)) sqldb.Stmt {
	return twoColumns(s.stmt("InstanceRunning", id), found)
}
