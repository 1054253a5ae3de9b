// Package telemetry exports the metrics of a process, in the Prometheus text format.
//
// There is one list of metrics, and it contains every exported metric. The reference in
// docs is generated from it. Values that this process counts are read at each request.
// Values in the database are queried at most every five seconds, by statements whose cost
// does not grow with the tables.
//
// Labels are kinds, queues, states and routes, never ids: their number is bounded.
package telemetry

// Type is the type of a metric.
type Type string

// The types of metrics.
const (
	Counter   Type = "counter"
	Gauge     Type = "gauge"
	Histogram Type = "histogram"
)

// Metric describes one metric.
type Metric struct {
	Name   string
	Type   Type
	Help   string
	Labels []string
}

// The metrics, in the order in which they are written.
var (
	buildInfo = &Metric{"perdure_build_info", Gauge, "Always 1. The labels have the running version.", []string{"version", "revision", "go"}}
	startTime = &Metric{"perdure_start_time_seconds", Gauge, "Start time of the process, in seconds since 1970.", nil}
	routines  = &Metric{"perdure_goroutines", Gauge, "Goroutines of the process.", nil}
	memory    = &Metric{"perdure_memory_bytes", Gauge, "Memory of the process for its heap and stacks.", nil}

	workClaimed  = &Metric{"perdure_work_claimed_total", Counter, "Work items that this process has claimed.", []string{"kind", "queue"}}
	workFinished = &Metric{"perdure_work_finished_total", Counter, "Finished attempts: done, failed (the attempt failed and may be retried), lost (another process has claimed the work item) or error (the outcome could not be committed).", []string{"kind", "queue", "outcome"}}
	workRunning  = &Metric{"perdure_work_running", Gauge, "Work items that this process is running.", []string{"kind", "queue"}}
	workTook     = &Metric{"perdure_work_duration_seconds", Histogram, "Duration of attempts, including the commit of the outcome.", []string{"kind", "queue"}}
	workWaited   = &Metric{"perdure_work_latency_seconds", Histogram, "Delay between the due time and the start of an attempt.", []string{"kind", "queue"}}
	workOverdue  = &Metric{"perdure_work_oldest_due_seconds", Gauge, "Age of the oldest due work item that no process runs. 0: no work is due.", []string{"kind", "queue"}}

	depth       = &Metric{"perdure_queue_depth", Gauge, "Work items in the database by status; retrying items are scheduled until they are due, then ready. Items of kind actor are timers, and failed or quarantined actors. Counting stops at 10000.", []string{"kind", "state"}}
	deadLetters = &Metric{"perdure_dead_letters", Gauge, "Dead letters: failed or quarantined work items that wait for an operator. Counting stops at 20000.", []string{"kind"}}

	outboxBehind = &Metric{"perdure_outbox_behind_entries", Gauge, "Entries of the outbox that a registered consumer has not acknowledged.", []string{"consumer"}}
	outboxTries  = &Metric{"perdure_outbox_failed_attempts", Gauge, "Failed attempts of the entry of the outbox that a registered consumer handles next.", []string{"consumer"}}
	outboxDead   = &Metric{"perdure_outbox_dead_letters", Gauge, "Entries of the outbox that a registered consumer could not handle.", []string{"consumer"}}
	outboxLag    = &Metric{"perdure_outbox_lag_seconds", Gauge, "Age of the oldest entry of the outbox that a registered consumer has not acknowledged.", []string{"consumer"}}

	unitsCommitted = &Metric{"perdure_units_committed_total", Counter, "Units of work that this process has committed in groups.", nil}
	txTook         = &Metric{"perdure_db_tx_seconds", Histogram, "Duration of the transactions that commit units of work.", nil}
	statementsRun  = &Metric{"perdure_db_statements_total", Counter, "Statements that this process has run, except those that start and finish transactions.", nil}
	txBusy         = &Metric{"perdure_db_busy_total", Counter, "Transactions that were retried after a deadlock, a serialization failure or a lost connection.", nil}
	connections    = &Metric{"perdure_db_connections", Gauge, "Connections of the process to its database.", []string{"pool", "state"}}
	connectionsMax = &Metric{"perdure_db_connections_max", Gauge, "Maximum number of connections.", []string{"pool"}}
	poolWaits      = &Metric{"perdure_db_connection_waits_total", Counter, "Number of waits for a connection.", []string{"pool"}}
	poolWaited     = &Metric{"perdure_db_connection_wait_seconds_total", Counter, "Total time of waits for a connection.", []string{"pool"}}

	horizonAge = &Metric{"perdure_db_horizon_age_seconds", Gauge, "Age of the oldest transaction for which PostgreSQL keeps deleted rows: a session or a prepared transaction. 0: none. A slot or a standby that is 100000 transactions behind has no age, and counts as 86400.", []string{"holder"}}
	deadRows   = &Metric{"perdure_db_dead_rows", Gauge, "Deleted rows in Perdure's tables on PostgreSQL that were not removed yet, by the server's estimate.", nil}

	requests     = &Metric{"perdure_http_requests_total", Counter, "Requests that were completed.", []string{"route", "status"}}
	requestsTook = &Metric{"perdure_http_request_duration_seconds", Histogram, "Duration of requests; streams count until they are closed.", []string{"route"}}

	scrapeErrors = &Metric{"perdure_scrape_errors_total", Counter, "Failed queries of the database for metrics.", nil}
)

// Metrics are all metrics.
var Metrics = []*Metric{
	buildInfo, startTime, routines, memory,
	workClaimed, workFinished, workRunning, workTook, workWaited, workOverdue,
	depth, deadLetters, outboxBehind, outboxLag, outboxTries, outboxDead,
	unitsCommitted, txTook, statementsRun, txBusy, connections, connectionsMax, poolWaits, poolWaited, horizonAge, deadRows,
	requests, requestsTook, scrapeErrors,
}
