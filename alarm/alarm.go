// Package alarm makes things happen at a time, once or again and again, whatever
// crashes.
//
// An alarm is a row with a due time. It belongs to an actor or to nobody, has an
// id there, and is of a type that has a handler in some process:
//
//	alarms, err := alarm.New(eng, nil)
//	remind, err := alarm.Handle(alarms, "remind", sendReminder, nil)
//	…
//	err = eng.Update(ctx, func(tx *perdure.Tx) error {
//		return remind.ScheduleIn(tx, alarm.Of("order", id, "reminder"), Reminder{Order: id},
//			&alarm.ScheduleOptions{Delay: 24 * time.Hour})
//	})
//
// To schedule an alarm again is to replace it, to cancel one that is gone is no
// error, and one whose time has passed while nobody was there fires late rather
// than never. A dispatcher drives the handlers; see package dispatch.
//
// A handler sees alarms that are due and no others. When it has succeeded, the
// row is gone, or waits for its next tick; when it has failed, the row is kept and
// tried again by the policy that is stored with it, and then stays as a dead
// letter that can be retried. A handler may run more than once for the same tick
// (the process can die between its effect and the record of it), so it must be
// idempotent: the key of its Info is the same each time.
//
// The delays of actors' machines are in the same table, but not of this package:
// nothing here lists, changes or cancels them.
package alarm

import (
	"context"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/core"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/work"
	"github.com/perdure/perdure/retry"
)

// DefaultRetry is the policy of alarms that are scheduled without one: 20 attempts within
// about two days.
var DefaultRetry = retry.Default

// Options configure Alarms. The zero value of every field is its default.
type Options struct {
	// Concurrency is how many handlers run at once in this process.
	// Default: 16.
	Concurrency int
	// Lease is how long an alarm belongs to a process without a sign of life.
	// Handlers may run longer: the lease is renewed while they do. After a
	// crash the alarm fires again when the lease has expired. At least one
	// second. Default: 30 seconds.
	Lease time.Duration
	// MaxCrashes is the number of crashes after which an alarm is quarantined. After
	// two crashes an alarm is a suspect: suspects run in batches that become half as
	// large with every further crash, and only an alarm that crashes alone is
	// quarantined. Default: 5.
	MaxCrashes int
	// Retry is the policy of alarms that are scheduled without one.
	// Default: DefaultRetry.
	Retry retry.Policy
	// Timeout is how long a handler may take unless its own options say
	// otherwise. Default: 5 minutes.
	Timeout time.Duration
	// DeadRetention is the time that dead letters are kept: alarms that failed or
	// were quarantined, counted from the time that their last attempt was due. A
	// recurring alarm is kept. Negative: no limit. Default: 30 days.
	DeadRetention time.Duration
	// MaxPayload is the largest payload in bytes. Default: 1 MiB.
	MaxPayload int
	// Notify is the URL that is told of what becomes of alarms that have no
	// webhook of their own. Default: none.
	Notify string
	// Notifications are those that are sent to a webhook. Default: all of them.
	Notifications []NotificationKind
	// Sender sends what goes to webhooks from this process. Without one it is
	// left to others. Default: none.
	Sender Sender
	// CheckWebhook refuses addresses of webhooks before they are stored. The error
	// must not quote the URL, which may hold a secret. Default: CheckURL of a Sender
	// that is a Checker; otherwise only addresses are refused that no process can
	// reach.
	CheckWebhook func(url string) error
	// OnNotification receives the outcome of every alarm that this process fires, for
	// metrics. It must return at once. Default: nothing.
	OnNotification func(Notification)
	// OnError receives errors that have no caller: of heartbeats and of the
	// record of outcomes. Default: log them.
	OnError func(error)
	// Random returns numbers in [0, 1) for the jitter of retries.
	// Default: a random source.
	Random func() float64
}

// Alarms are the alarms of a database, with the handlers for them that this
// process has. It is a dispatch.Processor.
type Alarms struct {
	rt      *host.Runtime
	eng     *perdure.Engine
	options Options
	runner  *work.Runner
	counts  counts

	mu       sync.RWMutex
	handlers map[string]handler
	sequence int64
	dead     map[string]Notification // of alarms that are being quarantined
}

// New returns the alarms of a database. Set their handlers before a dispatcher
// is started; a process that only schedules and looks needs neither.
func New(eng *perdure.Engine, options *Options) (*Alarms, error) {
	if eng == nil {
		return nil, fault.Invalidf("engine", "is nil")
	}
	rt := host.Of(eng)
	o := options.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	a := &Alarms{rt: rt, eng: eng, options: o, handlers: map[string]handler{}, dead: map[string]Notification{}}
	a.runner = work.New(eng, work.Kind{
		Name: "alarm", Family: (*store.Store).Alarms, Topic: func(string) string { return topic }, Lanes: a.lanes,
		Begin: a.begin, Write: a.write, Refused: refused, Quarantine: a.quarantine, Next: a.next, Read: a.plan, Lock: a.lock, Gone: gone, Sweep: a.sweep,
	}, work.Options{
		Lease: o.Lease, MaxCrashes: o.MaxCrashes, SweepEvery: time.Hour, OnError: o.OnError, OnCrash: a.crashed, Random: o.Random,
	})
	a.runner.Serve(work.QueueOptions{Name: store.AlarmQueue, Label: topic, Concurrency: o.Concurrency, Names: a.types})
	if o.Sender != nil {
		a.handlers[Webhook] = handler{run: a.deliver, timeout: o.Timeout}
		a.handlers[noticeType] = handler{run: a.deliver, timeout: o.Timeout}
	}
	return a, nil
}

// Namespace implements dispatch.Processor.
func (a *Alarms) Namespace() string { return topic }

// Process fires every alarm that is due and has a handler here, and returns how
// many were fired, successfully or not.
func (a *Alarms) Process(ctx context.Context) (int, error) { return a.runner.Process(ctx) }

// Start begins to fire what is due, without waiting for it.
func (a *Alarms) Start(ctx context.Context) (int, error) { return a.runner.Start(ctx) }

// Drain stops claiming and waits for the handlers that run, at most until ctx is
// done.
func (a *Alarms) Drain(ctx context.Context) error { return a.runner.Drain(ctx) }

// NextWakeAt returns when an alarm with a handler here will be due, or the lease of a
// crashed process will expire. It is zero if there is none. While as many handlers run as
// may, it is a little later than now at the earliest.
func (a *Alarms) NextWakeAt(ctx context.Context) (time.Time, error) { return a.runner.NextWakeAt(ctx) }

// Subscribe calls fn when alarms are scheduled, moved or will be tried again, and
// when a handler ends while more are waiting.
func (a *Alarms) Subscribe(fn func(due time.Time)) (cancel func()) { return a.runner.Subscribe(fn) }

// topic is what processes that wait for alarms listen to.
const topic = "alarm"

// types returns the types that this process has handlers for, sorted so that the
// same set makes the same statement.
func (a *Alarms) types() []string {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return slices.Sorted(maps.Keys(a.handlers))
}

// lanes returns the lanes of the types that this process has handlers for.
func (a *Alarms) lanes(string) []string {
	lanes := a.types()
	for i, typ := range lanes {
		lanes[i] = store.AlarmLane(typ)
	}
	return lanes
}

// next returns the statement that finds the next due time.
func (a *Alarms) next(queue string, least int, found func(time.Duration)) []sqldb.Stmt {
	return []sqldb.Stmt{a.rt.Store.Alarms().Next(queue, a.lanes(queue), least, a.rt.Now(), found)}
}

func (o *Options) withDefaults() Options {
	var options Options
	if o != nil {
		options = *o
	}
	edge.Default(&options.Concurrency, 16)
	edge.Default(&options.Lease, 30*time.Second)
	edge.Default(&options.MaxCrashes, 5)
	edge.Default(&options.Timeout, 5*time.Minute)
	edge.Default(&options.DeadRetention, core.DeadRetention)
	edge.Default(&options.MaxPayload, edge.DefaultMaxJSON)
	if options.Retry.IsZero() {
		options.Retry = DefaultRetry
	}
	if len(options.Notifications) == 0 {
		options.Notifications = NotificationKinds
	}
	if checker, ok := options.Sender.(Checker); ok && options.CheckWebhook == nil {
		options.CheckWebhook = checker.CheckURL
	}
	if options.OnNotification == nil {
		options.OnNotification = func(Notification) {}
	}
	if options.OnError == nil {
		options.OnError = func(err error) { slog.Error("process alarms", "error", err) }
	}
	if options.Random == nil {
		options.Random = rand.Float64
	}
	return options
}

func (o Options) validate() error {
	switch {
	case o.Concurrency < 1 || o.Concurrency > 10_000:
		return fault.Invalidf("Options.Concurrency", "is %d; 1 to 10,000 are possible", o.Concurrency)
	case o.Lease < time.Second:
		return fault.Invalidf("Options.Lease", "is %v; at least 1s is needed", o.Lease)
	case o.MaxCrashes < 1:
		return fault.Invalidf("Options.MaxCrashes", "is %d; at least 1 is needed", o.MaxCrashes)
	case o.Timeout < 0:
		return fault.Invalidf("Options.Timeout", "is negative")
	case o.MaxPayload < 1 || o.MaxPayload > 64<<20:
		return fault.Invalidf("Options.MaxPayload", "is %d; 1 byte to 64 MiB are possible", o.MaxPayload)
	}
	for _, kind := range o.Notifications {
		if !slices.Contains(NotificationKinds, kind) {
			return fault.Invalidf("Options.Events", "has %q, which is unknown", kind)
		}
	}
	if o.Notify != "" {
		if err := o.checkURL("Options.Notify", o.Notify); err != nil {
			return err
		}
	}
	return o.Retry.Validate()
}
