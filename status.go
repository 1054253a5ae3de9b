package perdure

import "github.com/perdure/perdure/internal/store"

// Status is the status of a work item. All kinds of work use the same statuses; Finished
// reports which of them are final. Actors have the statuses of XState instead.
type Status string

// The statuses. Each kind of work uses only some of them.
const (
	// StatusScheduled items are due in the future.
	StatusScheduled Status = store.StatusScheduled
	// StatusReady items are due and wait for a worker.
	StatusReady Status = store.StatusReady
	// StatusRetrying items wait for another attempt after a failed attempt.
	StatusRetrying Status = store.StatusRetrying
	// StatusRunning items are claimed by a worker.
	StatusRunning Status = store.StatusRunning
	// StatusWaiting instances wait for something other than time. See Instance.WaitsFor.
	StatusWaiting Status = store.StatusWaiting
	// StatusNoWorker instances wait for a process that knows their definition and step.
	StatusNoWorker Status = store.StatusNoWorker
	// StatusDone items succeeded.
	StatusDone Status = store.StatusDone
	// StatusStopped instances finished with Stop.
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

// Waits reports whether an item with the status waits for its due time or for a worker,
// that is, whether it is scheduled, ready or retrying.
func (s Status) Waits() bool {
	return s == StatusScheduled || s == StatusReady || s == StatusRetrying
}
