package fsm

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/work"
)

// SignalOptions configure a signal. The zero value of every field is its default.
type SignalOptions struct {
	// Key makes the signal idempotent: a second signal with the same name and key to the
	// same instance is dropped, until the instance is removed. Default: none.
	Key string
}

// Delivered is the result of sending a signal.
type Delivered struct {
	// Duplicate is true if the signal was dropped because of its key.
	Duplicate bool
}

// MaxInbox is the maximum number of signals in the inbox of an instance.
const MaxInbox = 10_000

// InboxFullError is returned by Send if the inbox of the instance holds Limit
// signals that no step has consumed.
type InboxFullError struct {
	ID    string
	Limit int
}

func (e *InboxFullError) Error() string {
	return fmt.Sprintf("inbox of instance %q is full: it has %d signals", e.ID, e.Limit)
}

// Send sends a signal to an instance and returns when it is durable. It returns a
// *fault.NotFound or *perdure.StateError if the instance cannot receive it, and an
// *InboxFullError if its inbox is full.
func Send(ctx context.Context, eng *perdure.Engine, id, name string, payload any, options *SignalOptions) (Delivered, error) {
	var delivered *Delivered
	err := eng.Update(ctx, func(tx *perdure.Tx) (err error) {
		delivered, err = SendIn(tx, id, name, payload, options)
		return err
	})
	if err != nil {
		return Delivered{}, err
	}
	return *delivered, nil
}

// SendIn records a signal in a unit of work. The result is set when the unit is
// committed.
func SendIn(tx *perdure.Tx, id, name string, payload any, options *SignalOptions) (*Delivered, error) {
	return send(tx, id, name, payload, options, func(status string) error { return stateError(id, Status(status)) })
}

// send records a signal. ended returns the error for a target that is finished.
func send(tx *perdure.Tx, id, name string, payload any, options *SignalOptions, ended func(status string) error) (*Delivered, error) {
	var o SignalOptions
	if options != nil {
		o = *options
	}
	signal, err := prepareSignal(id, name, payload, o, host.In(tx).Runtime().Bounds.State())
	if err != nil {
		return nil, host.In(tx).Fail(err)
	}
	rt := host.In(tx).Runtime()
	delivered, wakeups := &Delivered{}, &work.Wakeups{}
	full := func() error { return &InboxFullError{ID: id, Limit: MaxInbox} }
	stmts := rt.Store.DeliverSignal(signal, rt.Now(), ended, full, &delivered.Duplicate, wakeups.Woken)
	return delivered, host.In(tx).Attach(func() { wakeups.Publish(rt.Hub, topic) }, stmts...)
}

func prepareSignal(id, name string, payload any, o SignalOptions, limit int) (store.NewSignal, error) {
	if !validID(id) {
		return store.NewSignal{}, fault.Invalidf("instance id", "must be a UUID in lower case")
	}
	if err := edge.Name("signal", name); err != nil {
		return store.NewSignal{}, err
	}
	if o.Key != "" {
		if err := edge.Key("SignalOptions.Key", o.Key); err != nil {
			return store.NewSignal{}, err
		}
	}
	raw, err := edge.Marshal("payload of signal "+name, payload, limit)
	return store.NewSignal{Target: id, Name: name, Payload: string(raw), Dedup: edge.Optional(o.Key), Room: MaxInbox}, err
}

func signalOf(g store.Signal) Signal {
	return Signal{Name: g.Name, Payload: json.RawMessage(g.Payload), Created: g.Created, Received: g.Received, seq: g.Seq}
}

// Inbox returns the signals in the inbox of an instance, in order of arrival. A finished
// instance keeps the signals that no step has received, and the signals of the step that
// failed, until it is removed. Inbox returns a *fault.NotFound if there is no such
// instance.
func (m *Machines) Inbox(ctx context.Context, id string) ([]Signal, error) {
	if _, err := m.Get(ctx, id); err != nil {
		return nil, err
	}
	var all []Signal
	var sealed error
	err := m.read(ctx, m.rt.Store.Inbox([]string{id}, func(g store.Signal) {
		all = append(all, signalOf(g))
		sealed = firstError(sealed, g.Sealed)
	}))
	if err = firstError(err, sealed); err != nil {
		return nil, fmt.Errorf("read inbox of instance %s: %w", id, err)
	}
	return all, nil
}

// SendOrStart sends a signal to the instance that occupies a unique key. If there is
// none, it starts one first. options must have the Unique key; its scope must be Live.
func SendOrStart[S any](ctx context.Context, eng *perdure.Engine, d *Definition[S], state S, options *StartOptions, name string, payload any, signal *SignalOptions) (Started, error) {
	if options == nil || options.Unique == "" || options.UniqueScope != Live {
		return Started{}, fault.Invalidf("StartOptions.Unique", "is required, with the scope Live, to find the instance")
	}
	var started Started
	err := eng.Update(ctx, func(tx *perdure.Tx) error {
		found, err := StartIn(tx, d, state, options)
		if err != nil {
			return err
		}
		if err := host.In(tx).Flush(); err != nil { // after this the owner of the key is known
			return err
		}
		started = *found
		_, err = send(tx, started.ID, name, payload, signal, func(status string) error {
			// It finished after its key was found: retry.
			return &sqldb.Transient{Err: stateError(started.ID, Status(status))}
		})
		return err
	})
	return started, err
}
