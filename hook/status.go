package hook

import "github.com/perdure/perdure"

// Status is the status of a hook.
type Status = perdure.Status

// The statuses of hooks.
const (
	// Scheduled hooks are due in the future. Ready hooks are due now.
	Scheduled = perdure.StatusScheduled
	Ready     = perdure.StatusReady
	// Retrying hooks wait for another attempt.
	Retrying = perdure.StatusRetrying
	// Running hooks are claimed by a process.
	Running = perdure.StatusRunning
	// Done hooks succeeded.
	Done = perdure.StatusDone
	// Failed hooks have exhausted their attempts.
	Failed = perdure.StatusFailed
	// Quarantined hooks have crashed too many processes.
	Quarantined = perdure.StatusQuarantined
	// Cancelled hooks were cancelled by an operator.
	Cancelled = perdure.StatusCancelled
)

// Statuses are all statuses of hooks. Waiting are the statuses of hooks that wait for
// their due time or for a process.
var (
	Statuses = []Status{Scheduled, Ready, Retrying, Running, Done, Failed, Quarantined, Cancelled}
	Waiting  = []Status{Scheduled, Ready, Retrying}
)
