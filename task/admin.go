package task

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/unit"
)

// Record is a stored task.
type Record struct {
	ID      int64
	Type    string
	Payload json.RawMessage
	Status  Status
	// Attempts is the number of runs that ended, Crashes the number of runs that
	// crashed.
	Attempts, Crashes int
	// Outcome is the result of the send while its handler has not recorded it; nil if
	// there is none.
	Outcome             json.RawMessage
	Enqueued, Scheduled time.Time
	// Dequeued is the time of the last claim.
	Dequeued, Finished time.Time
	// Worker is the worker that has claimed the task, and LeaseExpires the end of its
	// lease, while the task is Running.
	Worker       string
	LeaseExpires time.Time
}

// ErrorRecord is an error that a worker recorded.
type ErrorRecord struct {
	ID int64
	// Task is 0 if the task no longer exists.
	Task    int64
	Message string
	Created time.Time
}

// Filter selects the tasks of a List. Zero fields select all.
type Filter struct {
	Type     string
	Statuses []Status
	// IDs selects tasks by id. Default: all.
	IDs []int64
}

const (
	// DefaultLimit is the default number of rows of a list.
	DefaultLimit = 50
	// MaxLimit is the maximum number of rows of a list.
	MaxLimit = 1000
)

// Admin lists and manages tasks. On PostgreSQL the engine's user must be a member of
// perdure_owner. The user who migrated is a member.
type Admin struct {
	eng *perdure.Engine
	rt  *host.Runtime
}

// NewAdmin returns the administration of the tasks of a database, or an error if the
// database does not support tasks.
func NewAdmin(eng *perdure.Engine) (*Admin, error) {
	if eng == nil {
		return nil, fault.Invalidf("engine", "is nil")
	}
	rt := host.Of(eng)
	if err := supported(rt.DB.Dialect()); err != nil {
		return nil, err
	}
	return &Admin{eng: eng, rt: rt}, nil
}

// List returns tasks, newest first, and the cursor of the next page, which is
// empty after the last one.
func (a *Admin) List(ctx context.Context, f Filter, cursor string, limit int) ([]Record, string, error) {
	limit, before, err := page(cursor, limit)
	if err != nil {
		return nil, "", err
	}
	filter := store.TaskFilter{Type: f.Type, IDs: f.IDs, Before: before, Limit: limit + 1}
	for _, s := range f.Statuses {
		if err := edge.OneOf("status", s, Statuses); err != nil {
			return nil, "", err
		}
		filter.Statuses = append(filter.Statuses, string(s))
	}
	var records []Record
	if err := a.read(ctx, a.tellTime(&filter.Now)); err != nil {
		return nil, "", fmt.Errorf("list tasks: %w", err)
	}
	if err := a.read(ctx, a.rt.Store.ListTasks(filter, func(t store.TaskRow) { records = append(records, recordOf(t, filter.Now)) })); err != nil {
		return nil, "", fmt.Errorf("list tasks: %w", err)
	}
	records, next := cut(records, limit, func(r Record) int64 { return r.ID })
	return records, next, nil
}

// Errors returns the errors of one task, or of all tasks if task is 0, newest first,
// and the cursor of the next page.
func (a *Admin) Errors(ctx context.Context, task int64, cursor string, limit int) ([]ErrorRecord, string, error) {
	limit, before, err := page(cursor, limit)
	if err != nil {
		return nil, "", err
	}
	var records []ErrorRecord
	list := a.rt.Store.ListTaskErrors(task, before, limit+1, func(e store.TaskErrorRow) {
		records = append(records, ErrorRecord{ID: e.ID, Task: value(e.Task), Message: e.Message, Created: e.Created.UTC()})
	})
	if err := a.read(ctx, list); err != nil {
		return nil, "", fmt.Errorf("list errors: %w", err)
	}
	records, next := cut(records, limit, func(r ErrorRecord) int64 { return r.ID })
	return records, next, nil
}

// page checks and decodes the cursor and the limit of a list. A cursor is the id of the
// last row of the previous page.
func page(cursor string, limit int) (int, int64, error) {
	limit, err := edge.Limit("limit", limit, DefaultLimit, MaxLimit)
	if err != nil || cursor == "" {
		return limit, 0, err
	}
	before, err := strconv.ParseInt(cursor, 10, 64)
	if err != nil || before < 1 {
		return 0, 0, fault.Invalidf("cursor", "is malformed")
	}
	return limit, before, nil
}

// cut returns a page of the rows and its cursor. There is one row more than limit if
// there is another page.
func cut[R any](rows []R, limit int, id func(R) int64) ([]R, string) {
	if len(rows) <= limit {
		return rows, ""
	}
	return rows[:limit], strconv.FormatInt(id(rows[limit-1]), 10)
}

// Get returns one task, or a *fault.NotFound.
func (a *Admin) Get(ctx context.Context, id int64) (Record, error) {
	var found Record
	var now time.Time
	if err := a.read(ctx, a.tellTime(&now), a.rt.Store.GetTask(id, func(t store.TaskRow) { found = recordOf(t, now) })); err != nil {
		return Record{}, fmt.Errorf("get task: %w", err)
	}
	return found, nil
}

// Retry makes a task due now, as if it had never run. If an earlier run has sent but
// not recorded the result, nothing is sent again. For a running task it returns a
// *perdure.StateError.
func (a *Admin) Retry(ctx context.Context, id int64) error {
	return a.eng.Update(ctx, func(tx *perdure.Tx) error { return a.RetryIn(tx, id) })
}

// RetryIn is Retry as part of a unit of work, which fails if the task cannot be
// retried.
func (a *Admin) RetryIn(tx *perdure.Tx, id int64) error {
	return a.change(tx, "retry", id, a.rt.Store.ReviveTask)
}

// Cancel cancels a task. If the task is running, its context is cancelled soon and its
// outcome is dropped. For a finished task it returns a *perdure.StateError.
func (a *Admin) Cancel(ctx context.Context, id int64) error {
	return a.eng.Update(ctx, func(tx *perdure.Tx) error { return a.CancelIn(tx, id) })
}

// CancelIn is Cancel as part of a unit of work, which fails if the task cannot be
// cancelled.
func (a *Admin) CancelIn(tx *perdure.Tx, id int64) error {
	return a.change(tx, "cancel", id, a.rt.Store.CancelTask)
}

// change records statements that must change the task. If they do not, it returns an
// error with the reason.
func (a *Admin) change(tx *perdure.Tx, verb string, id int64, stmts func(int64, store.Now, *int64) []sqldb.Stmt) error {
	var changed int64
	var found Record
	var now time.Time
	get := a.rt.Store.GetTask(id, func(t store.TaskRow) { found = recordOf(t, now) })
	exists := get.Done
	get.Done = func(rows int64) error {
		err := exists(rows)
		if err == nil && changed == 0 {
			err = &perdure.StateError{Kind: "task", ID: strconv.FormatInt(id, 10), Status: string(found.Status), Finished: found.Status.Finished()}
		}
		if err != nil {
			return fmt.Errorf("%s task: %w", verb, err)
		}
		return nil
	}
	committed := func() { a.rt.Hub.Publish(topic, time.Time{}) }
	return host.In(tx).Attach(committed, append(stmts(id, a.rt.Now(), &changed), a.tellTime(&now), get)...)
}

// Purge removes tasks that were done or cancelled longer than age ago, and errors that
// are older than age. On PostgreSQL it keeps tasks for at least an hour. It returns the
// numbers of removed tasks and errors.
func (a *Admin) Purge(ctx context.Context, age time.Duration) (tasks, errors int64, err error) {
	if age < 0 {
		return 0, 0, fault.Invalidf("age", "must not be negative, got %v", age)
	}
	tasks, err = a.repeat(ctx, func(removed *int64) []sqldb.Stmt { return a.rt.Store.SweepTasks(false, age, a.rt.Now(), removed) })
	if err != nil {
		return tasks, 0, fmt.Errorf("purge tasks: %w", err)
	}
	errors, err = a.repeat(ctx, func(removed *int64) []sqldb.Stmt { return a.rt.Store.PurgeTaskErrors(age, a.rt.Now(), removed) })
	if err != nil {
		return tasks, errors, fmt.Errorf("purge errors: %w", err)
	}
	return tasks, errors, nil
}

// PurgeDead removes dead letters: tasks that failed or were quarantined longer than age
// ago. On PostgreSQL it keeps them for at least an hour. It returns the number of
// removed tasks.
func (a *Admin) PurgeDead(ctx context.Context, age time.Duration) (int64, error) {
	if age < 0 {
		return 0, fault.Invalidf("age", "must not be negative, got %v", age)
	}
	n, err := a.repeat(ctx, func(removed *int64) []sqldb.Stmt { return a.rt.Store.SweepTasks(true, age, a.rt.Now(), removed) })
	if err != nil {
		return n, fmt.Errorf("purge tasks: %w", err)
	}
	return n, nil
}

// repeat removes rows in batches until none is left.
func (a *Admin) repeat(ctx context.Context, stmts func(removed *int64) []sqldb.Stmt) (total int64, err error) {
	for {
		var removed int64
		if err := a.remove(ctx, &removed, stmts(&removed)...); err != nil || removed == 0 {
			return total, err
		}
		total += removed
	}
}

// Lint returns the problems with the privileges around the role perdure_worker. Each is
// one sentence, with the statement that a superuser runs to solve it. On SQLite there
// are none.
func (a *Admin) Lint(ctx context.Context) (problems []string, err error) {
	if a.rt.DB.Dialect().Name != sqldb.Postgres {
		return nil, nil
	}
	err = a.read(ctx, a.rt.Store.LintTasks(func(problem, object, remedy string) {
		if remedy != "" {
			remedy = "; run as superuser: " + remedy
		}
		problems = append(problems, problem+": "+object+remedy)
	}))
	if err != nil {
		return nil, fmt.Errorf("lint: %w", err)
	}
	return problems, nil
}

// tellTime returns the statement that reads the time by which tasks are due.
func (a *Admin) tellTime(now *time.Time) sqldb.Stmt {
	return a.rt.Store.TellTime(a.rt.Now(), func(t time.Time) { *now = t })
}

func (a *Admin) read(ctx context.Context, stmts ...sqldb.Stmt) error {
	ctx, cancel := context.WithTimeout(ctx, a.rt.Timeout)
	defer cancel()
	tx, err := a.rt.DB.Begin(ctx, sqldb.Read)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	return bare(tx.Run(ctx, stmts...))
}

// remove runs statements that remove rows, and writes an audit record if they did.
func (a *Admin) remove(ctx context.Context, removed *int64, stmts ...sqldb.Stmt) error {
	ctx, cancel := context.WithTimeout(ctx, a.rt.Timeout)
	defer cancel()
	return bare(unit.Transact(ctx, a.rt.DB, sqldb.Write, func(tx sqldb.Tx) error {
		if err := tx.Run(ctx, stmts...); err != nil || *removed == 0 {
			return err
		}
		return a.rt.Store.RecordRemoved(ctx, tx, a.rt.Clock.Now(), *removed)
	}))
}

func recordOf(t store.TaskRow, now time.Time) Record {
	return Record{
		ID: t.ID, Type: t.Type, Payload: json.RawMessage(t.Payload), Status: Status(store.Refine(t.Status, t.Attempts, t.Scheduled, now)), Attempts: t.Attempts, Crashes: t.Crashes,
		Outcome: json.RawMessage(value(t.Outcome)), Enqueued: t.Enqueued.UTC(), Scheduled: t.Scheduled.UTC(), Dequeued: value(t.Dequeued).UTC(),
		Finished: value(t.Finished).UTC(), Worker: value(t.Worker), LeaseExpires: value(t.LeaseEnd).UTC(),
	}
}

// value returns the value of a pointer, or the zero value if it is nil.
func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}
