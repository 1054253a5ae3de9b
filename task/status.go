package task

import "github.com/perdure/perdure"

// Status is the status of a task. The table queues.task uses older words for some
// statuses: pending is Scheduled, Ready or Retrying, processing is Running, and
// completed is Done.
type Status = perdure.Status

// The statuses of tasks.
const (
	// Scheduled tasks are due later, Ready tasks now.
	Scheduled = perdure.StatusScheduled
	Ready     = perdure.StatusReady
	// Retrying tasks wait for another attempt.
	Retrying = perdure.StatusRetrying
	// Running tasks are claimed by a worker.
	Running = perdure.StatusRunning
	// Done tasks were run to completion.
	Done = perdure.StatusDone
	// Failed tasks have exhausted their attempts.
	Failed = perdure.StatusFailed
	// Quarantined tasks have crashed at least Options.MaxCrashes times.
	Quarantined = perdure.StatusQuarantined
	// Cancelled tasks were cancelled by an operator or by a supervisor.
	Cancelled = perdure.StatusCancelled
)

// Statuses are all statuses of tasks. Waiting are the statuses of tasks that wait for
// their due time or for a worker.
var (
	Statuses = []Status{Scheduled, Ready, Retrying, Running, Done, Failed, Quarantined, Cancelled}
	Waiting  = []Status{Scheduled, Ready, Retrying}
)
