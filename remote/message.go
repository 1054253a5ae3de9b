package remote

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fsm"
)

// Request is the body of the request for a step. Its webhook-id identifies this one
// request: a retry of the step is another request.
type Request struct {
	// Type is "fsm.step".
	Type      string    `json:"type"`
	Timestamp time.Time `json:"timestamp"`
	Data      Context   `json:"data"`
}

// Context describes the instance for which a step runs.
type Context struct {
	Instance   string `json:"instance"`
	Definition string `json:"definition"`
	Version    int    `json:"version"`
	Step       string `json:"step"`
	// Attempt counts the runs of this step from 1: failed attempts and replays.
	Attempt int `json:"attempt"`
	// Failures is the number of earlier runs of this step that failed.
	Failures int `json:"failures"`
	// Crashes is the number of crashes while this step was running.
	Crashes int `json:"crashes"`
	// Token is the token of the claim. If the claim is lost, the response is discarded.
	Token string `json:"token"`
	// Timeout is the time limit for the response, such as "30s".
	Timeout string          `json:"timeout"`
	State   json.RawMessage `json:"state"`
	// Awaited are the signals for which the instance waited, Signals is its whole inbox.
	// Both are in order of arrival.
	Awaited []Signal `json:"awaited"`
	Signals []Signal `json:"signals"`
	// TimedOut is true if the wait reached its time limit.
	TimedOut bool `json:"timed_out"`
	// Rerun is true if the previous response of this step was done or stop while signals
	// arrived that the instance has awaited at some time. That outcome was not committed;
	// Awaited contains these signals too.
	Rerun bool `json:"rerun"`
	// Cancelled is true from the cancel step on. CancelReason is the reason.
	Cancelled    bool   `json:"cancelled"`
	CancelReason string `json:"cancel_reason,omitempty"`
	// Children are the children of the last spawn, in its order. Dropped are the children
	// that were not started because another instance occupies their unique key.
	Children []Child            `json:"children"`
	Dropped  []fsm.DroppedChild `json:"dropped"`
	// ChildrenNext is set if not all children fit into this request. Children is then one
	// page, and ChildrenNext is the number of children up to its end. The response must
	// have the outcome page, which requests the next page.
	ChildrenNext int `json:"children_next,omitempty"`
	// Parent is the instance that spawned this one, or null.
	Parent    *string   `json:"parent"`
	CreatedAt time.Time `json:"created_at"`
}

// Signal is a message to an instance.
type Signal struct {
	Name      string          `json:"name"`
	Payload   json.RawMessage `json:"payload"`
	CreatedAt time.Time       `json:"created_at"`
	// Received is true if an earlier run of a step has received the signal.
	Received bool `json:"received"`
}

// Child is a child of an instance.
type Child struct {
	Instance   string          `json:"instance"`
	Definition string          `json:"definition"`
	Ordinal    int             `json:"ordinal"`
	Status     fsm.Status      `json:"status"`
	Result     json.RawMessage `json:"result,omitempty"`
	Error      string          `json:"error,omitempty"`
	// State is the state after its last step.
	State json.RawMessage `json:"state,omitempty"`
}

// Answer is the body of the response to a request: the outcome of the step. It is signed
// like the request, with the request's webhook-id.
type Answer struct {
	// Outcome is one of
	//
	//	next    continues with Step
	//	replay  runs the same step again after Delay
	//	await   waits for one of Signals, at most Timeout, then continues with Step
	//	spawn   starts Children, waits for Need of them, then continues with Step
	//	page    requests the next page of children; the step is called again
	//	        immediately, with State if it is set
	//	done    finishes the instance with Result
	//	stop    finishes it as stopped, because of Reason
	//	fail    is a failed attempt, because of Reason: it is retried as the policy
	//	        says, after RetryAfter if that is set, and not at all if Final is true
	Outcome string `json:"outcome"`
	// State is the new state. Without it the state does not change.
	State json.RawMessage `json:"state,omitempty"`
	Step  string          `json:"step,omitempty"`
	// Delay and Timeout are durations such as "1h30m".
	Delay   string `json:"delay,omitempty"`
	Timeout string `json:"timeout,omitempty"`
	// Signals are names. Keep keeps the signals that this step has received.
	Signals []string `json:"signals,omitempty"`
	Keep    bool     `json:"keep,omitempty"`
	// Need is the number of children that must be finished. Default: all.
	Need     int             `json:"need,omitempty"`
	Children []ChildSpec     `json:"children,omitempty"`
	Result   json.RawMessage `json:"result,omitempty"`
	Reason   string          `json:"reason,omitempty"`
	// IgnoreSignals lets done or stop finish the instance even if its inbox holds awaited
	// signals that no step has received.
	IgnoreSignals bool `json:"ignore_signals,omitempty"`
	// CancelRest cancels unfinished children: with spawn, the children that are
	// unfinished when the wait ends; with another outcome, the children of the last
	// spawn.
	CancelRest bool `json:"cancel_rest,omitempty"`
	// RetryAfter is a duration, at most MaxRetryAfter.
	RetryAfter string `json:"retry_after,omitempty"`
	Final      bool   `json:"final,omitempty"`
}

// ChildSpec is a child to be started.
type ChildSpec struct {
	Definition string `json:"definition"`
	// Version is the version of the definition. Default: the newest.
	Version int             `json:"version,omitempty"`
	State   json.RawMessage `json:"state"`
	// The other fields are as in fsm.StartOptions. Priority is "high", "normal" or "low".
	// UniqueScope is "live", "live_or_done", "live_or_failed" or "always".
	ID           string    `json:"id,omitempty"`
	Queue        string    `json:"queue,omitempty"`
	Priority     string    `json:"priority,omitempty"`
	At           time.Time `json:"at,omitzero"`
	Delay        string    `json:"delay,omitempty"`
	Deadline     string    `json:"deadline,omitempty"`
	Partition    string    `json:"partition,omitempty"`
	Unique       string    `json:"unique,omitempty"`
	UniqueScope  string    `json:"unique_scope,omitempty"`
	UniqueAcross bool      `json:"unique_across,omitempty"`
	Step         string    `json:"step,omitempty"`
}

var (
	priorities = map[string]perdure.Priority{"": perdure.Normal, "high": perdure.High, "normal": perdure.Normal, "low": perdure.Low}
	scopes     = map[string]fsm.Scope{"": fsm.Live, "live": fsm.Live, "live_or_done": fsm.LiveOrDone, "live_or_failed": fsm.LiveOrFailed, "always": fsm.Always}
)

func (c ChildSpec) options() (*fsm.StartOptions, error) {
	priority, ok := priorities[c.Priority]
	if !ok {
		return nil, fmt.Errorf("priority must be high, normal or low, got %q", c.Priority)
	}
	scope, ok := scopes[c.UniqueScope]
	if !ok {
		return nil, fmt.Errorf("unique_scope must be live, live_or_done, live_or_failed or always, got %q", c.UniqueScope)
	}
	delay, err := duration("delay", c.Delay)
	if err != nil {
		return nil, err
	}
	deadline, err := duration("deadline", c.Deadline)
	if err != nil {
		return nil, err
	}
	return &fsm.StartOptions{
		ID: c.ID, Queue: c.Queue, Priority: priority, At: c.At, Delay: delay, Deadline: deadline,
		Partition: c.Partition, Unique: c.Unique, UniqueScope: scope, UniqueAcross: c.UniqueAcross, Step: c.Step,
	}, nil
}

func duration(name, text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%s must be a duration such as \"1h30m\"", name)
	}
	return d, nil
}
