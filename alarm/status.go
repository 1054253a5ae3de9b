package alarm

import "github.com/perdure/perdure"

// Status is the status of an alarm.
type Status = perdure.Status

// The statuses of alarms. An alarm that has fired is removed and has no status.
const (
	// Scheduled alarms are due in the future. Ready alarms are due now.
	Scheduled = perdure.StatusScheduled
	Ready     = perdure.StatusReady
	// Retrying alarms wait for another attempt.
	Retrying = perdure.StatusRetrying
	// Running alarms are claimed by a process.
	Running = perdure.StatusRunning
	// Failed alarms have exhausted their attempts.
	Failed = perdure.StatusFailed
	// Quarantined alarms have crashed too many processes.
	Quarantined = perdure.StatusQuarantined
)

// Statuses are all statuses of alarms. Waiting are the statuses of alarms that wait for
// their due time or for a process. Dead are the statuses of dead letters.
var (
	Statuses = []Status{Scheduled, Ready, Retrying, Running, Failed, Quarantined}
	Waiting  = []Status{Scheduled, Ready, Retrying}
	Dead     = []Status{Failed, Quarantined}
)
