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
	Type        string          `json:"type" doc:"Type of the event that it sends."`
	Event       json.RawMessage `json:"event"`
	DueAt       Time            `json:"due_at"`
	Delay       Duration        `json:"delay" doc:"Delay of the transition."`
	ScheduledAt Time            `json:"scheduled_at"`
	Path        string          `json:"path,omitempty" doc:"Actor in the tree that scheduled it."`
	Target      string          `json:"target,omitempty" doc:"Actor in the tree that receives the event."`
	State       string          `json:"state,omitempty" doc:"State of the delayed transition."`
	Leads       []string        `json:"leads,omitempty" doc:"Possible target states."`
	Crashes     int             `json:"crashes,omitempty" doc:"Number of processes that crashed while they fired it."`
	Error       string          `json:"error,omitempty" doc:"Reason of the quarantine. A quarantined timer does not fire until it is retried, moved or fired."`
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
