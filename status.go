package perdure

import "github.com/perdure/perdure/internal/store"

// Status is the status of a work item. Every kind of work has the same words; Finished
// reports which of them are final. Actors have the statuses of XState instead.
type Status string

// The statuses. A kind of work has those that apply to it.
const (
	// StatusScheduled items are due later.
	StatusScheduled Status = store.StatusScheduled
	// StatusReady items are due, and wait for a worker.
	StatusReady Status = store.StatusReady
	// StatusRetrying items wait for another attempt. An attempt before it failed.
	StatusRetrying Status = store.StatusRetrying
	// StatusRunning items are claimed by a worker.
	StatusRunning Status = store.StatusRunning
	// StatusWaiting instances wait for something else than time: Instance.WaitsFor tells for
	// what.
	StatusWaiting Status = store.StatusWaiting
	// StatusNoWorker instances wait for a process that knows their definition and step.
	StatusNoWorker Status = store.StatusNoWorker
	// StatusDone items succeeded.
	StatusDone Status = store.StatusDone
	// StatusStopped instances ended with Stop.
	StatusStopped Status = store.StatusStopped
	// StatusFailed items have exhausted their attempts, or must not be retried. They are
	// dead letters.
	StatusFailed Status = store.StatusFailed
	// StatusCancelled items were cancelled.
	StatusCancelled Status = store.StatusCancelled
	// StatusQuarantined items have crashed too many processes. They are dead letters.
	StatusQuarantined Status = store.StatusQuarantined
)

// Finished reports whether the status is final.
func (s Status) Finished() bool {
	switch s {
	case StatusDone, StatusStopped, StatusFailed, StatusCancelled, StatusQuarantined:
		return true
	}
	return false
}

// Waits reports whether an item with the status waits for its due time or for a worker:
// whether it is scheduled, ready or retrying.
func (s Status) Waits() bool {
	return s == StatusScheduled || s == StatusReady || s == StatusRetrying
}
