package alarm

import "github.com/perdure/perdure"

// Status is the status of an alarm.
type Status = perdure.Status

// The statuses of alarms. An alarm that has fired is removed: it has none.
const (
	// Scheduled alarms are due later, Ready alarms now.
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

// Statuses are all statuses of alarms. Waiting are those of alarms that wait for their due
// time or for a process, and Dead those of dead letters.
var (
	Statuses = []Status{Scheduled, Ready, Retrying, Running, Failed, Quarantined}
	Waiting  = []Status{Scheduled, Ready, Retrying}
	Dead     = []Status{Failed, Quarantined}
)
