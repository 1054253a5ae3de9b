package store

import (
	"time"

	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/retry"
)

// Tried is what attempts were of.
type Tried struct {
	Kind, ID string
	// The actor is that of an alarm, if it has one.
	ActorType, ActorID string
}

// TriedHook names a hook.
func TriedHook(id string) Tried { return Tried{Kind: "hook", ID: id} }

// TriedInstance names an instance.
func TriedInstance(id string) Tried { return Tried{Kind: "instance", ID: id} }

// TriedAlarm names an alarm.
func TriedAlarm(k AlarmKey) Tried {
	return Tried{Kind: "alarm", ID: k.ID, ActorType: k.ActorType, ActorID: k.ActorID}
}

func (t Tried) args() []any { return []any{t.Kind, t.ID, t.ActorType, t.ActorID} }

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

// capAttempts returns the statement that forgets all but the newest attempts.
func (s *Store) capAttempts(of Tried) sqldb.Stmt {
	return s.stmt("AttemptCap", append(of.args(), of.args()...)...)
}

// recorded returns the statements that end a claim with an attempt that is recorded:
// before the outcome, which takes the claim away that both are guarded by.
func (s *Store) recorded(of Tried, attempt, outcome sqldb.Stmt) []sqldb.Stmt {
	return []sqldb.Stmt{attempt, outcome, s.capAttempts(of)}
}

// LostAlarms returns the statements that record the attempts of claims that have just
// been returned.
func (s *Store) LostAlarms(reaped []Alarm, now Now) []sqldb.Stmt {
	var stmts []sqldb.Stmt
	for _, r := range reaped {
		stmts = append(stmts, s.stmt("AlarmLost", append([]any{at(now)}, r.args()...)...), s.capAttempts(TriedAlarm(r.AlarmKey)))
	}
	return stmts
}

// RunningInstance returns the statement that tells who has an instance that runs, and
// since when.
func (s *Store) RunningInstance(id string, found func(worker string, since *time.Time)) sqldb.Stmt {
	running := s.stmt("InstanceRunning", id)
	running.Row = func(scan sqldb.Scan) error {
		var worker string
		var since *time.Time
		err := scan(&worker, &since)
		if err == nil {
			found(worker, since)
		}
		return err
	}
	return running
}
