package actor

import (
	"encoding/json"
	"fmt"

	"github.com/perdure/perdure/internal/effect"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/retry"
	"github.com/perdure/perdure/statechart"
)

// topic is what is told when delays, effects or invocations arrive. namespace is that
// of the hooks that effects and invocations are.
const (
	topic     = "actor"
	namespace = "actor"
)

// work is what is stored with an effect or an invocation.
type work struct {
	Actor Ref    `json:"actor"`
	Path  string `json:"path,omitempty"`
	// Generation says which actor of those that had the path an invocation is.
	Generation int64           `json:"generation,omitempty"`
	Params     json.RawMessage `json:"params,omitempty"`
}

// Names of hooks begin with what they are.
const (
	effectPrefix = "effect/"
	taskPrefix   = "task/"
)

// hookName names an effect or an invocation among all hooks.
func (k *kind) hookName(prefix, name string) string { return prefix + k.name + "/" + name }

// hookID is the idempotency key of what was numbered in an actor's tree.
func (t *turn) hookID(number int64) string {
	return fmt.Sprintf("%s.%08d", t.row.Incarnation, number) // in this order where they are due at once
}

// hooksOf returns the effects and invocations that a step asks for as hooks, and notes
// the invocations that it stops.
func (t *turn) hooksOf(step *statechart.Step) ([]store.NewHook, error) {
	var hooks []store.NewHook
	for _, e := range step.Effects {
		handler := t.kind.effects[e.Name]
		h, err := t.hook(t.kind.hookName(effectPrefix, e.Name), e.Sequence, e.Path, 0, e.Params, handler.Retry)
		if err != nil {
			return nil, err
		}
		hooks = append(hooks, h)
	}
	for _, o := range step.Invocations {
		if !o.Start {
			t.stops = append(t.stops, t.hookID(o.Generation))
			continue
		}
		handler := t.kind.tasks[o.Src]
		h, err := t.hook(t.kind.hookName(taskPrefix, o.Src), o.Generation, o.Path, o.Generation, o.Input, handler.Retry)
		if err != nil {
			return nil, err
		}
		hooks = append(hooks, h)
	}
	return hooks, nil
}

func (t *turn) hook(name string, number int64, path string, generation int64, params any, policy retry.Policy) (store.NewHook, error) {
	raw, err := json.Marshal(params)
	if err != nil {
		return store.NewHook{}, fmt.Errorf("encode params of %s: %w", name, err)
	}
	if policy.IsZero() {
		policy = t.kind.options.Retry // its handler is elsewhere
	}
	return store.NewHook{
		ID: t.hookID(number), Item: effect.NewItem(), Namespace: namespace, Name: name, Unit: t.row.Incarnation, Trace: t.trace,
		Payload: *text(work{Actor: t.ref, Path: path, Generation: generation, Params: raw}),
		Policy:  *text(policy), MaxAttempts: policy.MaxAttempts,
	}, nil
}
