// Package task is a queue whose business logic lives in the database as
// append-only facts, and the worker that runs it.
//
// A task is a row with a type, a payload and a time. The worker knows two things
// to do with it: run a function of the database by its name (the type
// db_function), or do something outside of any transaction, as sending an
// e-mail, between handlers that are functions again. Supervisors are functions
// that read facts and enqueue tasks; the worker never does.
//
//	worker, err := task.NewWorker(eng, &task.Options{Senders: map[string]task.Sender{
//		"email": mail.Resend(key, nil),
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
// On PostgreSQL the functions are the database's own, and the worker needs no
// right but to execute them: OpenWorker runs one as the role perdure_worker. On
// SQLite, which has no functions, they are Go functions by the same names.
//
// A sender may be called more than once for the same attempt (the process can
// die between its effect and the record of it), so it must be idempotent. The
// key of its Info is the same each time.
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

// topic is what workers are woken by.
const topic = "task"

// Worker runs tasks. It is a dispatch.Processor.
type Worker struct {
	rt      *host.Runtime
	eng     *perdure.Engine // nil: opened by itself
	options Options
	runner  *work.Runner
	types   []string
	pace    pace
	looked  time.Time // for tasks that no worker knows; the core claims one at a time
	ended   time.Time // sessions that take too long
}

// NewWorker returns a worker on the connections of an engine. Functions are run
// with the rights of its user.
func NewWorker(eng *perdure.Engine, options *Options) (*Worker, error) {
	if eng == nil {
		return nil, fault.Invalidf("engine", "is nil")
	}
	rt := host.Of(eng)
	if err := supported(rt.DB.Dialect()); err != nil {
		return nil, err
	}
	return newWorker(rt, eng, options)
}

// OpenWorker returns a worker on connections of its own, on PostgreSQL, for a
// process that shall be able to do nothing else: the user of the URL needs no
// right but those of the role perdure_worker. Close it in the end.
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

// crashed reports a task whose worker was lost.
func (w *Worker) crashed(c work.Crash) {
	w.options.OnCrash(perdure.Crash{Kind: "task", ID: c.ID, Name: c.Name, Crashes: c.Crashes, Quarantined: c.Quarantined})
}

func supported(d sqldb.Dialect) error {
	if d.Name == sqldb.MySQL {
		return fault.Invalidf("engine", "is on MySQL, which carries no tasks; PostgreSQL and SQLite do")
	}
	return nil
}

// Namespace implements dispatch.Processor.
func (w *Worker) Namespace() string { return "tasks" }

// Process runs every task that is due, and what that makes due, and returns how
// many were run, successful or not.
func (w *Worker) Process(ctx context.Context) (int, error) { return w.runner.Process(ctx) }

// Start begins to run what is due, without waiting for it.
func (w *Worker) Start(ctx context.Context) (int, error) { return w.runner.Start(ctx) }

// Drain stops claiming and waits for the tasks that run, with their handlers, at
// most until ctx is done.
func (w *Worker) Drain(ctx context.Context) error { return w.runner.Drain(ctx) }

// NextWakeAt returns when a task of the worker's types will be due, or the claim
// of a lost worker will have expired. It is zero if there is none.
func (w *Worker) NextWakeAt(ctx context.Context) (time.Time, error) { return w.runner.NextWakeAt(ctx) }

// Subscribe calls fn when tasks are enqueued through this package or will be
// tried again, when a task has run, which may have enqueued others, and when one
// ends while more are waiting.
func (w *Worker) Subscribe(fn func(due time.Time)) (cancel func()) { return w.runner.Subscribe(fn) }

// Close closes the connections of a worker that was opened by OpenWorker. Drain
// it before.
func (w *Worker) Close() error {
	if w.eng != nil {
		return nil
	}
	w.rt.Hub.Close()
	return w.rt.DB.Close()
}
