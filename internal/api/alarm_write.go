package api

import (
	"context"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/alarm"
)

// MoveInput is the new due time of a work item.
type MoveInput struct {
	At Time `json:"at" doc:"New due time. A time in the past means now."`
}

type moveAlarmInput struct {
	Keyed
	ByAlarm
	Body MoveInput
}

func (a *API) moveAlarm(ctx context.Context, in *moveAlarmInput) (*Done[Acted], error) {
	return a.actOnAlarm(ctx, in.Key, in.ByAlarm, in.Body, func(tx *perdure.Tx, key alarm.Key) error {
		return a.alarms.MoveIn(tx, key, time.Time(in.Body.At))
	})
}

// actOnAlarmInput is the input of a POST without a body to an alarm.
type actOnAlarmInput struct {
	Keyed
	ByAlarm
}

func (a *API) skipAlarm(ctx context.Context, in *actOnAlarmInput) (*Done[Acted], error) {
	return a.actOnAlarm(ctx, in.Key, in.ByAlarm, nil, a.alarms.SkipIn)
}

func (a *API) fireAlarm(ctx context.Context, in *actOnAlarmInput) (*Done[Acted], error) {
	return a.actOnAlarm(ctx, in.Key, in.ByAlarm, nil, a.alarms.FireNowIn)
}

func (a *API) retryAlarm(ctx context.Context, in *actOnAlarmInput) (*Done[Acted], error) {
	return a.actOnAlarm(ctx, in.Key, in.ByAlarm, nil, a.alarms.RetryIn)
}

func (a *API) actOnAlarm(ctx context.Context, key string, in ByAlarm, body any, act func(*perdure.Tx, alarm.Key) error) (*Done[Acted], error) {
	on, err := in.key(ctx)
	if err != nil {
		return nil, err
	}
	return effect(ctx, a, key, body, func(tx *perdure.Tx) (func() Acted, error) {
		return func() Acted { return Acted{on.String()} }, act(tx, on)
	})
}

// AlarmBulk requests an action on many alarms.
type AlarmBulk struct {
	Action string `json:"action" enum:"cancel,retry,skip,fire"`
	Many[AlarmMatch]
}

func (a *API) actOnAlarms(ctx context.Context, in *Posted[AlarmBulk]) (*Done[BulkResult], error) {
	found := alarmKeys{}
	alarms, err := choose(in.Body.Many, func(m AlarmMatch) finder { return a.findAlarms(ctx, m, found) })
	if err != nil {
		return nil, err
	}
	act := map[string]func(*perdure.Tx, alarm.Key) error{
		"cancel": a.removeAlarm, "retry": a.alarms.RetryIn, "skip": a.alarms.SkipIn, "fire": a.alarms.FireNowIn,
	}[in.Body.Action]
	return a.onEach(ctx, in.Key, in.Body, alarms, func(tx *perdure.Tx, id string) error { return act(tx, found.of(id)) })
}

// alarmKeys are the keys of the alarms that a filter has found, by their ids. An id with
// several slashes does not show which part is the actor.
type alarmKeys map[string]alarm.Key

// of returns the key of an id, which may also come from the request.
func (f alarmKeys) of(id string) alarm.Key {
	if key, ok := f[id]; ok {
		return key
	}
	return alarmKey(id)
}

// findAlarms returns the ids of a page of alarms, and puts their keys into found.
func (a *API) findAlarms(ctx context.Context, m AlarmMatch, found alarmKeys) finder {
	return func(cursor string, limit int) (ids []string, next string, err error) {
		f, err := m.filter()
		if err != nil {
			return nil, "", err
		}
		rows, next, err := a.alarms.List(ctx, f, cursor, limit)
		for _, r := range rows {
			ids, found[r.String()] = append(ids, r.String()), r.Key
		}
		return ids, next, err
	}
}

// removeAlarm cancels an alarm that must exist.
func (a *API) removeAlarm(tx *perdure.Tx, key alarm.Key) error {
	if _, err := a.alarms.GetIn(tx, key); err != nil {
		return err
	}
	return a.alarms.CancelIn(tx, key)
}
