package store

import (
	"context"
	"strconv"
	"time"

	"github.com/perdure/perdure/internal/sqldb"
)

// Task is a claimed task.
type Task struct {
	ID                  int64
	Type, Payload       string
	Attempts, Crashes   int
	BatchLimit          *int // of a suspect
	Token               string
	Outcome             *string
	Enqueued, Scheduled time.Time
	Trace               *string
}

// TaskCrash is a task whose claim expired.
type TaskCrash struct {
	ID           int64
	Type, Status string
	Crashes      int
}

// TaskClaim describes a claim of tasks: the worker and the tasks that it wants.
type TaskClaim struct {
	Worker     string
	Types      []string
	Limit      int
	Lease      time.Duration
	MaxCrashes int
	// MayReap is false while expired claims of other workers must not be returned.
	MayReap bool
	// Least is the smallest batch limit of suspects that are also claimed.
	Least int
}

// task returns a statement on tasks. On SQLite the time is its last value. On PostgreSQL,
// functions read the time; see TaskClock.
func (s *Store) task(name string, now Now, args ...any) sqldb.Stmt {
	return s.stmt(name, s.timed(now, args)...)
}

func (s *Store) timed(now Now, args []any) []any {
	if s.dialect.HasFunctions() {
		return args
	}
	return append(args, at(now))
}

// TaskClock returns the statements that set the time for the functions of the transaction, if a
// test controls the time.
func (s *Store) TaskClock(now Now) []sqldb.Stmt {
	if now == nil || !s.dialect.HasFunctions() {
		return nil
	}
	return []sqldb.Stmt{ignored(s.stmt("TaskClock", at(now)))}
}

// TraceTask returns the enqueue statements with their trace, if there is one. On PostgreSQL,
// functions that run later in the transaction also enqueue with this trace.
func (s *Store) TraceTask(trace *string, enqueue []sqldb.Stmt) []sqldb.Stmt {
	switch {
	case trace == nil:
		return enqueue
	case s.dialect.HasFunctions():
		return append([]sqldb.Stmt{ignored(s.stmt("TaskTrace", *trace))}, enqueue...)
	}
	return append(enqueue, s.stmt("TaskTrace", *trace))
}

// ignored discards the result of a function, so that it is not used as a row count.
func ignored(stmt sqldb.Stmt) sqldb.Stmt {
	stmt.Row = func(sqldb.Scan) error { return nil }
	return stmt
}

// EnqueueTask returns the statement that records a task that is due at a time or after a delay.
// id is called with its number.
func (s *Store) EnqueueTask(taskType, payload string, due *time.Time, delay time.Duration, now Now, id func(int64)) sqldb.Stmt {
	return oneColumn(s.task("TaskEnqueue", now, taskType, payload, due, delay.Microseconds()), id)
}

// ClaimTasks returns expired claims to their queues and then leases up to c.Limit due tasks,
// the oldest first. Expired claims of the worker itself do not count as crashes.
func (s *Store) ClaimTasks(ctx context.Context, run sqldb.Runner, c TaskClaim, now Now) (claimed []Task, crashed []TaskCrash, err error) {
	reap := s.reapTasks(c, now, func(r TaskCrash) { crashed = append(crashed, r) })
	claim := read(s.task("TaskClaim", now, c.Worker, s.names(c.Types), c.Limit, c.Lease.Microseconds(), c.Least), func(t Task) {
		claimed = append(claimed, t)
	}, func(t *Task) []any {
		return []any{&t.ID, &t.Type, &t.Payload, &t.Attempts, &t.Crashes, &t.BatchLimit, &t.Token, &t.Outcome, &t.Enqueued, &t.Scheduled, &t.Trace}
	})
	if err := run.Run(ctx, append(append(s.TaskClock(now), reap...), claim)...); err != nil {
		return nil, nil, err
	}
	return claimed, crashed, s.recordCrashes(ctx, run, crashed, now)
}

// reapTasks returns the statements that return expired claims.
func (s *Store) reapTasks(c TaskClaim, now Now, crashed func(TaskCrash)) []sqldb.Stmt {
	row := func(scan sqldb.Scan) error {
		var r TaskCrash
		err := scan(&r.ID, &r.Type, &r.Status, &r.Crashes)
		crashed(r)
		return err
	}
	if s.dialect.HasFunctions() {
		reap := s.stmt("TaskReap", c.MaxCrashes, c.Worker, c.MayReap)
		reap.Row = row
		return []sqldb.Stmt{reap}
	}
	own := s.task("TaskReapOwn", now, c.Worker)
	if !c.MayReap {
		return []sqldb.Stmt{own}
	}
	reap := s.task("TaskReap", now, c.MaxCrashes)
	reap.Row = row
	return []sqldb.Stmt{own, reap}
}

// recordCrashes records the crashes if the database has no functions that do so.
func (s *Store) recordCrashes(ctx context.Context, run sqldb.Runner, crashed []TaskCrash, now Now) error {
	if s.dialect.HasFunctions() {
		return nil
	}
	var stmts []sqldb.Stmt
	for _, c := range crashed {
		message := "worker was lost while the task ran"
		if c.Status == "quarantined" {
			message += "; quarantined"
		}
		stmts = append(stmts, s.task("TaskTell", now, c.ID, message))
	}
	return run.Run(ctx, stmts...)
}

// ReportUnroutedTasks records an error for the oldest due task of each type that is not among
// the given types and that no worker seems to claim.
func (s *Store) ReportUnroutedTasks(ctx context.Context, run sqldb.Runner, types []string, now Now) error {
	report := s.task("TaskUnrouted", now, s.names(types))
	if s.dialect.HasFunctions() {
		return run.Run(ctx, append(s.TaskClock(now), ignored(report))...)
	}
	var stmts []sqldb.Stmt
	report = twoColumns(report, func(id int64, name string) {
		stmts = append(stmts, s.task("TaskTell", now, id, "no worker knows task type "+name))
	})
	if err := run.Run(ctx, report); err != nil {
		return err
	}
	return run.Run(ctx, stmts...)
}

// NextTask returns the statements that read the time until a task of these types is due or a
// claim expires. Suspects count if their batch limit is at least least. found is not called if
// there is none.
func (s *Store) NextTask(types []string, least int, now Now, found func(time.Duration)) []sqldb.Stmt {
	next := withRow(s.task("TaskNext", now, s.names(types), least), durationRow(found))
	return append(s.TaskClock(now), next)
}

// ExtendTasks returns the statements that renew leases. held is called for each task that was
// still held.
func (s *Store) ExtendTasks(claims []Held, lease time.Duration, now Now, held func(id string)) []sqldb.Stmt {
	extend := s.task("TaskExtend", now, taskClaims(claims), lease.Microseconds())
	extend.Row = func(scan sqldb.Scan) error {
		var id int64
		err := scan(&id)
		held(strconv.FormatInt(id, 10))
		return err
	}
	return append(s.TaskClock(now), extend)
}

// ReleaseTasks returns the statement that returns claims without counting an attempt.
func (s *Store) ReleaseTasks(claims []Held) sqldb.Stmt {
	return s.call(s.stmt("TaskRelease", taskClaims(claims)))
}

// PostponeTask returns the statements that return a claim with a delay and an error, without
// counting an attempt.
func (s *Store) PostponeTask(claim Held, message string, delay time.Duration, now Now) []sqldb.Stmt {
	stmts := s.stmts("TaskPostpone", s.timed(now, []any{taskID(claim.ID), claim.Token, message, delay.Microseconds()})...)
	for i := range stmts {
		stmts[i] = s.call(stmts[i])
	}
	return append(s.TaskClock(now), stmts...)
}

// call converts a statement that is a function on PostgreSQL so that it can be run for its
// effect.
func (s *Store) call(stmt sqldb.Stmt) sqldb.Stmt {
	if s.dialect.HasFunctions() {
		return ignored(stmt)
	}
	return stmt
}
