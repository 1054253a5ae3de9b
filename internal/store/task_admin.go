package store

import (
	"strconv"
	"strings"
	"time"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/sqldb"
)

// TaskRow is a stored task. Status is its place; see Refine.
type TaskRow struct {
	ID                           int64
	Type, Payload, Status        string
	Attempts, Crashes            int
	Outcome                      *string
	Enqueued, Scheduled          time.Time
	Dequeued, Finished, LeaseEnd *time.Time
	Worker                       *string
}

// TaskFilter restricts a list of tasks. Empty fields match every task.
type TaskFilter struct {
	Type     string
	Statuses []string
	// Now distinguishes scheduled tasks from ready tasks.
	Now time.Time
	// IDs selects only these tasks.
	IDs []int64
	// Before is the last task of the previous page, 0 if there is none.
	Before int64
	Limit  int
}

// GetTask returns the statement that reads a task.
func (s *Store) GetTask(id int64, found func(TaskRow)) sqldb.Stmt {
	get := s.stmt("TaskGet", id)
	get.Row = taskRow(found)
	get.Done = sqldb.One(&fault.NotFound{Kind: "task", ID: strconv.FormatInt(id, 10)})
	return get
}

// ListTasks returns the statement that reads tasks, newest first.
func (s *Store) ListTasks(f TaskFilter, found func(TaskRow)) sqldb.Stmt {
	head, _, _ := strings.Cut(s.text("TaskGet"), "where ")
	w := conditions{}
	w.equal("task_type", f.Type)
	w.statuses(taskStatus, f.Statuses, f.Now, nil)
	ids := make([]any, len(f.IDs))
	for i, id := range f.IDs {
		ids[i] = id
	}
	w.in("task_id", ids)
	if f.Before > 0 {
		w.add("task_id < ?", f.Before)
	}
	text := head + w.sql() + "order by task_id desc\nlimit ?"
	return sqldb.Stmt{SQL: s.complete(text), Args: append(w.args, f.Limit), Row: taskRow(found)}
}

func taskRow(found func(TaskRow)) func(sqldb.Scan) error {
	return func(scan sqldb.Scan) error {
		var t TaskRow
		err := scan(&t.ID, &t.Type, &t.Payload, &t.Status, &t.Attempts, &t.Crashes, &t.Outcome, &t.Enqueued, &t.Scheduled,
			&t.Dequeued, &t.Finished, &t.Worker, &t.LeaseEnd)
		if err == nil {
			t.Status = taskWords.status(t.Status)
			found(t)
		}
		return err
	}
}

// taskStatus names the columns of a task's status.
var taskStatus = statusOf{place: "status", attempts: "attempts", due: "scheduled_at", words: taskWords}

// RestartTask returns the statements that make a task due now unless it is running. changed is
// set to the number of changed tasks.
func (s *Store) RestartTask(id int64, now Now, changed *int64) []sqldb.Stmt {
	return append(s.TaskClock(now), counted(s.task("TaskRevive", now, id), changed))
}

// MakeTaskDue returns the statements that make a waiting task due now. changed is set to the
// number of changed tasks.
func (s *Store) MakeTaskDue(id int64, now Now, changed *int64) []sqldb.Stmt {
	return append(s.TaskClock(now), counted(s.task("TaskHasten", now, id), changed))
}

// LastTaskErrors returns the statement that reads the last errors of tasks.
func (s *Store) LastTaskErrors(ids []string, found func(id, message string)) sqldb.Stmt {
	return twoColumns(s.stmt("TaskErrorLast", one(ids)), found)
}

// CancelTask returns the statements that cancel an unfinished task. changed is set to the
// number of changed tasks.
func (s *Store) CancelTask(id int64, now Now, changed *int64) []sqldb.Stmt {
	return append(s.TaskClock(now), counted(s.task("TaskCancel", now, id), changed))
}

// DeleteTask returns the statement that removes a task unless it is running. deleted is set to
// the number of removed tasks.
func (s *Store) DeleteTask(id int64, deleted *int64) sqldb.Stmt {
	return counted(s.stmt("TaskDelete", id), deleted)
}

// TaskErrorRow is a row of queues.error.
type TaskErrorRow struct {
	ID      int64
	Task    *int64
	Message string
	Created time.Time
}

// ListTaskErrors returns the statement that reads errors, newest first. If task is not 0, it
// reads only the errors of that task. If before is not 0, it reads only older errors.
func (s *Store) ListTaskErrors(task, before int64, limit int, found func(TaskErrorRow)) sqldb.Stmt {
	w := conditions{}
	if task > 0 {
		w.add("task_id = ?", task)
	}
	if before > 0 {
		w.add("error_id < ?", before)
	}
	text := s.text("TaskErrorList") + "\n" + w.sql() + "order by error_id desc\nlimit ?"
	return read(sqldb.Stmt{SQL: s.complete(text), Args: append(w.args, limit)}, found, func(e *TaskErrorRow) []any {
		return []any{&e.ID, &e.Task, &e.Message, &e.Created}
	})
}

// PurgeTaskErrors returns the statements that remove some errors that are older than keep.
// removed is set to their number.
func (s *Store) PurgeTaskErrors(keep time.Duration, now Now, removed *int64) []sqldb.Stmt {
	return append(s.TaskClock(now), counted(s.task("TaskErrorPurge", now, keep.Microseconds()), removed))
}

// LintTasks returns the statement that finds problems with the privileges of the worker's role,
// on PostgreSQL. remedy is the statement with which a superuser fixes the problem.
func (s *Store) LintTasks(found func(problem, object, remedy string)) sqldb.Stmt {
	return threeColumns(s.stmt("TaskLint"), found)
}

// EndOverdueSessions returns the statement that terminates sessions of the worker's role whose
// transactions take too long, on PostgreSQL.
func (s *Store) EndOverdueSessions() sqldb.Stmt { return ignored(s.stmt("TaskEndOverdue")) }
