// Package pull lets programs outside the server do its work over HTTP. Such a program, a worker,
// opens a session, fetches work in batches, and sends outcomes in batches. This process holds the
// claims, renews their leases, and commits the outcomes as those of its own handlers.
package pull

import (
	"encoding/json"
	"time"
)

// Protocol is the version of the worker protocol.
const Protocol = 1

// The kinds of work that a worker can serve.
const (
	KindStep   = "step"
	KindHook   = "hook"
	KindAlarm  = "alarm"
	KindEffect = "effect"
	KindTask   = "task"
)

// Serve names work that a worker can do.
type Serve struct {
	// Kind is step, hook, alarm, effect or task.
	Kind string
	// Machine and Version are the state machine of steps. The first of Names is the first step of
	// a machine that is not yet known. Queue is the queue of its instances; default: the name of
	// the machine. OnCancel is its cancel step.
	Machine  string
	Version  int
	Queue    string
	OnCancel string
	// Namespace is the namespace of hooks.
	Namespace string
	// Type is the type of the actors of effects and tasks.
	Type string
	// Names are names of steps, hooks, types of alarms, effects or tasks.
	Names []string
}

// Hello opens a session.
type Hello struct {
	// Name and SDK describe the worker.
	Name, SDK string
	// Slots is the number of work items that the worker runs concurrently.
	Slots  int
	Serves []Serve
	// Lease is the time after which a worker without a heartbeat has crashed. Zero: the default.
	Lease time.Duration
}

// Refusal is an entry of Hello.Serves that is not served.
type Refusal struct {
	// Serves is the index of the entry.
	Serves       int
	Code, Detail string
}

// Welcome is the answer to Hello.
type Welcome struct {
	Session string
	// Lease is the time after which a worker without a heartbeat has crashed. Beat is the interval
	// at which it must send heartbeats while it has work. Hold is the longest time for which a
	// call without outcomes waits for work. Batch is the largest number of items in a call.
	Lease, Beat, Hold time.Duration
	Batch             int
	Refused           []Refusal
}

// Outcome is the outcome of a work item: a JSON object without its token.
type Outcome struct {
	Token string
	Body  json.RawMessage
}

// The results of outcomes.
const (
	// Accepted: the outcome is committed.
	Accepted = "accepted"
	// Duplicate: the same outcome was committed before.
	Duplicate = "duplicate"
	// Conflict: another outcome was committed before.
	Conflict = "conflict"
	// Stale: the claim was lost, cancelled or returned. The outcome was discarded.
	Stale = "stale"
	// Invalid: the outcome is not valid. The claim continues.
	Invalid = "invalid"
	// Pending: the outcome is not committed yet. Send it again.
	Pending = "pending"
)

// Result is the result of an outcome.
type Result struct{ Token, Status, Detail string }

// Work is a work item that is handed to a worker.
type Work struct {
	Token string
	Kind  string
	// ID identifies the item, Key is its idempotency key.
	ID, Key string
	// Name is the step, the hook, the type of the alarm, the effect or the task.
	Name             string
	Attempt, Crashes int
	// Trace is the W3C traceparent of the item. Empty: none.
	Trace string
	// Data is the part that depends on the kind.
	Data any
}

// Cancel asks a worker to stop a work item.
type Cancel struct{ Token, Reason string }

// The states that the server asks workers to have.
const (
	// StateRun: fetch and do work.
	StateRun = "run"
	// StateQuiet: fetch no work from this server, and finish what is running.
	StateQuiet = "quiet"
)

// Ask is a call of a worker.
type Ask struct {
	Session, Principal string
	// Exchange identifies the call. A call with the same id gets the same work.
	Exchange string
	// Max is the number of free slots, Hold the time to wait for work.
	Max      int
	Hold     time.Duration
	Outcomes []Outcome
}

// Answer is the answer to Ask.
type Answer struct {
	Results []Result
	Work    []Work
	Cancel  []Cancel
	State   string
}

// Pulse is the answer to a heartbeat.
type Pulse struct {
	// Lost are the tokens whose work the server does not expect any more.
	Lost   []string
	Cancel []Cancel
	State  string
}
