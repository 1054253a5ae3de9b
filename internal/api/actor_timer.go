package api

import (
	"context"
	"encoding/json"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/actor"
)

// Timer is a timer of an actor that has not fired.
type Timer struct {
	Key         string          `json:"key"`
	Kind        string          `json:"kind" enum:"timer"`
	Type        string          `json:"type" doc:"The type of the event that it will send."`
	Event       json.RawMessage `json:"event"`
	DueAt       Time            `json:"due_at"`
	Delay       Duration        `json:"delay" doc:"How long the machine wanted to wait."`
	ScheduledAt Time            `json:"scheduled_at"`
	Path        string          `json:"path,omitempty" doc:"The actor in the tree that has scheduled it."`
	Target      string          `json:"target,omitempty" doc:"The actor in the tree that gets the event."`
	State       string          `json:"state,omitempty" doc:"The state whose delay it is."`
	Leads       []string        `json:"leads,omitempty" doc:"The states that it can lead to now."`
	Crashes     int             `json:"crashes,omitempty" doc:"The number of processes that died while they fired it."`
	Error       string          `json:"error,omitempty" doc:"Why it is quarantined. It fires only after it was retried, moved or fired."`
}

func showTimer(t actor.Timer) Timer {
	event, _ := t.Event.MarshalJSON() // it came from JSON
	return Timer{
		Key: t.ID, Kind: "timer", Type: t.Event.Type, Event: event, DueAt: Time(t.Due), Delay: Duration(t.Delay), ScheduledAt: Time(t.Scheduled),
		Path: t.Path, Target: t.Target, State: t.State, Leads: t.Leads, Crashes: t.Crashes, Error: t.Error,
	}
}

func (a *API) listTimers(ctx context.Context, in *ByActor) (*List[Timer], error) {
	timers, err := a.config.Actors.Timers(ctx, in.ref())
	if err != nil {
		return nil, err
	}
	return page(requestOf(ctx), timers, "", showTimer), nil
}

// ByTimer is the input of a POST to a timer.
type ByTimer struct {
	Keyed
	ByActor
	AsCaller
	Timer string `path:"key" maxLength:"512"`
}

type moveTimerInput struct {
	ByTimer
	Body MoveInput
}

func (a *API) moveTimer(ctx context.Context, in *moveTimerInput) (*Done[Acted], error) {
	return a.byOperator(ctx, in.Key, in.ByActor, in.AsCaller, in.Body, func(tx *perdure.Tx, ref actor.Ref, by actor.Caller) error {
		return a.config.Actors.MoveTimerIn(tx, ref, by, in.Timer, time.Time(in.Body.At))
	})
}

func (a *API) skipTimer(ctx context.Context, in *ByTimer) (*Done[Acted], error) {
	return a.byOperator(ctx, in.Key, in.ByActor, in.AsCaller, nil, func(tx *perdure.Tx, ref actor.Ref, by actor.Caller) error {
		return a.config.Actors.SkipTimerIn(tx, ref, by, in.Timer)
	})
}

func (a *API) fireTimer(ctx context.Context, in *ByTimer) (*Done[Acted], error) {
	return a.byOperator(ctx, in.Key, in.ByActor, in.AsCaller, nil, func(tx *perdure.Tx, ref actor.Ref, by actor.Caller) error {
		return a.config.Actors.FireTimerIn(tx, ref, by, in.Timer)
	})
}
