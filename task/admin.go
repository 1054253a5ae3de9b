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
	ID      string
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
	ID string
	// Task is empty if the task no longer exists.
	Task    string
	Message string
	Created time.Time
}

// Filter selects the tasks of a List. Zero fields select all.
type Filter struct {
	Type     string
	Statuses []Status
	// IDs selects tasks by id. Default: all.
	IDs []string
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
		return nil, fault.Invalidf("engine", "must not be nil")
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
	filter := store.TaskFilter{Type: f.Type, Before: before, Limit: limit + 1}
	for _, id := range f.IDs {
		if n, err := numberOf(id); err == nil {
			filter.IDs = append(filter.IDs, n)
		}
	}
	if len(f.IDs) > 0 && len(filter.IDs) == 0 { // no task can have one of the ids
		return nil, "", nil
	}
	for _, s := range f.Statuses {
		if err := edge.OneOf("status", s, Statuses); err != nil {
			return nil, "", err
		}
		filter.Statuses = append(filter.Statuses, string(s))
	}
	var records []Record
	if err := a.read(ctx, a.readTime(&filter.Now)); err != nil {
		return nil, "", fmt.Errorf("list tasks: %w", err)
	}
	if err := a.read(ctx, a.rt.Store.ListTasks(filter, func(t store.TaskRow) { records = append(records, recordOf(t, filter.Now)) })); err != nil {
		return nil, "", fmt.Errorf("list tasks: %w", err)
	}
	records, next := cut(records, limit, func(r Record) string { return r.ID })
	return records, next, nil
}

// Errors returns the errors of one task, or of all tasks if id is empty, newest first,
// and the cursor of the next page.
func (a *Admin) Errors(ctx context.Context, id, cursor string, limit int) ([]ErrorRecord, string, error) {
	limit, before, err := page(cursor, limit)
	if err != nil {
		return nil, "", err
	}
	var n int64
	if id != "" {
		if n, err = numberOf(id); err != nil {
			return nil, "", err
		}
	}
	var records []ErrorRecord
	list := a.rt.Store.ListTaskErrors(n, before, limit+1, func(e store.TaskErrorRow) {
		record := ErrorRecord{ID: text(e.ID), Message: e.Message, Created: e.Created.UTC()}
		if e.Task != nil {
			record.Task = text(*e.Task)
		}
		records = append(records, record)
	})
	if err := a.read(ctx, list); err != nil {
		return nil, "", fmt.Errorf("list errors: %w", err)
	}
	records, next := cut(records, limit, func(r ErrorRecord) string { return r.ID })
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
func cut[R any](rows []R, limit int, id func(R) string) ([]R, string) {
	if len(rows) <= limit {
		return rows, ""
	}
	return rows[:limit], id(rows[limit-1])
}

// text returns the id of a task. In the database, ids are numbers.
func text(id int64) string { return strconv.FormatInt(id, 10) }

// numberOf returns the number of a task's id. No task has another id.
func numberOf(id string) (int64, error) {
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil || n < 1 || text(n) != id {
		return 0, &fault.NotFound{Kind: "task", ID: id}
	}
	return n, nil
}

// Get returns one task, or a *fault.NotFound.
func (a *Admin) Get(ctx context.Context, id string) (Record, error) {
	n, err := numberOf(id)
	if err != nil {
		return Record{}, err
	}
	var found Record
	var now time.Time
	if err := a.read(ctx, a.readTime(&now), a.rt.Store.GetTask(n, func(t store.TaskRow) { found = recordOf(t, now) })); err != nil {
		return Record{}, fmt.Errorf("get task: %w", err)
	}
	return found, nil
}

// Retry makes a task due now, as if it had never run. If an earlier run has sent but
// not recorded the result, nothing is sent again. For a running task it returns a
// *perdure.StateError.
func (a *Admin) Retry(ctx context.Context, id string) error {
	return a.eng.Update(ctx, func(tx *perdure.Tx) error { return a.RetryIn(tx, id) })
}

// RetryIn is Retry as part of a unit of work, which fails if the task cannot be
// retried.
func (a *Admin) RetryIn(tx *perdure.Tx, id string) error {
	return a.change(tx, "retry", id, a.rt.Store.RestartTask)
}

// RunNow makes a task due now that waits for its due time or for another attempt. Its
// attempts are kept. For a running or finished task it returns a *perdure.StateError.
func (a *Admin) RunNow(ctx context.Context, id string) error {
	return a.eng.Update(ctx, func(tx *perdure.Tx) error { return a.RunNowIn(tx, id) })
}

// RunNowIn is RunNow as part of a unit of work, which fails if the task does not wait.
func (a *Admin) RunNowIn(tx *perdure.Tx, id string) error {
	return a.change(tx, "run", id, a.rt.Store.MakeTaskDue)
}

// Cancel cancels a task. If the task is running, its context is cancelled soon and its
// outcome is dropped. For a finished task it returns a *perdure.StateError.
func (a *Admin) Cancel(ctx context.Context, id string) error {
	return a.eng.Update(ctx, func(tx *perdure.Tx) error { return a.CancelIn(tx, id) })
}

// CancelIn is Cancel as part of a unit of work, which fails if the task cannot be
// cancelled.
func (a *Admin) CancelIn(tx *perdure.Tx, id string) error {
	return a.change(tx, "cancel", id, a.rt.Store.CancelTask)
}

// change records statements that must change the task. If they do not, it returns an
// error with the reason.
func (a *Admin) change(tx *perdure.Tx, verb, id string, stmts func(int64, store.Now, *int64) []sqldb.Stmt) error {
	n, err := numberOf(id)
	if err != nil {
		return host.In(tx).Fail(fmt.Errorf("%s task: %w", verb, err))
	}
	var changed int64
	var found Record
	var now time.Time
	get := a.rt.Store.GetTask(n, func(t store.TaskRow) { found = recordOf(t, now) })
	exists := get.Done
	get.Done = func(rows int64) error {
		err := exists(rows)
		if err == nil && changed == 0 {
			err = &perdure.StateError{Kind: "task", ID: id, Status: string(found.Status), Finished: found.Status.Finished()}
		}
		if err != nil {
			return fmt.Errorf("%s task: %w", verb, err)
		}
		return nil
	}
	committed := func() { a.rt.Hub.Publish(topic, time.Time{}) }
	return host.In(tx).Attach(committed, append(stmts(n, a.rt.Now(), &changed), a.readTime(&now), get)...)
}

// Delete removes a task permanently, in any status except running. It returns a
// *perdure.StateError if the task is running: cancel it first. The facts of a business
// process are kept.
func (a *Admin) Delete(ctx context.Context, id string) error {
	return a.eng.Update(ctx, func(tx *perdure.Tx) error { return a.DeleteIn(tx, id) })
}

// DeleteIn is Delete as part of a unit of work, which fails if the task cannot be
// deleted.
func (a *Admin) DeleteIn(tx *perdure.Tx, id string) error {
	if err := a.deleteIn(tx, id); err != nil {
		return host.In(tx).Fail(fmt.Errorf("delete task: %w", err))
	}
	return nil
}

func (a *Admin) deleteIn(tx *perdure.Tx, id string) error {
	n, err := numberOf(id)
	if err != nil {
		return err
	}
	run, err := host.In(tx).Runner()
	if err != nil {
		return err
	}
	var deleted int64
	if err := run.Run(tx.Context(), a.rt.Store.DeleteTask(n, &deleted)); err != nil || deleted == 1 {
		return err
	}
	var status string
	if err := run.Run(tx.Context(), a.rt.Store.GetTask(n, func(t store.TaskRow) { status = t.Status })); err != nil {
		return bare(err)
	}
	return &perdure.StateError{Kind: "task", ID: id, Status: status}
}

// Purge removes tasks that were done or cancelled longer than age ago, and returns how
// many it removed. On PostgreSQL it keeps tasks for at least an hour.
func (a *Admin) Purge(ctx context.Context, age time.Duration) (int64, error) {
	return a.purge(ctx, "tasks", age, func(removed *int64) []sqldb.Stmt { return a.rt.Store.SweepTasks(false, age, a.rt.Now(), removed) })
}

// PurgeDead is Purge for dead letters: tasks that failed or were quarantined.
func (a *Admin) PurgeDead(ctx context.Context, age time.Duration) (int64, error) {
	return a.purge(ctx, "tasks", age, func(removed *int64) []sqldb.Stmt { return a.rt.Store.SweepTasks(true, age, a.rt.Now(), removed) })
}

// PurgeErrors removes errors that are older than age, and returns how many it removed.
func (a *Admin) PurgeErrors(ctx context.Context, age time.Duration) (int64, error) {
	return a.purge(ctx, "errors", age, func(removed *int64) []sqldb.Stmt { return a.rt.Store.PurgeTaskErrors(age, a.rt.Now(), removed) })
}

// purge removes rows in batches until none is left.
func (a *Admin) purge(ctx context.Context, what string, age time.Duration, stmts func(removed *int64) []sqldb.Stmt) (total int64, err error) {
	if age < 0 {
		return 0, fault.Invalidf("age", "must not be negative, got %v", age)
	}
	for {
		var removed int64
		if err := a.remove(ctx, &removed, stmts(&removed)...); err != nil {
			return total, fmt.Errorf("purge %s: %w", what, err)
		}
		if total += removed; removed == 0 {
			return total, nil
		}
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

// readTime returns the statement that reads the time by which tasks are due.
func (a *Admin) readTime(now *time.Time) sqldb.Stmt {
	return a.rt.Store.ReadTime(a.rt.Now(), func(t time.Time) { *now = t })
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
		ID: text(t.ID), Type: t.Type, Payload: json.RawMessage(t.Payload), Status: Status(store.Refine(t.Status, t.Attempts, t.Scheduled, now)), Attempts: t.Attempts, Crashes: t.Crashes,
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
