// Package task is a queue whose business logic is in the database, as append-only
// facts, and the worker that runs it.
//
// A task is a row with a type, a payload and a due time. The worker does one of two
// things with it. It runs a function of the database by its name (the type
// db_function). Or it does something outside any transaction, such as sending an email,
// between handlers that are functions of the database. Supervisors are functions that
// read facts and enqueue tasks; the worker never does.
//
//	resend, err := mail.Resend(key, nil)
//	worker, err := task.NewWorker(eng, &task.Options{Senders: map[string]task.Sender{
//		"email": resend,
//	}})
//	d, err := dispatch.NewPoller(worker, nil)
//	d.Start()
//	defer d.Stop(ctx)
//	…
//	err = eng.Update(ctx, func(tx *perdure.Tx) error {
//		_, err := task.SendEmailIn(tx, task.Email{From: "shop@example.com", To: to, Subject: "Thanks", Text: text}, nil)
//		return err
//	})
//
// On PostgreSQL the functions are functions of the database, and the worker only needs
// the privilege to execute them: OpenWorker runs a worker as the role perdure_worker.
// SQLite has no such functions; they are Go functions with the same names.
//
// A sender may be called more than once for the same attempt, because a process can
// crash after the side effect and before it is recorded. A sender must therefore be
// idempotent. The Key of its Info is the same each time.
package task

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/driver/postgres"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/wake"
	"github.com/perdure/perdure/internal/work"
)

// topic is the topic of the workers' wake-ups.
const topic = "task"

// Worker runs tasks. It is a dispatch.Processor.
type Worker struct {
	rt      *host.Runtime
	eng     *perdure.Engine // nil if opened by OpenWorker
	options Options
	runner  *work.Runner
	types   []string
	pace    pace
	looked  time.Time // last check for tasks that no worker knows; the core claims one at a time
	ended   time.Time // last check for sessions that take too long
}

// NewWorker returns a worker on the connections of an engine. Functions run with the
// privileges of the engine's user.
func NewWorker(eng *perdure.Engine, options *Options) (*Worker, error) {
	if eng == nil {
		return nil, fault.Invalidf("engine", "must not be nil")
	}
	rt := host.Of(eng)
	if err := supported(rt.DB.Dialect()); err != nil {
		return nil, err
	}
	return newWorker(rt, eng, options)
}

// OpenWorker returns a worker with its own connections, on PostgreSQL. It is for
// processes with the least privileges: the user of the URL only needs the privileges of
// the role perdure_worker. Call Close when the worker is no longer needed.
func OpenWorker(ctx context.Context, dsn string, options *Options) (*Worker, error) {
	db, err := postgres.Open(ctx, dsn)
	if err != nil {
		return nil, err
	}
	st, err := store.New(db)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	rt := &host.Runtime{DB: db, Store: st, Hub: wake.New(db, nil), Clock: clock.System, Timeout: 30 * time.Second}
	w, err := newWorker(rt, nil, options)
	if err != nil {
		rt.Hub.Close()
		return nil, errors.Join(err, db.Close())
	}
	return w, nil
}

func newWorker(rt *host.Runtime, eng *perdure.Engine, options *Options) (*Worker, error) {
	o := options.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	w := &Worker{rt: rt, eng: eng, options: o}
	w.types = slices.Sorted(maps.Keys(o.Senders))
	w.types = append(w.types, functionType)
	w.runner = work.NewOn(rt, eng, w.kind(), work.Options{
		Lease: o.Lease, MaxCrashes: o.MaxCrashes, OnError: o.OnError, OnCrash: w.crashed, Random: o.Random,
		SweepEvery: min(max(o.Retention/10, time.Minute), time.Hour),
	})
	w.runner.Serve(work.QueueOptions{Name: "tasks", Concurrency: o.Concurrency, Names: func() []string { return w.types }})
	return w, nil
}

// crashed reports a crash of a task.
func (w *Worker) crashed(c work.Crash) {
	w.options.OnCrash(perdure.Crash{Kind: "task", ID: c.ID, Name: c.Name, Crashes: c.Crashes, Quarantined: c.Quarantined})
}

func supported(d sqldb.Dialect) error {
	if d.Name == sqldb.MySQL {
		return fault.Invalidf("engine", "does not support tasks on MySQL: use PostgreSQL or SQLite")
	}
	return nil
}

// Namespace implements dispatch.Processor.
func (w *Worker) Namespace() string { return "tasks" }

// Process runs all due tasks, and the tasks that become due because of them. It returns
// the number of tasks that were run, successful or not.
func (w *Worker) Process(ctx context.Context) (int, error) { return w.runner.Process(ctx) }

// Start starts to run due tasks, without waiting for them.
func (w *Worker) Start(ctx context.Context) (int, error) { return w.runner.Start(ctx) }

// Drain stops claiming and waits for running tasks, with their handlers, at most until
// ctx is done.
func (w *Worker) Drain(ctx context.Context) error { return w.runner.Drain(ctx) }

// NextWakeAt returns the next time at which a task of the worker's types is due, or the
// claim of a crashed worker expires. It is zero if there is none.
func (w *Worker) NextWakeAt(ctx context.Context) (time.Time, error) { return w.runner.NextWakeAt(ctx) }

// Subscribe calls fn when tasks are enqueued through this package or will be retried.
// It also calls fn when a task has run, because it may have enqueued others, and when a
// task finishes while more are waiting.
func (w *Worker) Subscribe(fn func(due time.Time)) (cancel func()) { return w.runner.Subscribe(fn) }

// Close closes the connections of a worker that was opened by OpenWorker. Call Drain
// first.
func (w *Worker) Close() error {
	if w.eng != nil {
		return nil
	}
	w.rt.Hub.Close()
	return w.rt.DB.Close()
}
