package hook

import (
	"encoding/json"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/effect"
	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/tracing"
	"github.com/perdure/perdure/retry"
)

// TriggerOptions configure one trigger. The zero value of every field is its
// default.
type TriggerOptions struct {
	// At is when the first attempt is due. In the past: now. It does
	// not affect retries. Default: now.
	At time.Time
	// Delay is how long to wait before the first attempt, by the clock of the
	// database. Use this or At. Default: 0.
	Delay time.Duration
	// Retry is the policy that is stored with the hook. Default: that of the
	// hook or its namespace.
	Retry retry.Policy
	// ID is the hook's id and idempotency key, of at most 128 bytes. If a hook with
	// that id exists, the unit of work fails with *fault.Duplicate. Default: a new one.
	ID string
	// Priority is the urgency among hooks that are due. Default: Normal.
	Priority perdure.Priority
}

// TriggerIn records a hook of the namespace in the unit of work and returns its
// id. This process need not have a handler for it. It fails the unit with
// *fault.Invalid if the payload cannot be stored or an option makes no sense.
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
		return "", host.In(tx).Fail(fault.Invalidf("hook "+name, "is triggered in a unit of work of another engine"))
	}
	hook.Unit, hook.Trace = tx.ID(), tracing.Of(tx.Context())
	due := h.due(o)
	committed := func() { h.rt.Hub.Publish(h.topic(), due) }
	return hook.ID, host.In(tx).Attach(committed, h.rt.Store.InsertHook(hook, h.rt.Now())...)
}

func (h *Hooks) prepare(name string, payload any, o TriggerOptions) (store.NewHook, error) {
	if err := edge.Name("hook", name); err != nil {
		return store.NewHook{}, err
	}
	if err := o.validate(); err != nil {
		return store.NewHook{}, err
	}
	raw, err := edge.Marshal("payload of hook "+name, payload, h.options.MaxPayload)
	if err != nil {
		return store.NewHook{}, err
	}
	policy, err := json.Marshal(o.Retry)
	if err != nil {
		return store.NewHook{}, fault.Invalidf("retry policy", "cannot be stored: %v", err)
	}
	id, item := o.ID, ""
	if id == "" {
		id = h.rt.NewID()
		item = effect.ItemOf(id)
	} else {
		item = effect.NewItem()
	}
	return store.NewHook{
		ID: id, Item: item, Namespace: h.namespace, Name: name, Payload: string(raw), Policy: string(policy),
		Priority: int(o.Priority), MaxAttempts: o.Retry.MaxAttempts, At: at(o.At), Delay: o.Delay,
	}, nil
}

func (o TriggerOptions) validate() error {
	if err := edge.Delay("TriggerOptions.Delay", o.Delay); err != nil {
		return err
	}
	if o.Delay != 0 && !o.At.IsZero() {
		return fault.Invalidf("TriggerOptions", "must set At or Delay, not both")
	}
	if err := edge.Time("TriggerOptions.At", o.At); err != nil {
		return err
	}
	if o.Priority < perdure.High || o.Priority > perdure.Low {
		return fault.Invalidf("TriggerOptions.Priority", "is %d; High, Normal and Low are possible", o.Priority)
	}
	if o.ID != "" {
		if err := edge.Text("TriggerOptions.ID", o.ID, 128); err != nil {
			return err
		}
	}
	return o.Retry.Validate()
}

// due returns when the hook will be due by our own clock, which is good enough
// for a hint.
func (h *Hooks) due(o TriggerOptions) time.Time {
	if !o.At.IsZero() {
		return o.At
	}
	return h.rt.Clock.Now().Add(o.Delay)
}

func at(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC().Truncate(time.Microsecond)
	return &t
}
