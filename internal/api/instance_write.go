package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/fsm"
)

// Start describes an instance to be started.
type Start struct {
	Definition string          `json:"definition" maxLength:"128"`
	Version    int             `json:"version,omitempty" minimum:"0" maximum:"2147483647" doc:"Default: the newest version."`
	State      json.RawMessage `json:"state,omitempty" doc:"Default: an empty object."`
	StartOptions
}

// StartOptions configure the start of an instance.
type StartOptions struct {
	ID           string   `json:"id,omitempty" maxLength:"36" doc:"UUID in lower case. Default: a new id."`
	Queue        string   `json:"queue,omitempty" maxLength:"128" doc:"Default: the queue of the definition."`
	Priority     Priority `json:"priority,omitempty"`
	At           Time     `json:"at,omitzero" doc:"Due time of the first step. Default: now."`
	Delay        Duration `json:"delay,omitempty" doc:"Delay before the first step, instead of at."`
	Deadline     Duration `json:"deadline,omitempty" doc:"Time limit for the whole instance. Default: no limit."`
	Partition    string   `json:"partition_key,omitempty" maxLength:"512" doc:"Partition key. Instances with the same key run one at a time, in start order."`
	UniqueKey    string   `json:"unique_key,omitempty" maxLength:"512" doc:"Unique key. Only one instance of the definition can have it."`
	UniqueScope  string   `json:"unique_scope,omitempty" enum:"live,live_or_done,live_or_failed,always" doc:"Time for which the instance has the unique key. Default: live."`
	UniqueAcross bool     `json:"unique_across,omitempty" doc:"Makes the key unique among all definitions."`
	Step         string   `json:"step,omitempty" maxLength:"128" doc:"First step. Default: the first step of the definition."`
}

var scopes = map[string]fsm.Scope{"": fsm.Live, "live": fsm.Live, "live_or_done": fsm.LiveOrDone, "live_or_failed": fsm.LiveOrFailed, "always": fsm.Always}

func (o StartOptions) options() *fsm.StartOptions {
	return &fsm.StartOptions{
		ID: o.ID, Queue: o.Queue, Priority: perdure.Priority(o.Priority), At: time.Time(o.At), Delay: time.Duration(o.Delay), Deadline: time.Duration(o.Deadline),
		Partition: o.Partition, Unique: o.UniqueKey, UniqueScope: scopes[o.UniqueScope], UniqueAcross: o.UniqueAcross, Step: o.Step,
	}
}

func (s Start) state() json.RawMessage {
	if s.State == nil {
		return json.RawMessage("{}")
	}
	return s.State
}

// Started is the result of starting an instance.
type Started struct {
	ID        string `json:"id" doc:"Id of the new instance, or of the instance that already has the unique key."`
	Duplicate bool   `json:"duplicate" doc:"True if no instance was started because of the unique key."`
}

func (s Started) httpStatus() int {
	if s.Duplicate {
		return http.StatusOK
	}
	return http.StatusCreated
}

func (a *API) startInstance(ctx context.Context, in *Posted[Start]) (*Done[Started], error) {
	d, err := a.findDefinition(ctx, in.Body.Definition, in.Body.Version)
	if err != nil {
		return nil, err
	}
	return effect(ctx, a, in.Key, in.Body, func(tx *perdure.Tx) (func() Started, error) {
		started, err := fsm.StartIn(tx, d.Definition(), in.Body.state(), in.Body.options())
		return func() Started { return Started(*started) }, err
	})
}

// Batch starts many instances, all or none.
type Batch struct {
	Instances []Start `json:"instances" minItems:"1" maxItems:"1000" nullable:"false"`
}

// BatchResult has the result of each start, in the order of the request.
type BatchResult struct {
	Data []Started `json:"data" nullable:"false"`
}

func (a *API) startInstances(ctx context.Context, in *Posted[Batch]) (*Done[BatchResult], error) {
	machines := make([]*fsm.Definition[json.RawMessage], len(in.Body.Instances))
	for i, s := range in.Body.Instances {
		d, err := a.findDefinition(ctx, s.Definition, s.Version)
		if err != nil {
			return nil, fmt.Errorf("instance %d: %w", i, err)
		}
		machines[i] = d.Definition()
	}
	return effect(ctx, a, in.Key, in.Body, func(tx *perdure.Tx) (func() BatchResult, error) {
		results, err := startAll(tx, machines, in.Body.Instances)
		return func() BatchResult {
			all := BatchResult{Data: make([]Started, len(results))}
			for i, r := range results {
				all.Data[i] = Started(*r)
			}
			return all
		}, err
	})
}

// startAll starts instances. Consecutive instances of one definition are started together.
func startAll(tx *perdure.Tx, machines []*fsm.Definition[json.RawMessage], starts []Start) ([]*fsm.Started, error) {
	var results []*fsm.Started
	for from := 0; from < len(starts); {
		to := from + 1
		for to < len(starts) && starts[to].Definition == starts[from].Definition && starts[to].Version == starts[from].Version {
			to++
		}
		var states []json.RawMessage
		var options []*fsm.StartOptions
		for _, s := range starts[from:to] {
			states, options = append(states, s.state()), append(options, s.options())
		}
		some, err := fsm.StartManyIn(tx, machines[from], states, options)
		if err != nil {
			return nil, err
		}
		results, from = append(results, some...), to
	}
	return results, nil
}

// SignalInput is a signal to be sent.
type SignalInput struct {
	Name    string          `json:"name" maxLength:"128"`
	Payload json.RawMessage `json:"payload,omitempty" doc:"Default: null."`
	Key     string          `json:"key,omitempty" maxLength:"512" doc:"Idempotency key. A second signal with the same name and key is dropped."`
}

// Delivered is the result of sending a signal.
type Delivered struct {
	Duplicate bool `json:"duplicate" doc:"True if the signal was dropped because of its key."`
}

func (a *API) signalInstance(ctx context.Context, in *PostedTo[SignalInput]) (*Done[Delivered], error) {
	payload := in.Body.Payload
	if payload == nil {
		payload = json.RawMessage("null")
	}
	return effect(ctx, a, in.Key, in.Body, func(tx *perdure.Tx) (func() Delivered, error) {
		d, err := fsm.SendIn(tx, in.ID, in.Body.Name, payload, &fsm.SignalOptions{Key: in.Body.Key})
		return func() Delivered { return Delivered(*d) }, err
	})
}

// Reason is the reason for an action.
type Reason struct {
	Reason string `json:"reason,omitempty" maxLength:"1024"`
}

// OptionalReason is the input of a POST whose body may be left out.
type OptionalReason struct {
	Keyed
	ByID
	Body *Reason
}

func (r OptionalReason) text(otherwise string) string {
	if r.Body == nil || r.Body.Reason == "" {
		return otherwise
	}
	return r.Body.Reason
}

// Acted is the response to an action without a result.
type Acted struct {
	ID string `json:"id"`
}

func (a *API) cancelInstance(ctx context.Context, in *OptionalReason) (*Done[Acted], error) {
	actOf(ctx).because(in.text(""))
	reason := in.text("cancelled by " + requestOf(ctx).principal.Name)
	return effect(ctx, a, in.Key, in.Body, func(tx *perdure.Tx) (func() Acted, error) {
		return func() Acted { return Acted{in.ID} }, a.config.Machines.CancelIn(tx, in.ID, reason)
	})
}

// terminateInstance is like cancelInstance, without the cancel step.
func (a *API) terminateInstance(ctx context.Context, in *OptionalReason) (*Done[Acted], error) {
	actOf(ctx).because(in.text(""))
	reason := in.text("terminated by " + requestOf(ctx).principal.Name)
	return effect(ctx, a, in.Key, in.Body, func(tx *perdure.Tx) (func() Acted, error) {
		return func() Acted { return Acted{in.ID} }, a.config.Machines.TerminateIn(tx, in.ID, reason)
	})
}

// InstanceBulk requests an action on many instances.
type InstanceBulk struct {
	Action string `json:"action" enum:"cancel,terminate,retry,run,delete" doc:"Action. terminate cancels instances without running their cancel step. run makes instances due now that wait for their due time or for another attempt. delete removes finished instances."`
	Reason string `json:"reason,omitempty" maxLength:"1024"`
	Many[InstanceMatch]
}

func (a *API) actOnInstances(ctx context.Context, in *Posted[InstanceBulk]) (*Done[BulkResult], error) {
	b := in.Body
	instances, err := choose(b.Many, func(m InstanceMatch) finder {
		return func(cursor string, limit int) ([]string, string, error) {
			return a.inspect.FindInstances(ctx, m.filter(), cursor, limit)
		}
	})
	if err != nil {
		return nil, err
	}
	switch b.Action {
	case "retry":
		return a.onEach(ctx, in.Key, b, instances, a.config.Machines.RetryIn)
	case "run":
		return a.onEach(ctx, in.Key, b, instances, a.config.Machines.RunNowIn)
	case "delete":
		return a.onEach(ctx, in.Key, b, instances, a.config.Machines.DeleteIn)
	}
	end, reason := a.config.Machines.CancelIn, "cancelled by "
	if b.Action == "terminate" {
		end, reason = a.config.Machines.TerminateIn, "terminated by "
	}
	reason += requestOf(ctx).principal.Name
	if b.Reason != "" {
		reason = b.Reason
	}
	return a.onEach(ctx, in.Key, b, instances, func(tx *perdure.Tx, id string) error { return end(tx, id, reason) })
}

// waitInput is the input of a request that waits until an instance is finished.
type waitInput struct {
	ByID
	Timeout string `query:"timeout" doc:"Maximum time to wait, at most 5m. Default: 30s."`
}

const (
	defaultWait = 30 * time.Second
	maxWait     = 5 * time.Minute
)

// waitTime parses the time that a request wants to wait.
func waitTime(text string) (time.Duration, error) {
	if text == "" {
		return defaultWait, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > maxWait {
		return 0, fault.Invalidf("query.timeout", "must be between 0s and 5m, got %q", text)
	}
	return d, nil
}

// waitInstance returns when the instance is finished or the timeout has passed. The status
// of the instance shows which.
func (a *API) waitInstance(ctx context.Context, in *waitInput) (*One[Instance], error) {
	timeout, err := waitTime(in.Timeout)
	if err != nil {
		return nil, err
	}
	var i fsm.Instance
	late, err := a.waitFor(ctx, timeout, func(ctx context.Context) (err error) {
		i, err = a.config.Machines.Wait(ctx, in.ID)
		return err
	})
	if late {
		i, err = a.config.Machines.Get(ctx, in.ID)
	}
	if err != nil {
		return nil, err
	}
	return one(showInstance(i)), nil
}
