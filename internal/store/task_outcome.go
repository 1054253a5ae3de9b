package store

import (
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/perdure/perdure/internal/sqldb"
)

// taskClaims returns the numbers and tokens of task claims. The id of a claim is the number of
// its task.
func taskClaims(claims []Held) tuples {
	return tuples{column(claims, func(c Held) int64 { return taskID(c.ID) }), column(claims, func(c Held) string { return c.Token })}
}

func taskID(id string) int64 {
	n, _ := strconv.ParseInt(id, 10, 64) // Perdure has written it
	return n
}

// TaskRun is a task that must be held until the transaction ends, and the function that
// PostgreSQL runs for it, if there is one.
type TaskRun struct {
	Held
	Function, Payload *string
	// Trace is the trace of the tasks that the function enqueues.
	Trace *string
}

// TaskResult is the result of a task's function and its running time.
type TaskResult struct {
	Result json.RawMessage
	Took   time.Duration
}

// HoldTasks returns the statements that hold claimed tasks until the transaction ends, and run
// their functions on PostgreSQL. found is called for each task that is held.
func (s *Store) HoldTasks(runs []TaskRun, now Now, found func(id string, r TaskResult) error) []sqldb.Stmt {
	args := taskClaims(column(runs, func(r TaskRun) Held { return r.Held }))
	postgres := s.dialect.HasFunctions()
	if postgres {
		args = append(args, column(runs, func(r TaskRun) *string { return r.Function }),
			column(runs, func(r TaskRun) *string { return r.Payload }), column(runs, func(r TaskRun) *string { return r.Trace }))
	}
	hold := s.stmt("TaskHold", args)
	hold.Row = func(scan sqldb.Scan) (err error) {
		var id, took int64
		var result *string
		if postgres {
			err = scan(&id, &result, &took)
		} else {
			err = scan(&id)
		}
		if err != nil {
			return err
		}
		return found(strconv.FormatInt(id, 10), TaskResult{Result: []byte(or(result, "")), Took: time.Duration(took) * time.Microsecond})
	}
	hold.Fail = func(err error) error {
		if code := SQLState(err); code != "" && !sqldb.IsTransient(err) && !sqldb.IsLocked(err) {
			return &TaskFunctionError{Code: code, Message: err.Error()}
		}
		return err
	}
	return append(s.TaskClock(now), hold)
}

// TaskFunctionError is an error that a database function has raised. It is not an error of the
// database itself, even if its code is one.
type TaskFunctionError struct{ Code, Message string }

func (e *TaskFunctionError) Error() string { return e.Message }

// SQLState returns PostgreSQL's error code, or "".
func SQLState(err error) string {
	var coded interface{ SQLState() string }
	if errors.As(err, &coded) {
		return coded.SQLState()
	}
	return ""
}

// TaskError is an error of a held task.
type TaskError struct {
	Held
	Message string
}

// AppendTaskErrors returns the statement that records errors of held tasks.
func (s *Store) AppendTaskErrors(all []TaskError, now Now) sqldb.Stmt {
	claims := taskClaims(column(all, func(e TaskError) Held { return e.Held }))
	return s.call(s.task("TaskAppendError", now, append(claims, column(all, func(e TaskError) string { return e.Message }))))
}

// CompleteTasks returns the statement that finishes held tasks.
func (s *Store) CompleteTasks(claims []Held, now Now) sqldb.Stmt {
	return s.call(s.task("TaskComplete", now, taskClaims(claims)))
}

// TaskFailure is a failed task and its consequence.
type TaskFailure struct {
	Held
	Message string
	// Delay is the time until the retry, nil if the task is not retried.
	Delay *time.Duration
	// Outcome is the outcome that the handler has yet to record, nil if it is unchanged.
	Outcome *string
}

// FailTasks returns the statements that finish claims with an error.
func (s *Store) FailTasks(all []TaskFailure, now Now) []sqldb.Stmt {
	claims := append(taskClaims(column(all, func(f TaskFailure) Held { return f.Held })),
		column(all, func(f TaskFailure) string { return f.Message }),
		column(all, func(f TaskFailure) *int64 { return micros(f.Delay) }),
		column(all, func(f TaskFailure) *string { return f.Outcome }))
	stmts := s.stmts("TaskFail", s.timed(now, []any{claims})...)
	for i := range stmts {
		stmts[i] = s.call(stmts[i])
	}
	return stmts
}

// SweepTasks returns the statements that remove tasks that finished longer than keep ago.
// removed is set to their number. On PostgreSQL, keep is at least one hour.
func (s *Store) SweepTasks(dead bool, keep time.Duration, now Now, removed *int64) []sqldb.Stmt {
	name := "TaskSweep"
	if dead {
		name = "TaskSweepDead"
	}
	sweep := s.task(name, now, keep.Microseconds())
	if s.dialect.HasFunctions() {
		return append(s.TaskClock(now), oneColumn(sweep, func(n int64) { *removed = n }))
	}
	return []sqldb.Stmt{counted(sweep, removed)}
}
