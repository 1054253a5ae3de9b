package alarm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/cron"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/tracing"
	"github.com/perdure/perdure/internal/work"
	"github.com/perdure/perdure/retry"
)

// ScheduleOptions define when an alarm is due and how it is fired. The zero value of
// every field is its default.
type ScheduleOptions struct {
	// At is the time when the alarm is due. An alarm with a time in the past fires
	// immediately. For an alarm with Every, it is the first tick. Default: now.
	At time.Time
	// Delay is the delay until the alarm is due, by the database's clock. Set Delay or
	// At, not both. Default: 0.
	Delay time.Duration
	// Every makes the alarm recur at that interval, in phase with its first tick. The
	// first tick is At, or after Delay, or otherwise one interval from now. Default: it
	// does not recur.
	Every time.Duration
	// Cron makes the alarm recur at the ticks of an expression ("30 2 * * *", "@daily").
	// A time of day that daylight saving time skips is due right after the gap. A time of
	// day that it repeats is due once. The first tick is the next tick by this process's
	// clock. Default: it does not recur.
	Cron string
	// Zone is the IANA time zone of Cron. Default: UTC.
	Zone string
	// Missed is the rule for ticks that passed while no process fired them. Default:
	// perdure.MissedOnce.
	Missed perdure.Missed
	// MaxMissed is the maximum number of late ticks that perdure.MissedAll fires in a
	// row. Default: DefaultMaxMissed.
	MaxMissed int
	// Retry is the retry policy that is stored with the alarm. Default: the policy of its
	// Type or of Options.
	Retry retry.Policy
	// Priority is the priority among due alarms. Default: Normal.
	Priority perdure.Priority
	// Webhook is the URL that receives the notifications of the alarm. Default:
	// Options.Notify of the process that fires it.
	Webhook string
	// IfAbsent leaves an existing alarm with the key as it is, whether it waits, runs or is a
	// dead letter. Nothing is then scheduled. A concurrent schedule with the same key waits
	// for the other transaction. Set IfAbsent or Check, not both. Default: false, an existing
	// alarm is replaced.
	IfAbsent bool
	// Existed, if not nil, is set to whether an alarm with the key existed, when the unit of
	// work is applied. It needs IfAbsent. Default: nil.
	Existed *bool
	// Check is called with the existing alarm with the key, or nil if there is none,
	// while no other transaction can change it. If Check returns an error, the unit fails
	// with that error and nothing is changed. Default: an existing alarm is always
	// replaced.
	Check func(before *Record) error
}

// Schedule schedules an alarm in its own unit of work. See ScheduleIn.
func (a *Alarms) Schedule(ctx context.Context, key Key, typ string, payload any, options *ScheduleOptions) error {
	return a.eng.Update(ctx, func(tx *perdure.Tx) error { return a.ScheduleIn(tx, key, typ, payload, options) })
}

// ScheduleIn schedules an alarm in a unit of work. It replaces an existing alarm with the
// same key, even if that alarm waits for a retry or is a dead letter. If the existing
// alarm is running, its handler is not interrupted, and the new alarm waits until the
// handler has returned. A recurring alarm with unchanged ticks keeps its next tick, and
// everything else is replaced. So every process may schedule it when it starts.
//
// This process need not have a handler of the type. If the arguments are not valid, the
// unit fails with a *fault.Invalid.
func (a *Alarms) ScheduleIn(tx *perdure.Tx, key Key, typ string, payload any, options *ScheduleOptions) error {
	var o ScheduleOptions
	if options != nil {
		o = *options
	}
	if o.Retry.IsZero() {
		o.Retry = a.options.Retry
	}
	row, err := a.prepare(key, typ, payload, o)
	if err != nil {
		return host.In(tx).Fail(err)
	}
	if host.In(tx).Engine() != a.eng {
		return host.In(tx).Fail(fault.Invalidf("alarm "+key.String(), "must be scheduled in a unit of work of its engine"))
	}
	row.Trace = tracing.Of(tx.Context())
	stmts := a.rt.Store.ScheduleAlarm(row, a.rt.Now())
	if o.Check != nil {
		if stmts, err = a.check(tx, row, o.Check, stmts); err != nil {
			return host.In(tx).Fail(fmt.Errorf("schedule alarm: %w", sqldb.Bare(err)))
		}
	}
	due := a.rt.Clock.Now().Add(row.Delay)
	if row.At != nil {
		due = *row.At
	}
	return host.In(tx).Attach(func() { a.rt.Hub.Publish(topic, due) }, stmts...)
}

// check locks the existing alarm and calls allowed with it. If there is none, nothing can
// be locked. check then appends a statement that makes the unit run again if a concurrent
// unit has scheduled the alarm first.
func (a *Alarms) check(tx *perdure.Tx, row store.NewAlarm, allowed func(*Record) error, stmts []sqldb.Stmt) ([]sqldb.Stmt, error) {
	run, err := host.In(tx).Runner()
	if err != nil {
		return nil, err
	}
	var before *Record
	var now time.Time
	readTime := a.rt.Store.ReadTime(a.rt.Now(), func(t time.Time) { now = t })
	lock := a.rt.Store.LockAlarm(row.AlarmKey, func(r store.Alarm) { found := record(r, now); before = &found })
	if err := run.Run(tx.Context(), append([]sqldb.Stmt{readTime}, lock...)...); err != nil {
		return nil, err
	}
	if err := allowed(before); err != nil || before != nil {
		return stmts, err
	}
	ours := false
	look := a.rt.Store.GetAlarm(row.AlarmKey, func(r store.Alarm) { ours = r.Item == row.Item })
	look.Done = func(int64) error {
		if !ours {
			return &sqldb.Transient{Err: fmt.Errorf("alarm %s was scheduled concurrently", row.AlarmKey)}
		}
		return nil
	}
	return append(stmts, look), nil
}

// prepare validates the arguments and returns the row of the alarm.
func (a *Alarms) prepare(key Key, typ string, payload any, o ScheduleOptions) (store.NewAlarm, error) {
	if err := key.check(maxID); err != nil {
		return store.NewAlarm{}, err
	}
	if err := checkType(typ); err != nil {
		return store.NewAlarm{}, err
	}
	if err := o.validate(typ, &a.options); err != nil {
		return store.NewAlarm{}, err
	}
	raw, err := edge.Marshal("payload of alarm "+key.String(), payload, a.options.MaxPayload)
	if err != nil {
		return store.NewAlarm{}, err
	}
	policy, err := json.Marshal(o.Retry)
	if err != nil {
		return store.NewAlarm{}, fault.Invalidf("retry policy", "cannot be stored: %v", err)
	}
	row := store.NewAlarm{
		AlarmKey: key.stored(), Item: work.NewID(), Type: typ, Payload: string(raw), Policy: string(policy), Priority: int(o.Priority),
		MaxAttempts: o.Retry.MaxAttempts, Sequence: a.nextSequence(), Webhook: edge.Optional(o.Webhook), At: edge.OptionalTime(o.At), Delay: o.Delay,
	}
	if o.IfAbsent {
		if row.Existed = o.Existed; row.Existed == nil {
			row.Existed = new(bool)
		}
	}
	return row, o.recur(&row, a.rt.Clock.Now())
}

// recur sets the fields of a row that make it recur, if the options have Every or Cron.
func (o ScheduleOptions) recur(row *store.NewAlarm, now time.Time) error {
	switch {
	case o.Every != 0:
		if _, err := cron.Interval(o.Every, now); err != nil {
			return err
		}
		every := o.Every.Microseconds()
		row.EveryMicros, row.Base = &every, row.At
		if row.At == nil && row.Delay == 0 {
			row.Delay = o.Every
		}
	case o.Cron != "":
		ticks, err := cron.Parse(o.Cron, o.Zone)
		if err != nil {
			return err
		}
		spec := ticks.Spec()
		if spec.Every != "" {
			return fault.Invalidf("ScheduleOptions.Cron", "must not be an interval: use Every")
		}
		row.Cron, row.Zone, row.At = &spec.Cron, &spec.Zone, edge.OptionalTime(ticks.Next(now))
	default:
		return nil
	}
	missed, limit := string(o.Missed), o.MaxMissed
	edge.Default(&missed, string(perdure.MissedOnce))
	edge.Default(&limit, DefaultMaxMissed)
	row.Missed, row.MissedCap = &missed, &limit
	return nil
}

func (o ScheduleOptions) validate(typ string, to *Options) error {
	if err := o.validateTime(); err != nil {
		return err
	}
	if o.IfAbsent && o.Check != nil {
		return fault.Invalidf("ScheduleOptions", "must set IfAbsent or Check, not both")
	}
	if o.Existed != nil && !o.IfAbsent {
		return fault.Invalidf("ScheduleOptions.Existed", "must be set with IfAbsent")
	}
	if o.Priority < perdure.High || o.Priority > perdure.Low {
		return fault.Invalidf("ScheduleOptions.Priority", "must be High, Normal or Low, got %d", o.Priority)
	}
	if o.Webhook != "" {
		if err := to.checkURL("ScheduleOptions.Webhook", o.Webhook); err != nil {
			return err
		}
	} else if typ == Webhook {
		return fault.Invalidf("ScheduleOptions.Webhook", "is required for the type %q", Webhook)
	}
	return o.Retry.Validate()
}

func (o ScheduleOptions) validateTime() error {
	if err := edge.Delay("ScheduleOptions.Delay", o.Delay); err != nil {
		return err
	}
	recurs := o.Every != 0 || o.Cron != ""
	switch {
	case o.Delay != 0 && !o.At.IsZero():
		return fault.Invalidf("ScheduleOptions", "must set At or Delay, not both")
	case o.Every != 0 && o.Cron != "":
		return fault.Invalidf("ScheduleOptions", "must set Every or Cron, not both")
	case o.Every < 0:
		return fault.Invalidf("ScheduleOptions.Every", "must be positive, got %v", o.Every)
	case o.Cron != "" && (o.Delay != 0 || !o.At.IsZero()):
		return fault.Invalidf("ScheduleOptions", "must set Cron or a time, not both")
	case o.Zone != "" && o.Cron == "":
		return fault.Invalidf("ScheduleOptions.Zone", "must be used with Cron only")
	case !recurs && (o.Missed != "" || o.MaxMissed != 0):
		return fault.Invalidf("ScheduleOptions.Missed", "must be used with recurring alarms only")
	case o.MaxMissed < 0 || o.MaxMissed > 10_000:
		return fault.Invalidf("ScheduleOptions.MaxMissed", "must be between 1 and 10,000, got %d", o.MaxMissed)
	case o.MaxMissed != 0 && o.Missed != perdure.MissedAll:
		return fault.Invalidf("ScheduleOptions.MaxMissed", "must be used with MissedAll only")
	}
	if o.Missed != "" {
		if err := cron.Policy(o.Missed).Validate(); err != nil {
			return err
		}
	}
	return edge.Time("ScheduleOptions.At", o.At)
}

// nextSequence returns the sequence number of an alarm. It is higher than all earlier
// numbers of this process. It is derived from the clock, so it is rarely lower than
// earlier numbers of other processes.
func (a *Alarms) nextSequence() int64 {
	now := a.rt.Clock.Now().UnixMicro()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sequence = max(a.sequence+1, now)
	return a.sequence
}

// Cancellation is the result of cancelling an alarm.
type Cancellation string

// The results.
const (
	// Prevented means that the alarm was waiting and is removed. Its handler will not
	// run, or not run again.
	Prevented Cancellation = "prevented"
	// TooLate means that the alarm is removed, but its handler was running, or the alarm
	// was a dead letter. The context of a running handler is cancelled within a second,
	// and its outcome is dropped. A recurring alarm has no further ticks.
	TooLate Cancellation = "too_late"
	// NothingFound means that there is no such alarm. An alarm that has fired no longer
	// exists.
	NothingFound Cancellation = "nothing_found"
)

// Removed reports whether an alarm was removed.
func (c Cancellation) Removed() bool { return c == Prevented || c == TooLate }

func cancellation(status string) Cancellation {
	if status == string(Ready) {
		return Prevented
	}
	return TooLate
}

// Cancel removes an alarm in any status and returns the result. Cancelling a missing
// alarm is not an error.
func (a *Alarms) Cancel(ctx context.Context, key Key) (Cancellation, error) {
	if err := key.check(maxStoredID); err != nil {
		return NothingFound, err
	}
	result := NothingFound
	err := a.eng.Update(ctx, func(tx *perdure.Tx) (err error) {
		if result, err = a.CancelNowIn(tx, key); err == nil && !result.Removed() {
			err = errNone // roll back: nothing was changed
		}
		return err
	})
	if errors.Is(err, errNone) {
		return NothingFound, nil
	}
	if err != nil {
		return NothingFound, fmt.Errorf("cancel alarm: %w", err)
	}
	return result, nil
}

// CancelIn removes an alarm in a unit of work, if there is one.
func (a *Alarms) CancelIn(tx *perdure.Tx, key Key) error {
	_, err := a.cancelIn(tx, key)
	return err
}

// CancelNowIn is CancelIn that runs its statement immediately and returns the result. The
// result takes effect when the unit commits.
func (a *Alarms) CancelNowIn(tx *perdure.Tx, key Key) (Cancellation, error) {
	result, err := a.cancelIn(tx, key)
	if err == nil {
		err = host.In(tx).Flush()
	}
	if err != nil {
		return NothingFound, err
	}
	return *result, nil
}

func (a *Alarms) cancelIn(tx *perdure.Tx, key Key) (*Cancellation, error) {
	if err := key.check(maxStoredID); err != nil {
		return nil, host.In(tx).Fail(err)
	}
	result := NothingFound
	return &result, host.In(tx).Attach(nil, a.rt.Store.CancelAlarm(key.stored(), func(status string) { result = cancellation(status) })...)
}
