package api

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/alarm"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/inspect"
	"github.com/perdure/perdure/internal/store"
)

// Alarm is a call of a handler at a time, once or repeatedly.
type Alarm struct {
	ID             string          `json:"id" doc:"Name of the alarm. With an actor, the type and id of the actor precede it: order/42/reminder."`
	Actor          *ActorRef       `json:"actor,omitempty" doc:"Owning actor, if any."`
	Kind           string          `json:"kind" enum:"alarm,timer" doc:"Alarm of a caller, or timer of an actor. Timers are changed by the routes of the actor."`
	Type           string          `json:"type"`
	Status         alarm.Status    `json:"status" enum:"scheduled,ready,retrying,running,failed,quarantined"`
	Payload        json.RawMessage `json:"payload,omitempty" doc:"Omitted from lists."`
	Priority       Priority        `json:"priority"`
	DueAt          Time            `json:"due_at"`
	ScheduledAt    Time            `json:"scheduled_at" doc:"Scheduled time. A retry does not change it."`
	Every          Duration        `json:"every,omitempty"`
	Cron           string          `json:"cron,omitempty"`
	Zone           string          `json:"zone,omitempty"`
	Text           string          `json:"text,omitempty" doc:"Recurrence, as text."`
	Missed         perdure.Missed  `json:"missed,omitempty"`
	MaxMissed      int             `json:"max_missed,omitempty" doc:"Maximum number of missed ticks that fire with missed=all."`
	Retry          Retry           `json:"retry,omitzero" doc:"Omitted from lists."`
	Attempts       int             `json:"attempts"`
	MaxAttempts    int             `json:"max_attempts"`
	Crashes        int             `json:"crashes"`
	Error          string          `json:"error,omitempty" doc:"Last error."`
	Webhook        string          `json:"webhook,omitempty"`
	Worker         string          `json:"worker,omitempty"`
	CreatedAt      Time            `json:"created_at"`
	LastAttemptAt  Time            `json:"last_attempt_at,omitzero"`
	LeaseExpiresAt Time            `json:"lease_expires_at,omitzero"`
	Timeline       []Attempt       `json:"timeline,omitempty" doc:"Attempts since it was scheduled, oldest first: the newest 50 failed attempts and the running attempt. Omitted from lists."`
}

// ActorRef names an actor.
type ActorRef struct {
	Type string `json:"type"`
	ID   string `json:"id"`
}

func showAlarm(r alarm.Record) Alarm {
	shown := Alarm{
		ID: r.String(), Kind: "alarm", Type: r.Type, Status: r.Status, Payload: r.Payload, Priority: Priority(r.Priority), DueAt: Time(r.Due),
		ScheduledAt: Time(r.Scheduled), Every: Duration(r.Every), Cron: r.Cron, Zone: r.Zone, Text: r.Recurs, Missed: r.Missed, MaxMissed: r.MaxMissed, Retry: ShowRetry(r.Retry), Attempts: r.Attempts,
		MaxAttempts: r.MaxAttempts, Crashes: r.Crashes, Error: r.Error, Webhook: r.Webhook, Worker: r.Worker, CreatedAt: Time(r.Created),
		LastAttemptAt: Time(r.LastAttempt), LeaseExpiresAt: Time(r.LeaseExpires),
	}
	if r.ActorType != "" {
		shown.Actor = &ActorRef{Type: r.ActorType, ID: r.ActorID}
	}
	return shown
}

// showAlarmRow leaves out large fields.
func showAlarmRow(r alarm.Record) Alarm {
	shown := showAlarm(r)
	shown.Payload, shown.Retry = nil, Retry{}
	return shown
}

// ByAlarm is the input of a route for one alarm.
type ByAlarm struct {
	ID    string `path:"id" maxLength:"800" doc:"Id, with its slashes escaped. With the parameter actor, only the name of the alarm."`
	Actor string `query:"actor" maxLength:"400" doc:"Owning actor as type/id, or none. Required if the id of the actor has slashes, or if the name of an alarm without an actor has two slashes."`
}

// key returns the key of the alarm, and records it for the audit log.
func (in ByAlarm) key(ctx context.Context) (alarm.Key, error) {
	key := alarmKey(in.ID)
	switch in.Actor {
	case "":
	case "none":
		key = alarm.ID(in.ID)
	default:
		f, err := AlarmMatch{Actor: in.Actor}.filter()
		if err != nil {
			return key, err
		}
		key = alarm.Of(f.ActorType, f.ActorID, in.ID)
	}
	actOf(ctx).onAlarms(key)
	return key, nil
}

// onAlarms sets the alarms that are the targets of the act.
func (t *act) onAlarms(keys ...alarm.Key) {
	if t == nil {
		return
	}
	t.things = make([]*thing, len(keys))
	for i, k := range keys {
		t.things[i] = &thing{id: k.String(), key: []string{k.ActorType, k.ActorID, k.ID}}
	}
}

// AlarmMatch filters a list of alarms.
type AlarmMatch struct {
	Type   string         `query:"type" json:"type,omitempty" maxLength:"128"`
	Status []alarm.Status `query:"status" json:"status,omitempty" enum:"scheduled,ready,retrying,running,failed,quarantined"`
	Actor  string         `query:"actor" json:"actor,omitempty" maxLength:"400" doc:"Filter by owning actor, as type/id."`
}

func (m AlarmMatch) narrows() bool { return m.Type+m.Actor != "" || len(m.Status) > 0 }

func (m AlarmMatch) filter() (alarm.Filter, error) {
	f := alarm.Filter{Type: m.Type, Statuses: m.Status}
	if m.Actor == "" {
		return f, nil
	}
	var found bool
	if f.ActorType, f.ActorID, found = strings.Cut(m.Actor, "/"); !found || f.ActorType == "" || f.ActorID == "" {
		return f, fault.Invalidf("actor", "must be <type>/<id>, got %q", m.Actor)
	}
	return f, nil
}

type alarmFilter struct {
	Paging
	AlarmMatch
	Kind    string `query:"kind" enum:"alarm,timer" default:"alarm" doc:"Filter by kind: alarms of callers, or timers of actors."`
	Unowned bool   `query:"unowned" doc:"Only alarms without an actor."`
	Due     bool   `query:"due" doc:"Only alarms that are due and not running."`
}

func (a *API) listAlarms(ctx context.Context, in *alarmFilter) (*List[Alarm], error) {
	f, err := in.filter()
	if err != nil {
		return nil, err
	}
	if in.Kind == "timer" {
		return a.listDelays(ctx, f, in.Paging)
	}
	f.Unowned = in.Unowned
	list := a.alarms.List
	if in.Due {
		list = a.alarms.Due
	}
	rows, next, err := list(ctx, f, in.Cursor, in.Limit)
	if err != nil {
		return nil, err
	}
	return page(requestOf(ctx), rows, next, showAlarmRow), nil
}

// listDelays lists the timers of actors as alarms.
func (a *API) listDelays(ctx context.Context, f alarm.Filter, p Paging) (*List[Alarm], error) {
	timers := inspect.Timers{Actor: store.ActorRef{Type: f.ActorType, ID: f.ActorID}, Type: f.Type, Statuses: f.Statuses}
	rows, next, err := a.inspect.Timers(ctx, timers, p.Cursor, p.Limit)
	if err != nil {
		return nil, err
	}
	return page(requestOf(ctx), rows, next, showDelay), nil
}

func showDelay(t store.AlarmPlace) Alarm {
	return Alarm{
		ID: alarm.Of(t.Actor.Type, t.Actor.ID, t.AlarmID).String(), Actor: &ActorRef{Type: t.Actor.Type, ID: t.Actor.ID}, Kind: "timer", Type: t.Type,
		Status: alarm.Status(t.Status), DueAt: Time(t.Due), ScheduledAt: Time(t.Occurs), CreatedAt: Time(t.Created),
	}
}

type getAlarmInput struct {
	ByAlarm
	Reading
}

func (a *API) getAlarm(ctx context.Context, in *getAlarmInput) (*Tagged[Alarm], error) {
	key, err := in.key(ctx)
	if err != nil {
		return nil, err
	}
	r, err := a.alarms.Get(ctx, key)
	if err != nil {
		return nil, err
	}
	shown := showAlarm(r)
	attempts, err := a.alarms.Attempts(ctx, key)
	if err != nil {
		return nil, err
	}
	shown.Timeline = showAttempts(attempts)
	etag, err := alarmTag(&r)
	if err != nil {
		return nil, err
	}
	return tagged(shown, etag).unlessKnown(in.Reading)
}

// alarmTag returns the ETag of an alarm's configuration: all fields that firing the alarm
// does not change. The scheduled time is part of it unless the alarm recurs, because its
// ticks advance automatically.
func alarmTag(r *alarm.Record) (string, error) {
	at := r.Scheduled
	if r.Every != 0 || r.Cron != "" {
		at = time.Time{}
	}
	return etagOf(r.Key, r.Type, r.Payload, r.Priority, at, r.Every, r.Base, r.Cron, r.Zone, r.Missed, r.MaxMissed, r.Retry, r.Webhook)
}

// AlarmInput is an alarm to be scheduled.
type AlarmInput struct {
	Type      string          `json:"type" maxLength:"128"`
	Payload   json.RawMessage `json:"payload,omitempty" doc:"Default: null."`
	At        Time            `json:"at,omitzero" doc:"Due time. Default: now."`
	Delay     Duration        `json:"delay,omitempty" doc:"Delay until it is due, instead of at."`
	Every     *Duration       `json:"every,omitempty" doc:"Interval of a recurring alarm. Must be positive."`
	Cron      string          `json:"cron,omitempty" maxLength:"256" doc:"Cron expression of a recurring alarm, instead of every."`
	Zone      string          `json:"zone,omitempty" maxLength:"64" doc:"IANA time zone of cron. Default: UTC."`
	Missed    perdure.Missed  `json:"missed,omitempty" enum:"once,skip,all" doc:"Handling of missed ticks. Default: once."`
	MaxMissed int             `json:"max_missed,omitempty" minimum:"0" maximum:"2147483647"`
	Priority  Priority        `json:"priority,omitempty"`
	Retry     *Retry          `json:"retry,omitempty"`
	Webhook   string          `json:"webhook,omitempty" maxLength:"2048" doc:"URL that receives notifications about the alarm."`
}

type scheduleAlarmInput struct {
	ByAlarm
	Replacing
	Body AlarmInput
}

// scheduleAlarm schedules an alarm, replacing the alarm with the same id.
func (a *API) scheduleAlarm(ctx context.Context, in *scheduleAlarmInput) (*Tagged[Alarm], error) {
	b := in.Body
	payload := b.Payload
	if payload == nil {
		payload = json.RawMessage("null")
	}
	var every time.Duration
	if b.Every != nil {
		if every = time.Duration(*b.Every); every <= 0 {
			return nil, fault.Invalidf("every", "must be positive, got %v", every)
		}
	}
	options := &alarm.ScheduleOptions{
		At: time.Time(b.At), Delay: time.Duration(b.Delay), Every: every, Cron: b.Cron, Zone: b.Zone, Missed: b.Missed,
		MaxMissed: b.MaxMissed, Priority: perdure.Priority(b.Priority), Retry: b.Retry.policy(), Webhook: b.Webhook,
	}
	if in.Replacing != (Replacing{}) {
		options.Check = func(before *alarm.Record) error { return allow(in, before, alarmTag) }
	}
	key, err := in.key(ctx)
	if err != nil {
		return nil, err
	}
	var scheduled alarm.Record
	err = a.config.Engine.Update(ctx, func(tx *perdure.Tx) (err error) {
		if err = a.alarms.ScheduleIn(tx, key, b.Type, payload, options); err == nil {
			scheduled, err = a.alarms.GetIn(tx, key) // after the commit it may have fired already
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	etag, err := alarmTag(&scheduled)
	return tagged(showAlarm(scheduled), etag), err
}

type cancelAlarmInput struct {
	ByAlarm
	Changing
}

// Cancellation is the result of cancelling an alarm.
type Cancellation struct {
	Result alarm.Cancellation `json:"result" enum:"prevented,too_late" doc:"Result. prevented: the alarm will not run. too_late: the alarm was removed, but its handler had started."`
}

func (a *API) cancelAlarm(ctx context.Context, in *cancelAlarmInput) (*One[Cancellation], error) {
	key, err := in.key(ctx)
	if err != nil {
		return nil, err
	}
	var result alarm.Cancellation
	err = a.config.Engine.Update(ctx, func(tx *perdure.Tx) (err error) {
		if in.IfMatch != "" {
			r, err := a.alarms.LockIn(tx, key)
			if err != nil {
				return err
			}
			if err := allow(in, &r, alarmTag); err != nil {
				return err
			}
		}
		if result, err = a.alarms.CancelNowIn(tx, key); err != nil {
			return err
		}
		if !result.Removed() {
			return &fault.NotFound{Kind: "alarm", ID: key.String()}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return one(Cancellation{Result: result}), nil
}

type cancelAlarmsInput struct {
	Type  string `query:"type" required:"true" minLength:"1" maxLength:"128"`
	Actor string `query:"actor" maxLength:"400" doc:"Filter by owning actor, as type/id."`
}

// Cancelled is the number of cancelled alarms.
type Cancelled struct {
	Done int64 `json:"done"`
}

// cancelAlarms cancels all alarms of a type, in transactions of a bounded size.
func (a *API) cancelAlarms(ctx context.Context, in *cancelAlarmsInput) (*One[Cancelled], error) {
	var total Cancelled
	for {
		found := alarmKeys{}
		ids, more, err := a.findAlarms(ctx, AlarmMatch{Type: in.Type, Actor: in.Actor}, found).all()
		if err != nil {
			return nil, err
		}
		if len(ids) > 0 {
			n, err := a.cancelSome(ctx, ids, found)
			if err != nil {
				return nil, err
			}
			total.Done += n
		}
		if !more {
			return one(total), nil
		}
	}
}

// cancelSome cancels alarms and returns how many of them existed.
func (a *API) cancelSome(ctx context.Context, ids []string, found alarmKeys) (n int64, err error) {
	slices.Sort(ids) // concurrent requests take their locks in the same order
	keys := make([]alarm.Key, len(ids))
	for i, id := range ids {
		keys[i] = found.of(id)
	}
	actOf(ctx).onAlarms(keys...)
	err = a.config.Engine.Update(ctx, func(tx *perdure.Tx) error {
		for _, key := range keys {
			if err := a.alarms.CancelIn(tx, key); err != nil {
				return err
			}
		}
		actOf(ctx).answers(func() any { return present(actOf(ctx).things) })
		return nil
	})
	if err != nil {
		return 0, err
	}
	return int64(len(present(actOf(ctx).things))), nil
}

// presence are the ids of resources that existed before an act.
type presence map[string]bool

func (p presence) acted(id string) bool { return p[id] }

func present(things []*thing) presence {
	there := presence{}
	for _, x := range things {
		if x.before != nil {
			there[x.id] = true
		}
	}
	return there
}
