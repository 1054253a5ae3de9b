// Package alarm calls handlers at a given time, once or repeatedly, even if a process
// crashes.
//
// An alarm is a row with a due time. It belongs to an actor or is unowned, and its id is
// unique among the alarms of its owner. Its type selects the handler, which some process
// must set:
//
//	alarms, err := alarm.New(eng, nil)
//	remind, err := alarm.Handle(alarms, "remind", sendReminder, nil)
//	…
//	err = eng.Update(ctx, func(tx *perdure.Tx) error {
//		return remind.ScheduleIn(tx, alarm.Of("order", id, "reminder"), Reminder{Order: id},
//			&alarm.ScheduleOptions{Delay: 24 * time.Hour})
//	})
//
// Scheduling an existing key replaces its alarm. Cancelling a missing alarm is not an
// error. An alarm that came due while no process was running fires late. A dispatcher
// runs due alarms; see package dispatch.
//
// A handler is called only for due alarms. If it succeeds, the row is removed, or waits
// for its next tick. If it fails, the row is kept and retried according to the retry
// policy that is stored with it. When the attempts are exhausted, the row stays as a dead
// letter, which can be retried. Handlers must be idempotent, because a handler may run
// more than once for the same tick: a process can crash after the side effect of a
// handler and before its outcome is committed. Info.Key is the same for every attempt.
//
// The timers of actors are in a table of their own. This package does not list, change or
// cancel them.
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

// DefaultRetry is the retry policy of alarms that are scheduled without a policy: 20
// attempts within about two days.
var DefaultRetry = retry.Default

// Options configure Alarms. The zero value of every field is its default.
type Options struct {
	// Concurrency is the maximum number of handlers that run concurrently in this
	// process. Default: 16.
	Concurrency int
	// Room returns how many more alarms may be claimed now, within Concurrency, while running
	// alarms are running. Alarms.Wake reports that it has grown. It must return immediately.
	// Default: there is no other limit.
	Room func(running int) int
	// Lease is the time for which a claim of an alarm is valid without a heartbeat.
	// Handlers may run longer: heartbeats renew the lease while they run. After a crash,
	// the alarm fires again when the lease has expired. Minimum: 1 second. Default: 30
	// seconds.
	Lease time.Duration
	// MaxCrashes is the number of crashes after which an alarm is quarantined. After
	// two crashes an alarm is a suspect: suspects run in batches that become half as
	// large with every further crash, and only an alarm that crashes alone is
	// quarantined. Default: 5.
	MaxCrashes int
	// Retry is the retry policy of alarms that are scheduled without a policy. Default:
	// DefaultRetry.
	Retry retry.Policy
	// Timeout is the time limit of handlers whose HandlerOptions set none. Default: 5
	// minutes.
	Timeout time.Duration
	// DeadRetention is the time for which dead letters are kept: failed and quarantined
	// alarms. It counts from the time when their last attempt was due. Recurring alarms
	// are kept. Negative: no limit. Default: 30 days.
	DeadRetention time.Duration
	// MaxPayload is the largest payload in bytes. Default: 1 MiB.
	MaxPayload int
	// Notify is the URL that receives the notifications of alarms without their own
	// webhook. Default: none.
	Notify string
	// Notifications are the kinds of notifications that are sent to webhooks. Default:
	// all kinds.
	Notifications []NotificationKind
	// Sender sends messages to webhooks from this process. A process without a Sender
	// leaves them to other processes. Default: none.
	Sender Sender
	// CheckWebhook returns an error if the URL of a webhook must not be stored. The error
	// must not quote the URL, which may contain a secret. Default: CheckURL of Sender, if
	// that is a Checker; otherwise only URLs that no process can reach are refused.
	CheckWebhook func(url string) error
	// OnNotification is called with the outcome of every alarm that this process fires,
	// for metrics. It must return immediately. Default: a function that does nothing.
	OnNotification func(Notification)
	// OnError receives background errors, of heartbeats and of committing outcomes.
	// Default: log them.
	OnError func(error)
	// Random returns numbers in [0, 1) for the jitter of retries. Default:
	// math/rand/v2.Float64.
	Random func() float64
}

// Alarms manages the alarms of a database, with the handlers that this process has set.
// It is a dispatch.Processor.
type Alarms struct {
	// Admin lists and manages all alarms of the database.
	*Admin

	options Options
	runner  *work.Runner
	counts  counts

	mu       sync.RWMutex
	handlers map[string]handler
	sequence int64
	dead     map[string]Notification // by alarm, while its quarantine is being committed
}

// New returns the alarms of a database. Set their handlers before a dispatcher is
// started. A process that only schedules and lists alarms needs neither handlers nor a
// dispatcher.
func New(eng *perdure.Engine, options *Options) (*Alarms, error) {
	if eng == nil {
		return nil, fault.Invalidf("engine", "must not be nil")
	}
	rt := host.Of(eng)
	o := options.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	a := &Alarms{Admin: &Admin{eng: eng, rt: rt}, options: o, handlers: map[string]handler{}, dead: map[string]Notification{}}
	a.runner = work.New(eng, work.Kind{
		Name: "alarm", Family: (*store.Store).Alarms, Topic: func(string) string { return topic }, Lanes: a.lanes,
		Begin: a.begin, Write: a.write, Refused: refused, Quarantine: a.quarantine, Next: a.next, Read: a.plan, Lock: a.lock, Gone: gone, Sweep: a.sweep,
		Share: a.share,
	}, work.Options{
		Lease: o.Lease, MaxCrashes: o.MaxCrashes, SweepEvery: time.Hour, OnError: o.OnError, OnCrash: a.crashed, Random: o.Random,
	})
	a.runner.Serve(work.QueueOptions{Name: store.AlarmQueue, Label: topic, Concurrency: o.Concurrency, Names: a.types, Room: o.Room})
	if o.Sender != nil {
		a.handlers[Webhook] = handler{run: a.deliver, timeout: o.Timeout}
		a.handlers[noticeType] = handler{run: a.deliver, timeout: o.Timeout}
	}
	return a, nil
}

// Namespace implements dispatch.Processor.
func (a *Alarms) Namespace() string { return topic }

// Process fires all due alarms that have a handler in this process. It returns the number
// of alarms that it fired, successfully or not.
func (a *Alarms) Process(ctx context.Context) (int, error) { return a.runner.Process(ctx) }

// Start starts to fire due alarms and does not wait for their handlers.
func (a *Alarms) Start(ctx context.Context) (int, error) { return a.runner.Start(ctx) }

// Drain stops claiming and waits for running handlers, at most until ctx is done.
func (a *Alarms) Drain(ctx context.Context) error { return a.runner.Drain(ctx) }

// NextWakeAt returns the earliest time at which an alarm with a handler in this process
// will be due, or the lease of a crashed process will expire. It returns the zero time if
// there is none. While Options.Concurrency handlers run, the time is at least slightly
// after now.
func (a *Alarms) NextWakeAt(ctx context.Context) (time.Time, error) { return a.runner.NextWakeAt(ctx) }

// Subscribe calls fn when alarms are scheduled, moved or will be retried, and when a
// handler returns while more alarms are waiting.
func (a *Alarms) Subscribe(fn func(due time.Time)) (cancel func()) { return a.runner.Subscribe(fn) }

// Wake makes the dispatcher claim alarms that were due while Options.Room was 0.
func (a *Alarms) Wake() { a.runner.Freed() }

// topic is the wake-up topic of alarms.
const topic = "alarm"

// types returns the types that have a handler in this process. They are sorted, so that
// the same set always gives the same statement.
func (a *Alarms) types() []string {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return slices.Sorted(maps.Keys(a.handlers))
}

// lanes returns the lanes of the types that have a handler in this process.
func (a *Alarms) lanes(string) []string {
	lanes := a.types()
	for i, typ := range lanes {
		lanes[i] = store.AlarmLane(typ)
	}
	return lanes
}

// next returns the statement that finds the next due time.
func (a *Alarms) next(from store.Claim, least int, found func(time.Duration)) []sqldb.Stmt {
	return []sqldb.Stmt{a.rt.Store.Alarms().Next(from.Queue, from.Lanes, least, a.rt.Now(), found)}
}

// share returns the name with which an alarm shares the slots.
func (a *Alarms) share(i *work.Item) (name, system string) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	if len(a.handlers) < 2 {
		return "", ""
	}
	return "alarm:" + i.Row.(*store.Alarm).Type, ""
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
		options.OnError = func(err error) { slog.Error("alarm processing failed", "error", err) }
	}
	if options.Random == nil {
		options.Random = rand.Float64
	}
	return options
}

func (o Options) validate() error {
	switch {
	case o.Concurrency < 1 || o.Concurrency > 10_000:
		return fault.Invalidf("Options.Concurrency", "must be between 1 and 10,000, got %d", o.Concurrency)
	case o.Lease < time.Second:
		return fault.Invalidf("Options.Lease", "must be at least 1s, got %v", o.Lease)
	case o.MaxCrashes < 1:
		return fault.Invalidf("Options.MaxCrashes", "must be at least 1, got %d", o.MaxCrashes)
	case o.Timeout < 0:
		return fault.Invalidf("Options.Timeout", "must not be negative, got %v", o.Timeout)
	case o.MaxPayload < 1 || o.MaxPayload > 64<<20:
		return fault.Invalidf("Options.MaxPayload", "must be between 1 byte and 64 MiB, got %d", o.MaxPayload)
	}
	for _, kind := range o.Notifications {
		if !slices.Contains(NotificationKinds, kind) {
			return fault.Invalidf("Options.Notifications", "must have known kinds only, got %q", kind)
		}
	}
	if o.Notify != "" {
		if err := o.checkURL("Options.Notify", o.Notify); err != nil {
			return err
		}
	}
	return o.Retry.Validate()
}
