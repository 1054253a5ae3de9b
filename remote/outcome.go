package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/retry"
)

// Decode decodes an answer. It rejects unknown fields, and fields that do not belong to
// the outcome: otherwise they would be ignored silently.
func Decode(body []byte) (Answer, error) {
	if err := edge.JSON("response", body, MaxMessage); err != nil {
		return Answer{}, err
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	var a Answer
	if err := dec.Decode(&a); err != nil {
		return Answer{}, fmt.Errorf("decode outcome: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return Answer{}, errors.New("decode outcome: response must have one JSON value")
	}
	allowed, ok := fields[a.Outcome]
	if !ok {
		return Answer{}, fmt.Errorf("outcome must be one of %s, got %q", strings.Join(slices.Sorted(maps.Keys(fields)), ", "), edge.Message(a.Outcome))
	}
	for name, set := range a.set() {
		if set && !slices.Contains(allowed, name) {
			return Answer{}, fmt.Errorf("outcome %s does not support %s", a.Outcome, name)
		}
	}
	return a, nil
}

// fields are the fields that each outcome may have.
var fields = map[string][]string{
	"page":   {"state"},
	"next":   {"state", "step", "cancel_rest"},
	"replay": {"state", "delay", "cancel_rest"},
	"await":  {"state", "step", "signals", "keep", "timeout", "cancel_rest"},
	"spawn":  {"state", "step", "children", "need", "timeout", "cancel_rest"},
	"done":   {"state", "result", "ignore_signals", "cancel_rest"},
	"stop":   {"state", "reason", "ignore_signals", "cancel_rest"},
	"fail":   {"reason", "retry_after", "final"},
}

func (a Answer) set() map[string]bool {
	return map[string]bool{
		"state": a.State != nil, "step": a.Step != "", "delay": a.Delay != "", "timeout": a.Timeout != "", "signals": a.Signals != nil,
		"keep": a.Keep, "need": a.Need != 0, "children": a.Children != nil, "result": a.Result != nil, "reason": a.Reason != "",
		"ignore_signals": a.IgnoreSignals, "cancel_rest": a.CancelRest,
		"retry_after": a.RetryAfter != "", "final": a.Final,
	}
}

// Decide converts an answer into the outcome of a step. machines knows the definitions of
// children. The engine checks the rest: steps, names, sizes.
func Decide(ctx context.Context, machines *fsm.Machines, run *fsm.Run[json.RawMessage], a Answer) (fsm.Outcome, error) {
	outcome, err := a.outcome(ctx, machines, run)
	if a.CancelRest {
		outcome = outcome.CancelRest()
	}
	return outcome, err
}

func (a Answer) outcome(ctx context.Context, machines *fsm.Machines, run *fsm.Run[json.RawMessage]) (fsm.Outcome, error) {
	if a.State != nil {
		run.State = a.State
	}
	switch a.Outcome {
	case "next":
		return run.Next(a.Step), nil
	case "replay":
		delay, err := duration("delay", a.Delay)
		return run.Replay(delay), err
	case "await":
		return a.wait(run.Await(a.Signals...))
	case "spawn":
		return a.spawn(ctx, machines, run)
	case "done":
		if a.Result == nil {
			return a.end(run.Done(nil)), nil
		}
		return a.end(run.Done(a.Result)), nil
	case "stop":
		return a.end(run.Stop(edge.Message(a.Reason))), nil
	}
	return fsm.Outcome{}, a.failure()
}

// failure returns the error of an attempt that the endpoint reports as failed.
func (a Answer) failure() error {
	err := fmt.Errorf("endpoint reported: %s", edge.Message(a.Reason))
	if a.Final {
		return retry.Stop(err)
	}
	if a.RetryAfter == "" {
		return err
	}
	after, invalid := duration("retry_after", a.RetryAfter)
	if invalid != nil {
		return errors.Join(err, invalid)
	}
	return retry.After(min(after, MaxRetryAfter), err)
}

// end adds the options that done and stop share.
func (a Answer) end(o fsm.Outcome) fsm.Outcome {
	if a.IgnoreSignals {
		return o.IgnoreSignals()
	}
	return o
}

// wait adds the options that await and spawn share.
func (a Answer) wait(o fsm.Outcome) (fsm.Outcome, error) {
	o = o.Then(a.Step)
	if a.Keep {
		o = o.Keep()
	}
	if a.Timeout == "" {
		return o, nil
	}
	timeout, err := duration("timeout", a.Timeout)
	return o.Within(timeout), err
}

// spawn finds the definitions of the children, which may be Go or remote definitions.
func (a Answer) spawn(ctx context.Context, machines *fsm.Machines, run *fsm.Run[json.RawMessage]) (fsm.Outcome, error) {
	known, err := machines.Definitions(ctx)
	if err != nil {
		return fsm.Outcome{}, err
	}
	children := make([]fsm.ChildSpec, len(a.Children))
	for i, c := range a.Children {
		d, err := find(known, c)
		if err != nil {
			return fsm.Outcome{}, fmt.Errorf("child %d: %w", i, err)
		}
		options, err := c.options()
		if err != nil {
			return fsm.Outcome{}, fmt.Errorf("child %d: %w", i, err)
		}
		if c.State == nil {
			c.State = json.RawMessage("null")
		}
		children[i] = fsm.ChildOf(d.Definition(), c.State, options)
	}
	return a.wait(run.Spawn(children...).Need(a.Need))
}

func find(known []fsm.Recorded, c ChildSpec) (fsm.Recorded, error) {
	for _, d := range known { // newest version first
		if d.Name == c.Definition && (c.Version == 0 || c.Version == d.Version) {
			return d, nil
		}
	}
	return fsm.Recorded{}, &fault.NotFound{Kind: "definition", ID: c.Definition}
}
