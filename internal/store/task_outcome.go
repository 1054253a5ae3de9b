package store

import (
	"errors"
	"time"

	"github.com/perdure/perdure/internal/sqldb"
)

// HoldTask returns the statements that keep a claimed task ours until the
// transaction ends. If it is not any more they fail with ErrTaskLost, and
// nothing that follows is run.
func (s *Store) HoldTask(id int64, token string, now Now) []sqldb.Stmt {
	hold := ignored(s.stmt("TaskHold", id, token))
	hold.Done = sqldb.One(ErrTaskLost)
	hold.Fail = func(err error) error {
		if SQLState(err) == "PRD01" {
			return ErrTaskLost
		}
		return err
	}
	return append(s.TaskClock(now), hold)
}

// SQLState returns PostgreSQL's code of an error, or nothing.
func SQLState(err error) string {
	var coded interface{ SQLState() string }
	if errors.As(err, &coded) {
		return coded.SQLState()
	}
	return ""
}

// RunTaskFunction returns the statement that runs a function of the database by
// its name, on PostgreSQL; result learns what it returned.
func (s *Store) RunTaskFunction(function, payload string, result *string) sqldb.Stmt {
	run := s.stmt("TaskRun", function, payload)
	run.Row = func(scan sqldb.Scan) error { return scan(result) }
	return run
}

// AppendTaskError returns the statement that records an error of a task that is
// held.
func (s *Store) AppendTaskError(id int64, token, message string, now Now) sqldb.Stmt {
	return s.call(s.task("TaskAppendError", now, id, token, message))
}

// CompleteTask returns the statement that ends a task that is held.
func (s *Store) CompleteTask(id int64, token string, now Now) sqldb.Stmt {
	return s.call(s.task("TaskComplete", now, id, token))
}

// TaskFailure says what becomes of a task that failed.
type TaskFailure struct {
	Message string
	// Delay is when it is tried again; nil: never.
	Delay *time.Duration
	// Outcome is what its handler has yet to take note of; nil: as before.
	Outcome *string
}

// FailTask returns the statements that end a claim with an error.
func (s *Store) FailTask(id int64, token string, f TaskFailure, now Now) []sqldb.Stmt {
	stmts := s.stmts("TaskFail", s.timed(now, []any{id, token, f.Message, micros(f.Delay), f.Outcome})...)
	for i := range stmts {
		stmts[i] = s.call(stmts[i])
	}
	return stmts
}

// SweepTasks returns the statements that remove tasks that were done longer than
// keep ago; removed learns how many. On PostgreSQL that is at least an hour.
func (s *Store) SweepTasks(dead bool, keep time.Duration, now Now, removed *int64) []sqldb.Stmt {
	name := "TaskSweep"
	if dead {
		name = "TaskSweepDead"
	}
	sweep := s.task(name, now, keep.Microseconds())
	if s.dialect.Name == sqldb.Postgres {
		return append(s.TaskClock(now), number(sweep, removed))
	}
	return []sqldb.Stmt{counted(sweep, removed)}
}
