package remote

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fsm"
)

// Request is the body of the request for a step. Its webhook-id is that of this
// one request: a step that is tried again is another request.
type Request struct {
	// Type is "fsm.step".
	Type      string    `json:"type"`
	Timestamp time.Time `json:"timestamp"`
	Data      Context   `json:"data"`
}

// Context is what a step can know of the instance that it runs for.
type Context struct {
	Instance   string `json:"instance"`
	Definition string `json:"definition"`
	Version    int    `json:"version"`
	Step       string `json:"step"`
	// Attempt counts the runs of this step from 1: failed attempts and replays.
	Attempt int `json:"attempt"`
	// Failures is the number of earlier runs of this step that failed.
	Failures int `json:"failures"`
	// Crashes counts how often a process was lost while it ran this step.
	Crashes int `json:"crashes"`
	// Token is that of the claim: when it is lost, the answer counts for nothing.
	Token string `json:"token"`
	// Timeout is how long the answer may take, such as "30s".
	Timeout string          `json:"timeout"`
	State   json.RawMessage `json:"state"`
	// Awaited are the signals that the instance waited for, Signals its whole
	// inbox; both in order of arrival.
	Awaited []Signal `json:"awaited"`
	Signals []Signal `json:"signals"`
	// TimedOut says that a wait ended without what was waited for.
	TimedOut bool `json:"timed_out"`
	// Rerun is true if the previous answer of this step was done or stop while
	// signals arrived that the instance has awaited at some time. It was not
	// committed; Awaited contains these signals too.
	Rerun bool `json:"rerun"`
	// Cancelled is true from the cancel step on, and CancelReason the reason.
	Cancelled    bool   `json:"cancelled"`
	CancelReason string `json:"cancel_reason,omitempty"`
	// Children are those of the last spawn, in its order; Dropped those of them
	// that were not started because their unique key was taken.
	Children []Child            `json:"children"`
	Dropped  []fsm.DroppedChild `json:"dropped"`
	// ChildrenNext is set if not all children fit into this request: Children is
	// then one page of them, and ChildrenNext the number of children up to its
	// end. The answer must be the outcome page, which asks for the next page.
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
	// Received is true if an earlier run of a step was given the signal.
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
	// State is the state that its last step has left.
	State json.RawMessage `json:"state,omitempty"`
}

// Answer is the body of the answer to a request: what shall happen next. It is
// signed like the request, with the request's webhook-id.
type Answer struct {
	// Outcome is one of
	//
	//	next    goes on with Step
	//	replay  runs the same step again after Delay
	//	await   waits for one of Signals, at most Timeout, then goes on with Step
	//	spawn   starts Children, waits for Need of them, then goes on with Step
	//	page    asks for the next page of children; the step is called again
	//	        at once, with State if it is set
	//	done    ends the instance with Result
	//	stop    ends it as stopped, because of Reason
	//	fail    is a failed attempt, because of Reason: it is retried as the policy
	//	        says, after RetryAfter if that is set, and not at all if Final is true
	Outcome string `json:"outcome"`
	// State is the new state. Without it the state stays as it is.
	State json.RawMessage `json:"state,omitempty"`
	Step  string          `json:"step,omitempty"`
	// Delay and Timeout are durations such as "1h30m".
	Delay   string `json:"delay,omitempty"`
	Timeout string `json:"timeout,omitempty"`
	// Signals are names. Keep keeps the signals that this step was given.
	Signals []string `json:"signals,omitempty"`
	Keep    bool     `json:"keep,omitempty"`
	// Need is how many children must have ended. Default: all.
	Need     int             `json:"need,omitempty"`
	Children []ChildSpec     `json:"children,omitempty"`
	Result   json.RawMessage `json:"result,omitempty"`
	Reason   string          `json:"reason,omitempty"`
	// IgnoreSignals lets done or stop end the instance even if its inbox holds
	// awaited signals that no step was given.
	IgnoreSignals bool `json:"ignore_signals,omitempty"`
	// CancelRest cancels children that have not ended: with spawn, those that are
	// left when the wait ends; with another outcome, those of the last spawn.
	CancelRest bool `json:"cancel_rest,omitempty"`
	// RetryAfter is a duration, at most MaxRetryAfter.
	RetryAfter string `json:"retry_after,omitempty"`
	Final      bool   `json:"final,omitempty"`
}

// ChildSpec is a child to be started.
type ChildSpec struct {
	Definition string `json:"definition"`
	// Version is that of the machine. Default: the newest.
	Version int             `json:"version,omitempty"`
	State   json.RawMessage `json:"state"`
	// The others are as in fsm.StartOptions. Priority is "high", "normal" or
	// "low", UniqueScope "live", "live_or_done", "live_or_failed" or "always".
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
		return nil, fmt.Errorf("priority %q is unknown", c.Priority)
	}
	scope, ok := scopes[c.UniqueScope]
	if !ok {
		return nil, fmt.Errorf("unique_scope %q is unknown", c.UniqueScope)
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
		return 0, fmt.Errorf("%s is not a duration such as \"1h30m\"", name)
	}
	return d, nil
}
