package fsm

import "github.com/perdure/perdure"

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
	// AwaitingSignal and AwaitingChildren instances are parked.
	AwaitingSignal   Status = "awaiting_signal"
	AwaitingChildren Status = "awaiting_children"
	// Queued instances wait for their turn in a partition.
	Queued Status = "queued"
	// NoWorker instances wait for a process that knows their definition and step.
	NoWorker Status = "no_worker"
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
