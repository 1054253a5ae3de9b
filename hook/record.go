package hook

import (
	"encoding/json"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/effect"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/retry"
)

// TriggerOptions configure one trigger. The zero value of every field is its
// default.
type TriggerOptions struct {
	// At is the time when the first attempt is due. A time in the past means now. It does
	// not affect retries. Default: now.
	At time.Time
	// Delay is the delay before the first attempt, by the database's clock. Set Delay or
	// At, not both. Default: 0.
	Delay time.Duration
	// Retry is the retry policy that is stored with the hook. Default: the policy of the
	// hook's handler or of its namespace.
	Retry retry.Policy
	// ID is the hook's id and idempotency key, at most 128 bytes. If a hook with that id
	// exists, in any namespace, the unit of work fails with *fault.Duplicate, unless IfAbsent
	// is set. Default: a new id.
	ID string
	// IfAbsent makes the trigger succeed without an effect if a hook with the ID exists: one
	// that waits or runs, or one that has ended and not been removed yet. A concurrent trigger
	// with the same ID waits for the other transaction. It needs ID. Default: false.
	IfAbsent bool
	// Existed, if not nil, is set to whether a hook with the ID existed, when the unit of work
	// is applied. It needs IfAbsent. Default: nil.
	Existed *bool
	// Priority is the priority among due hooks. Default: Normal.
	Priority perdure.Priority
}

// Record is a hook as it is stored.
type Record struct {
	ID, Namespace, Name string
	Payload             json.RawMessage
	Status              Status
	Priority            perdure.Priority
	Retry               retry.Policy
	// Attempts is the number of executions that returned. Crashes is the number of
	// executions that crashed.
	Attempts, MaxAttempts, Crashes int
	// Error is the error of the last failed attempt. It is kept if a later attempt
	// succeeds.
	Error string
	// Unit is the unit of work that triggered the hook.
	Unit    string
	Created time.Time
	// NextAttempt is zero if the hook is or was due immediately.
	NextAttempt time.Time
	// Due is the time when the hook is or was due.
	Due                   time.Time
	LastAttempt, Finished time.Time
	// Worker is the worker that has claimed a Running hook, LeaseExpires the end of its
	// lease.
	Worker       string
	LeaseExpires time.Time

	item string // the id of the row, for the position in a list
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
		Priority: int(o.Priority), MaxAttempts: o.Retry.MaxAttempts, At: edge.OptionalTime(o.At), Delay: o.Delay,
		Existed: absent(o.IfAbsent, o.Existed),
	}, nil
}

// absent returns where the existence of the id is stored, or nil if an existing id is an
// error.
func absent(ifAbsent bool, existed *bool) *bool {
	if ifAbsent && existed == nil {
		return new(bool)
	}
	return existed
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
		return fault.Invalidf("TriggerOptions.Priority", "must be High, Normal or Low, got %d", o.Priority)
	}
	if o.IfAbsent && o.ID == "" {
		return fault.Invalidf("TriggerOptions.IfAbsent", "must be set with ID")
	}
	if o.Existed != nil && !o.IfAbsent {
		return fault.Invalidf("TriggerOptions.Existed", "must be set with IfAbsent")
	}
	if o.ID != "" {
		if err := edge.Text("TriggerOptions.ID", o.ID, maxID); err != nil {
			return err
		}
	}
	return o.Retry.Validate()
}

// maxID is the maximum length of the id of a hook, in bytes.
const maxID = 128

func record(h store.Hook, now time.Time) Record {
	r := Record{
		ID: h.ID, item: h.Item, Namespace: h.Namespace, Name: h.Name, Payload: json.RawMessage(h.Payload), Status: Status(store.Refine(h.Status, h.Attempts, h.Due, now)),
		Priority: perdure.Priority(h.Priority), Attempts: h.Attempts, MaxAttempts: h.MaxAttempts, Crashes: h.Crashes,
		Error: edge.Value(h.Error), Unit: h.Unit, Created: h.Created.UTC(), NextAttempt: edge.UTC(h.NextAttempt), Due: h.Due.UTC(),
		LastAttempt: edge.UTC(h.LastAttempt), Finished: edge.UTC(h.Finished), LeaseExpires: edge.UTC(h.LeaseExpires),
	}
	if r.Status == Running {
		r.Worker = edge.Value(h.Worker) // in other statuses, the row has the worker of the last attempt
	}
	_ = json.Unmarshal([]byte(h.Policy), &r.Retry) // if it cannot be decoded, Retry stays empty
	return r
}
