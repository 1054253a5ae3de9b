package api

import (
	"context"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/limit"
)

// Pause is work that no process claims until it is resumed.
type Pause struct {
	Target string `json:"target" doc:"queue:, fsm:, hook:, alarm: or task: and a name." example:"queue:mail"`
	Reason string `json:"reason,omitempty"`
	Actor  string `json:"actor,omitempty" doc:"Operator or program that paused it."`
	At     Time   `json:"at"`
	Until  Time   `json:"until,omitzero" doc:"End of the pause. Omitted: it lasts until it is resumed."`
}

func showPause(p limit.Paused) Pause {
	return Pause{Target: p.Target, Reason: p.Reason, Actor: p.Actor, At: Time(p.At), Until: Time(p.Until)}
}

func (a *API) listPauses(ctx context.Context, _ *struct{}) (*List[Pause], error) {
	all, err := limit.Pauses(ctx, a.config.Engine)
	if err != nil {
		return nil, err
	}
	return page(requestOf(ctx), all, "", showPause), nil
}

// pauses returns the pauses for the overview.
func (a *API) pauses(ctx context.Context) ([]Pause, error) {
	all, err := limit.Pauses(ctx, a.config.Engine)
	if err != nil {
		return nil, err
	}
	shown := make([]Pause, len(all))
	for i, p := range all {
		shown[i] = showPause(p)
	}
	return shown, nil
}

// PauseInput describes a pause.
type PauseInput struct {
	Reason string `json:"reason,omitempty" maxLength:"1000" doc:"Default: the header Perdure-Reason."`
	Until  Time   `json:"until,omitzero" doc:"End of the pause. Default: it lasts until it is resumed."`
}

// ByTarget is the input of a route for the target of a pause.
type ByTarget struct {
	Name string `path:"name" maxLength:"140" doc:"queue:, fsm:, hook:, alarm: or task: and a name." example:"queue:mail"`
}

type setPauseInput struct {
	ByTarget
	Body PauseInput
}

func (a *API) setPause(ctx context.Context, in *setPauseInput) (*One[Pause], error) {
	req := requestOf(ctx)
	actOf(ctx).because(in.Body.Reason)
	reason := in.Body.Reason
	if reason == "" {
		reason = req.reason
	}
	p := limit.Paused{Target: in.Name, Reason: reason, Actor: req.principal.Name, At: a.rt.Clock.Now().UTC(), Until: time.Time(in.Body.Until)}
	err := a.config.Engine.Update(ctx, func(tx *perdure.Tx) error {
		return limit.PauseIn(tx, p.Target, &limit.PauseOptions{Reason: p.Reason, Actor: p.Actor, Until: p.Until})
	})
	if err != nil {
		return nil, err
	}
	return one(showPause(p)), nil
}

func (a *API) removePause(ctx context.Context, in *ByTarget) (*struct{}, error) {
	return nil, limit.Resume(ctx, a.config.Engine, in.Name)
}
