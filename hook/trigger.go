package hook

import (
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/host"
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
	if o.Retry.IsZero() {
		o.Retry = h.options.Retry
	}
	hook, err := h.prepare(name, payload, o)
	if err != nil {
		return "", host.In(tx).Fail(err)
	}
	if host.In(tx).Engine() != h.eng {
		return "", host.In(tx).Fail(fault.Invalidf("hook "+name, "must be triggered in a unit of work of its engine"))
	}
	hook.Unit, hook.Trace = tx.ID(), tracing.Of(tx.Context())
	due := h.due(o)
	committed := func() { h.rt.Hub.Publish(h.topic(), due) }
	return hook.ID, host.In(tx).Attach(committed, h.rt.Store.InsertHook(hook, h.rt.Now())...)
}

// due returns the time when the hook will be due by this process's clock, which is
// precise enough for a wake-up.
func (h *Hooks) due(o TriggerOptions) time.Time {
	if !o.At.IsZero() {
		return o.At
	}
	return h.rt.Clock.Now().Add(o.Delay)
}
