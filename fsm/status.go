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
	// Waiting instances wait for a signal, for children or for their turn: see
	// Instance.WaitsFor.
	Waiting = perdure.StatusWaiting
	// NoWorker instances wait for a process that has their definition and step.
	NoWorker = perdure.StatusNoWorker
	// These instances are finished. Done and Stopped are chosen by a step: with Done and
	// with Stop. A Failed instance has exhausted its attempts, its error handler failed,
	// or its deadline passed. A Quarantined instance has crashed at least
	// Options.MaxCrashes times. Failed and Quarantined instances are dead letters.
	Done        = perdure.StatusDone
	Stopped     = perdure.StatusStopped
	Failed      = perdure.StatusFailed
	Cancelled   = perdure.StatusCancelled
	Quarantined = perdure.StatusQuarantined
)

// Reason is the reason why a Waiting instance waits.
type Reason string

// The reasons.
const (
	// ForSignal: waits for a signal, or for the time limit of the wait.
	ForSignal Reason = store.WaitsForSignal
	// ForChildren: waits until its children are finished.
	ForChildren Reason = store.WaitsForChildren
	// ForTurn: waits for an earlier instance with the same partition key.
	ForTurn Reason = store.WaitsForTurn
)
