package api

import (
	"context"
	"encoding/json"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/hook"
)

// trigger returns a function that records a hook in a namespace of the server.
func (a *API) trigger(namespace, name string, payload json.RawMessage, o *hook.TriggerOptions) (func(*perdure.Tx) (func() Acted, error), error) {
	hooks, ok := a.config.Hooks[namespace]
	if !ok && a.config.Workers != nil {
		var err error
		if hooks, err = a.config.Workers.Hooks(namespace); err != nil {
			return nil, err
		}
		ok = hooks != nil
	}
	if !ok {
		return nil, &fault.NotFound{Kind: "namespace of hooks", ID: namespace}
	}
	if payload == nil {
		payload = json.RawMessage("null")
	}
	return func(tx *perdure.Tx) (func() Acted, error) {
		id, err := hooks.TriggerIn(tx, name, payload, o)
		return func() Acted { return Acted{id} }, err
	}, nil
}

// Replay is the input of a hook that is triggered once more.
type Replay struct {
	Payload json.RawMessage `json:"payload,omitempty" doc:"Default: the payload of the replayed hook."`
}

// ReplayInput is the input of a replay, whose body may be left out.
type ReplayInput struct {
	Keyed
	ByID
	Body *Replay
}

// replayHook triggers a hook once more, as a new hook, optionally with another payload.
func (a *API) replayHook(ctx context.Context, in *ReplayInput) (*Done[Acted], error) {
	return lookup(ctx, a, in.Key, in.Body, func() (func(*perdure.Tx) (func() Acted, error), error) {
		before, err := a.hooks.Get(ctx, in.ID)
		if err != nil {
			return nil, err
		}
		payload := before.Payload
		if in.Body != nil && in.Body.Payload != nil {
			payload = in.Body.Payload
		}
		return a.trigger(before.Namespace, before.Name, payload, &hook.TriggerOptions{Priority: before.Priority, Retry: before.Retry})
	})
}

// HookBulk requests an action on many hooks.
type HookBulk struct {
	Action string `json:"action" enum:"cancel,retry,run,delete" doc:"Action. run makes hooks due now that wait for their due time or for another attempt."`
	Many[HookMatch]
}

func (a *API) actOnHooks(ctx context.Context, in *Posted[HookBulk]) (*Done[BulkResult], error) {
	hooks, err := choose(in.Body.Many, func(m HookMatch) finder { return a.findHooks(ctx, m) })
	if err != nil {
		return nil, err
	}
	act := map[string]func(*perdure.Tx, string) error{"cancel": a.hooks.CancelIn, "retry": a.hooks.RetryIn, "run": a.hooks.RunNowIn, "delete": a.hooks.DeleteIn}
	return a.onEach(ctx, in.Key, in.Body, hooks, act[in.Body.Action])
}
