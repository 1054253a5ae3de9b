package actor

import (
	"encoding/json"
	"fmt"

	"github.com/perdure/perdure/internal/effect"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/retry"
	"github.com/perdure/perdure/statechart"
)

// topic is the wake-up topic for new timers, effects and invocations. namespace is the
// namespace of the hooks that store effects and invocations.
const (
	topic     = "actor"
	namespace = "actor"
)

// work is the stored payload of an effect or an invocation.
type work struct {
	Actor Ref    `json:"actor"`
	Path  string `json:"path,omitempty"`
	// Generation distinguishes an invocation from earlier actors that had the same path.
	Generation int64           `json:"generation,omitempty"`
	Params     json.RawMessage `json:"params,omitempty"`
}

// The prefixes of hook names.
const (
	effectPrefix = "effect/"
	taskPrefix   = "task/"
)

// hookName returns the hook name of an effect or an invocation.
func (k *kind) hookName(prefix, name string) string { return prefix + k.name + "/" + name }

// hookID returns the idempotency key of an effect or invocation with a number in the actor's
// tree.
func (t *turn) hookID(number int64) string {
	return fmt.Sprintf("%s.%08d", t.row.Incarnation, number) // zero-padded: equal due times sort in this order
}

// hooksOf returns the effects and invocations of a transition as hooks, and records the
// invocations that it stops.
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
		policy = t.kind.options.Retry // its handler is in another process
	}
	return store.NewHook{
		ID: t.hookID(number), Item: effect.NewItem(), Namespace: namespace, Name: name, Unit: t.row.Incarnation, Trace: t.trace,
		Payload: *text(work{Actor: t.ref, Path: path, Generation: generation, Params: raw}),
		Policy:  *text(policy), MaxAttempts: policy.MaxAttempts,
	}, nil
}
