package hook

import (
	"slices"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/tracing"
)

// TriggerIn records a hook of the namespace in the unit of work and returns its id. This
// process need not have a handler for it. If the payload cannot be stored or an option is
// invalid, the unit fails with *fault.Invalid.
func (h *Hooks) TriggerIn(tx *perdure.Tx, name string, payload any, options *TriggerOptions) (string, error) {
	var o TriggerOptions
	if options != nil {
		o = *options
	}
	hook, err := h.prepareIn(tx, name, payload, &o)
	if err != nil {
		return "", host.In(tx).Fail(err)
	}
	due := h.due(o)
	committed := func() { h.rt.Hub.Publish(h.topic(), due) }
	return hook.ID, host.In(tx).Attach(committed, h.rt.Store.InsertHook(hook, h.rt.Now())...)
}

// prepareIn returns the row of a hook that is triggered in a unit of work. It sets the
// default policy.
func (h *Hooks) prepareIn(tx *perdure.Tx, name string, payload any, o *TriggerOptions) (store.NewHook, error) {
	if o.Retry.IsZero() {
		o.Retry = h.options.Retry
	}
	hook, err := h.prepare(name, payload, *o)
	if err == nil && host.In(tx).Engine() != h.eng {
		err = fault.Invalidf("hook "+name, "must be triggered in a unit of work of its engine")
	}
	hook.Unit, hook.Trace = tx.ID(), tracing.Of(tx.Context())
	return hook, err
}

// maxTriggers is the maximum number of hooks that one statement records.
const maxTriggers = 1000

// triggerMany records a hook for each payload, in sets.
func triggerMany[P any](h *Hooks, tx *perdure.Tx, name string, payloads []P, o TriggerOptions) ([]string, error) {
	if o.ID != "" {
		return nil, host.In(tx).Fail(fault.Invalidf("TriggerOptions.ID", "must be empty: each hook has an id of its own"))
	}
	ids := make([]string, 0, len(payloads))
	for some := range slices.Chunk(payloads, maxTriggers) {
		all := make([]store.NewHook, len(some))
		for i, payload := range some {
			hook, err := h.prepareIn(tx, name, payload, &o)
			if err != nil {
				return nil, host.In(tx).Fail(err)
			}
			all[i], ids = hook, append(ids, hook.ID)
		}
		if err := host.In(tx).Attach(nil, h.rt.Store.InsertHooks(all, h.rt.Now())...); err != nil {
			return nil, err
		}
	}
	due := h.due(o)
	return ids, host.In(tx).Attach(func() { h.rt.Hub.Publish(h.topic(), due) })
}

// due returns the time when the hook will be due by this process's clock, which is
// precise enough for a wake-up.
func (h *Hooks) due(o TriggerOptions) time.Time {
	if !o.At.IsZero() {
		return o.At
	}
	return h.rt.Clock.Now().Add(o.Delay)
}
