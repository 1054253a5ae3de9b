package fsm

import (
	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/store"
)

// Status is the status of an instance.
type Status = perdure.Status

// The statuses of instances.
const (
	// Scheduled instances are due later, Ready instances now.
	Scheduled = perdure.StatusScheduled
	Ready     = perdure.StatusReady
	// Running instances are claimed by a process.
	Running = perdure.StatusRunning
	// Retrying instances wait for another attempt of a step that failed.
	Retrying = perdure.StatusRetrying
	// Waiting instances wait for something else than time: see Instance.WaitsFor.
	Waiting = perdure.StatusWaiting
	// NoWorker instances wait for a process that knows their definition and step.
	NoWorker = perdure.StatusNoWorker
	// The instance has ended. Done and Stopped are the ends that a step chooses:
	// with Done and with Stop. A Failed instance gave up: its attempts are
	// exhausted, its error handler failed, or its deadline passed. A Quarantined
	// instance has crashed too many processes. Failed and Quarantined instances
	// are dead letters.
	Done        = perdure.StatusDone
	Stopped     = perdure.StatusStopped
	Failed      = perdure.StatusFailed
	Cancelled   = perdure.StatusCancelled
	Quarantined = perdure.StatusQuarantined
)

// Reason tells what a Waiting instance waits for.
type Reason string

// The reasons.
const (
	// ForSignal: a signal, or the end of its time limit.
	ForSignal Reason = store.WaitsForSignal
	// ForChildren: the ends of its children.
	ForChildren Reason = store.WaitsForChildren
	// ForTurn: an earlier instance with the same partition key.
	ForTurn Reason = store.WaitsForTurn
)
