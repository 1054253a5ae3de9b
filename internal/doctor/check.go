package doctor

// Severity is the severity of a problem.
type Severity string

// The severities.
const (
	OK      Severity = "ok"
	Warning Severity = "warning"
	Broken  Severity = "broken"
)

// Check is one check of the doctor.
type Check struct {
	// Name is the name of the check in output and documentation.
	Name string
	// Holds is the condition that should hold. Means explains a violation, and Do names what to
	// do about it.
	Holds, Means, Do string
	// Severity is the severity of a violation.
	Severity Severity
	// rule is the statement that finds violations, if there is one.
	rule string
}

const (
	bug = "This is a fault of Perdure, or its tables were changed by hand. Keep a copy of the database and report it; "
	// cancelOr is the remedy for an instance that cannot continue.
	cancelOr = "then terminate the instance with `perdure fsm terminate <id>` and start it again."
)

// Checks are all checks, in the order in which they run.
var Checks = []Check{
	{Name: "migrations", Severity: Broken, Holds: "Perdure's own tables are those of this version.", Means: "Processes of this version refuse to start.", Do: "Run `perdure migrate`."},
	{Name: "schema", Severity: Broken, Holds: "The database has every column, index, constraint, function and trigger that the migrations create.", Means: "Statements fail, read whole tables, or accept rows that Perdure does not understand.", Do: "Find out who has changed the database. `perdure migrate --print` prints the statements that create the named objects: run those, or restore a backup."},
	{Name: "version", Severity: Warning, Holds: "The database responds and reports its version.", Means: "Only for information.", Do: "Nothing."},
	{Name: "clock_skew", Severity: Warning, Holds: "The clocks of the process and of the server differ by at most 5 s.", Means: "The server's clock decides when work is due, so no work is lost. Work may start late, and times in logs differ.", Do: "Synchronize the clocks of both hosts with NTP."},
	{Name: "durability", Severity: Broken, Holds: "Commits are on disk before they are acknowledged.", Means: "A power failure can lose work that was acknowledged, and stamps of the outbox can be used twice.", Do: "PostgreSQL: set `synchronous_commit` to `on` for the role. MySQL: set `innodb_flush_log_at_trx_commit` to 1. SQLite: open the file without `synchronous=`."},
	{Name: "cluster", Severity: Broken, Holds: "A node of a Galera cluster is synced, in a component with a majority, of at least three nodes.", Means: "A node without the majority refuses all statements. A node that is not synced answers late. A cluster of two nodes stops when one is lost.", Do: "See `SHOW STATUS LIKE 'wsrep%'`. Restore the network between the nodes, or start the missing ones. Let processes use another node."},
	{Name: "pool_size", Severity: Warning, Holds: "The server has enough connections for two processes.", Means: "A further process may get no connection.", Do: "Raise `max_connections` of the server, or set `pool_max_conns` in the database URL."},
	{Name: "pooler", Severity: Warning, Holds: "The process is connected to PostgreSQL directly.", Means: "A transaction pooler works, but it does not pass notifications on. Processes notice that and poll four times a second.", Do: "No action is required. Connect directly if work must start immediately."},
	{Name: "horizon", Severity: Warning, Holds: "On PostgreSQL, no transaction has been open for five minutes, and no replication slot or standby is far behind.", Means: "The server keeps all rows that were deleted since, and claims and lists become slower the longer it lasts.", Do: "End the session with `select pg_terminate_backend(<pid>)`, the prepared transaction with `rollback prepared`, or drop the slot with `pg_drop_replication_slot`, unless it is a backup that ends soon. Set `idle_in_transaction_session_timeout` for the role that left it open."},
	{Name: "wal_mode", Severity: Broken, Holds: "The SQLite file has a write-ahead log.", Means: "Readers and the writer wait for each other, and can time out.", Do: "Find the program that has changed `journal_mode`; opening the file with Perdure sets it again."},
	{Name: "integrity", Severity: Broken, Holds: "The SQLite file is intact.", Means: "The file is damaged: by a disk, or by a program that copied or locked it incorrectly.", Do: "Stop all processes, copy the file, and restore a backup or use `.recover` of the sqlite3 shell."},

	{Name: "fsm_place", rule: "InvariantPlace", Severity: Broken, Holds: "A live instance is in exactly one place: ready, claimed, waiting, behind a barrier, in the queue of its key, or parked.", Means: "An instance in no place never runs. An instance in two places may run twice.", Do: bug + cancelOr},
	{Name: "fsm_ended", rule: "InvariantEnded", Severity: Broken, Holds: "Rows that let an instance run belong to a live instance.", Means: "A finished instance may run again.", Do: bug + "the named rows can be deleted."},
	{Name: "fsm_kept", rule: "InvariantKept", Severity: Broken, Holds: "Rows of an instance belong to an instance that exists.", Means: "Rows are left over. A unique key may stay occupied indefinitely.", Do: bug + "the named rows can be deleted."},
	{Name: "fsm_ready", rule: "InvariantReady", Severity: Broken, Holds: "A ready row has the queue, priority and due time of its instance.", Means: "The instance runs in another queue or at another time.", Do: bug + cancelOr},
	{Name: "fsm_wake", rule: "InvariantWake", Severity: Broken, Holds: "No instance waits while a signal that it awaits is in its inbox.", Means: "A wake-up was lost: the instance waits indefinitely.", Do: bug + "send the signal again to wake it."},
	{Name: "fsm_waiting", rule: "InvariantWaiting", Severity: Broken, Holds: "The awaited signals of an instance match its row.", Means: "Awaited signals do not wake the instance.", Do: bug + cancelOr},
	{Name: "fsm_barrier", rule: "InvariantBarrier", Severity: Broken, Holds: "A parent waits for as many children as are live.", Means: "The parent resumes too early, or never.", Do: bug + cancelOr},
	{Name: "fsm_unique", rule: "InvariantUnique", Severity: Broken, Holds: "A unique key is occupied by its instance, for the duration of its scope.", Means: "A second instance can be started with the key, or no instance can.", Do: bug + cancelOr},
	{Name: "fsm_partition", rule: "InvariantPartition", Severity: Broken, Holds: "One instance of each partition key is at the head, and the others are in its queue.", Means: "Instances of the key do not run, or two run concurrently.", Do: bug + cancelOr},
	{Name: "fsm_deadline", rule: "InvariantDeadline", Severity: Broken, Holds: "Every deadline is in the list of deadlines.", Means: "An instance is not finished at its deadline.", Do: bug + cancelOr},
	{Name: "fsm_interrupt", rule: "InvariantInterrupt", Severity: Broken, Holds: "A revoked claim belongs to a lease that is still valid.", Means: "Rows are left over.", Do: bug + "the named rows can be deleted."},
	{Name: "fsm_tree", rule: "InvariantTree", Severity: Broken, Holds: "Children are being finished only if their parent is finished.", Means: "Children are finished or run although they must not.", Do: bug + "the named rows of `tree_ends` can be deleted."},

	{Name: "fsm_unrouted", rule: "InstanceDoctorUnrouted", Severity: Warning, Holds: "Every due instance has a process with its definition, version and step.", Means: "A process claimed the instance and does not have its code. The instance waits until a process that has it serves the queue.", Do: "Finish the deploy, start a process of the release that has the definition, or cancel the instance with `perdure fsm cancel <id>`."},
	{Name: "fsm_unread", rule: "InstanceDoctorUnread", Severity: Warning, Holds: "The state of every due instance decodes.", Means: "The stored state does not match the type in the binary that claimed the instance. The instance is retried every 15 to 30 s without counting an attempt.", Do: "Deploy a binary that can decode the state, or add an error handler to the definition."},
	{Name: "fsm_unknown", rule: "InstanceDoctorUnknown", Severity: Warning, Holds: "Some process has served the definition, the version and the step of every live instance.", Means: "No process has ever had the code of the instance. It waits until a process has it.", Do: "Deploy the definition, or terminate the instance with `perdure fsm terminate <id>`."},
	{Name: "fsm_stuck", rule: "InstanceDoctorStuck", Severity: Warning, Holds: "No claim of an instance expired ten minutes ago.", Means: "A process crashed, and no other process serves the queue.", Do: "Start a process that serves the queue. It claims the instance."},
	{Name: "fsm_unhandled", rule: "InstanceDoctorUnhandled", Severity: Warning, Holds: "No instance has been due for an hour.", Means: "No process serves its queue and its definition, no process has its encryption key, or too few processes are running.", Do: "Deploy the definition, serve the queue, compare `perdure key status` with the keys of the processes, start more processes, or cancel the instance with `perdure fsm cancel <id>`."},
	{Name: "fsm_state", Severity: Broken, Holds: "The state of every live instance is JSON of the type that its definition declares.", Means: "No step can decode the state, so the instance does not run.", Do: bug + "set the state with a step that decodes it, or terminate the instance with `perdure fsm terminate <id>`."},
	{Name: "fsm_policy", Severity: Broken, Holds: "The recorded retry policies of every definition can be decoded.", Means: "Failed steps of its instances are retried by the policies of the process that runs them.", Do: bug + "delete the named row of `policies` and start a process that has the definition. It records its policies."},
	{Name: "remote_definition", Severity: Broken, Holds: "Every remote definition has steps with URLs, and secrets that can be decrypted.", Means: "Processes do not load the definition, and its instances wait.", Do: "Store the definition again, by the API or in the dashboard, or give this process the keys of the others (`PERDURE_ENCRYPTION_KEYS`)."},

	{Name: "hook_place", rule: "HookDoctorPlace", Severity: Broken, Holds: "A hook is in exactly one place: ready, running or finished.", Means: "The hook never runs, or runs twice.", Do: bug + "retry the hook with `perdure hook retry <id>`."},
	{Name: "hook_ready", rule: "HookDoctorReady", Severity: Broken, Holds: "A waiting hook is in the queue of its row.", Means: "The hook runs at another time than its due time, or twice.", Do: bug + "cancel the hook with `perdure hook cancel <id>`, and retry it."},
	{Name: "hook_ended", rule: "HookDoctorEnded", Severity: Broken, Holds: "A hook has an end time exactly if it is finished, and no rows of a removed hook are left.", Means: "The sweep removes it too early, or never.", Do: bug + "retry the hook with `perdure hook retry <id>`. Rows without a hook can be deleted."},
	{Name: "hook_attempts", rule: "HookDoctorAttempts", Severity: Broken, Holds: "A hook has at most as many attempts as its retry policy allows.", Means: "Its effect happened more often than the policy allows.", Do: bug + "inspect the hook with `perdure hook show <id>`."},
	{Name: "hook_stuck", rule: "HookDoctorStuck", Severity: Warning, Holds: "No claim of a hook expired ten minutes ago.", Means: "A process crashed, and no other process serves the namespace.", Do: "Start a process that serves the namespace. It claims the hook."},
	{Name: "hook_unhandled", rule: "HookDoctorUnhandled", Severity: Warning, Holds: "No hook has been due for an hour.", Means: "No process has its handler or its encryption key, or too few processes are running.", Do: "Deploy the handler, compare `perdure key status` with the keys of the processes, start more processes, or cancel the hook with `perdure hook cancel <id>`."},
	{Name: "hook_kept", rule: "HookDoctorKept", Severity: Broken, Holds: "Recorded attempts belong to hooks that exist.", Means: "Rows are left over.", Do: bug + "the named rows can be deleted."},
	{Name: "hook_policy", rule: "HookDoctorPolicy", Severity: Broken, Holds: "The retry policy of every hook can be decoded.", Means: "The hook cannot be retried as its policy says.", Do: bug + "cancel the hook with `perdure hook cancel <id>`, and trigger it again."},

	{Name: "task_ended", rule: "TaskDoctorEnded", Severity: Broken, Holds: "A task has an end time exactly if it is finished.", Means: "The sweep removes it too early, or never.", Do: bug + "retry the task with `perdure task retry <id>`."},
	{Name: "task_stuck", rule: "TaskDoctorStuck", Severity: Warning, Holds: "No claim of a task expired ten minutes ago.", Means: "A worker crashed, and there is no other worker.", Do: "Start a worker. It claims the task."},
	{Name: "task_unhandled", rule: "TaskDoctorUnhandled", Severity: Warning, Holds: "No task has been due for an hour.", Means: "No worker serves its type, or too few workers are running.", Do: "Deploy a worker that serves the type, start more workers, or cancel the task with `perdure task cancel <id>`."},
	{Name: "task_times", rule: "TaskDoctorTimes", Severity: Broken, Holds: "No time of a task is infinite.", Means: "The task never runs, or its claim never expires.", Do: bug + "cancel the task with `perdure task cancel <id>`."},
	{Name: "task_rights", Severity: Warning, Holds: "On PostgreSQL, the role of the worker has exactly the privileges that it requires.", Means: "An untrusted worker could do more than run its tasks.", Do: "Run the statements of the findings as superuser. `perdure task lint` also shows them."},

	{Name: "alarm_place", rule: "AlarmDoctorPlace", Severity: Broken, Holds: "An alarm is in exactly one place: ready, running or dead.", Means: "The alarm never fires, or fires twice.", Do: bug + "schedule the alarm again."},
	{Name: "alarm_ready", rule: "AlarmDoctorReady", Severity: Broken, Holds: "A waiting alarm is in the queue of its row.", Means: "The alarm fires at another time than its due time, or twice.", Do: bug + "schedule the alarm again."},
	{Name: "alarm_stray", rule: "AlarmDoctorStray", Severity: Broken, Holds: "No rows of a removed alarm are left.", Means: "Claims of its type find no work item.", Do: bug + "the named rows can be deleted."},
	{Name: "alarm_orphan", rule: "AlarmDoctorOrphan", Severity: Broken, Holds: "A timer belongs to an actor that exists.", Means: "The timer fires without an actor.", Do: bug + "the named rows can be deleted."},
	{Name: "alarm_ended", rule: "AlarmDoctorEnded", Severity: Broken, Holds: "Timers belong to actors that are not finished.", Means: "A timer fires for a finished actor and is dropped.", Do: bug + "no further action is required."},
	{Name: "alarm_stuck", rule: "AlarmDoctorStuck", Severity: Warning, Holds: "No claim of an alarm expired ten minutes ago.", Means: "A process crashed, and no other process handles the type.", Do: "Start a process that handles the type. It claims the alarm."},
	{Name: "alarm_unhandled", rule: "AlarmDoctorUnhandled", Severity: Warning, Holds: "No alarm has been due for an hour.", Means: "No process handles its type or the type of its actor, or no process has its encryption key.", Do: "Deploy a process that does, compare `perdure key status` with the keys of the processes, or cancel the alarm with `perdure alarm cancel`."},
	{Name: "alarm_kept", rule: "AlarmDoctorKept", Severity: Broken, Holds: "Recorded attempts belong to alarms that exist.", Means: "Rows are left over. A new alarm with the same key would have them.", Do: bug + "the named rows can be deleted."},
	{Name: "alarm_policy", rule: "AlarmDoctorPolicy", Severity: Broken, Holds: "The retry policy of every alarm can be decoded.", Means: "The alarm cannot be retried as its policy says.", Do: bug + "schedule the alarm again."},

	{Name: "actor_snapshot", rule: "ActorDoctorSnapshot", Severity: Broken, Holds: "Every actor has the snapshot of its last transition.", Means: "The actor cannot be loaded, or returns to an older state.", Do: bug + "the actor is quarantined at its next use. Its log has the transitions that restore its state."},
	{Name: "actor_orphan", rule: "ActorDoctorOrphan", Severity: Broken, Holds: "Rows of an actor belong to an actor that exists.", Means: "Rows are left over. They would belong to a new actor with the same id.", Do: bug + "the named rows can be deleted."},
	{Name: "actor_ahead", rule: "ActorDoctorAhead", Severity: Broken, Holds: "The log of an actor ends with its last transition.", Means: "The log has a transition that was not committed.", Do: bug + "inspect the log with `perdure actor log`."},
	{Name: "actor_postponed", rule: "ActorDoctorPostponed", Severity: Warning, Holds: "Every process can load the actors of the types that it serves.", Means: "An actor cannot be decrypted with the key that it names, or a process lacks the version of its statechart. Its timers fire late or never.", Do: "Give all processes the same keys under the same ids (`PERDURE_ENCRYPTION_KEYS`) and the newest release."},
	{Name: "delay_quarantined", rule: "ActorDoctorQuarantined", Severity: Warning, Holds: "No timer crashes the process that fires it.", Means: "Processes crashed while they fired a timer. The timer is a dead letter. The actor and its other timers continue.", Do: "Fix the action, guard or statechart that the timer leads to, then retry the dead letter, or skip the timer (`perdure actor timers skip`)."},
	{Name: "actor_log", rule: "ActorDoctorGap", Severity: Broken, Holds: "The log of an actor has every transition since its first one, or since a checkpoint.", Means: "The state of the actor cannot be recomputed from the log. A damaged snapshot could not be restored.", Do: bug + "restore the missing rows of `actor_log` from a backup."},
	{Name: "actor_checksum", Severity: Broken, Holds: "The snapshot of an actor, its checkpoints and its log have the same checksums.", Means: "A row was changed by hand or by a disk. At its next use the actor is restored from its log, or quarantined.", Do: bug + "see the transitions with `perdure actor log` and the state with `perdure actor show`."},
	{Name: "actor_machine", rule: "ActorDoctorMachine", Severity: Warning, Holds: "The version of the stored statechart that an actor has is stored.", Means: "No process can run a transition of the actor.", Do: "Restore the row of `machines` from a backup, or delete the actor."},
	{Name: "actor_unserved", Severity: Warning, Holds: "The type of an active actor is a stored statechart, or a live process serves it.", Means: "No process can run a transition of the actors.", Do: "Start a process that registers the type, or store its statechart."},
	{Name: "actor_replay", Severity: Broken, Holds: "The log of an actor whose statechart is stored leads to its snapshot and to its timers. At most 10,000 actors are replayed.", Means: "The log, the snapshot, a statechart or a timer was changed or lost. An actor that lost a timer waits indefinitely.", Do: bug + "send an event that leaves the state, or reset the actor to an earlier transition with `perdure actor reset`."},

	{Name: "times", rule: "TimesDoctor", Severity: Broken, Holds: "No time is infinite.", Means: "Work with the time never runs, is never removed, or is claimed indefinitely.", Do: bug + "set the named column to the time that was meant."},
	{Name: "floors", rule: "FloorDoctor", Severity: Broken, Holds: "On PostgreSQL, claims begin to read at or before the first due row of their lane.", Means: "The named work is not claimed.", Do: bug + "delete the rows of `perdure.floors`, which is a cache. Claims then find the work."},
	{Name: "keys", Severity: Warning, Holds: "Every encrypted value can be decrypted with the keys of this process. Of each column, 10,000 values are read.", Means: "Processes with the same keys skip the work, and wait for a process that has the key. A value that was changed cannot be read by any process.", Do: "Give all processes the keys that `perdure key status` names (`PERDURE_ENCRYPTION_KEYS`)."},

	{Name: "fsm_unserved", Severity: Warning, Holds: "A queue in which instances have been due for a minute is served by a live process.", Means: "No live process claims instances of the queue.", Do: "Start a process that serves the queue (`Options.Queues`), or move the definition to a queue that is served."},
	{Name: "schedule_unserved", Severity: Warning, Holds: "The definition and version that a schedule starts are served by a live process.", Means: "Instances of the schedule wait until a process has the definition.", Do: "Deploy the definition, or set the schedule to a version that is served."},
	{Name: "hook_unserved", Severity: Warning, Holds: "A hook that has been due for a minute is served by a live process.", Means: "No live process has its handler.", Do: "Deploy the handler, or start a process that serves the namespace."},
	{Name: "task_unserved", Severity: Warning, Holds: "A task that has been due for a minute is served by a live process.", Means: "No live worker serves its type.", Do: "Start a worker that serves the type."},
	{Name: "alarm_unserved", Severity: Warning, Holds: "An alarm or timer that has been due for a minute is served by a live process.", Means: "No live process handles its type or the type of its actor.", Do: "Start a process that handles it."},
	{Name: "schedule_unread", Severity: Broken, Holds: "The expression and the options of every schedule are valid.", Means: "The schedule does not fire. Processes retry it every minute.", Do: "Set the schedule again, from its program or in the dashboard, or delete it."},
	{Name: "schedule_late", Severity: Warning, Holds: "A schedule that is not paused has a next time, and was not due an hour ago.", Means: "The schedule does not fire.", Do: "Start a process that runs schedules. If the schedule has no next time, set it again or pause and resume it."},

	{Name: "outbox", Severity: Broken, Holds: "The stamps have no gaps, every entry can be decoded, and the replay of all entries gives the tables.", Means: "Consumers have seen another history than the tables have.", Do: "If the database was restored or failed over, run `perdure outbox restart`; otherwise another program writes to the tables directly: see `perdure outbox verify`."},
	{Name: "consumers", Severity: Warning, Holds: "Every consumer of the outbox has moved within a week, or has no entries to read. A consumer that processes serve is not stopped, and its entries do not wait for a process for a minute.", Means: "Entries are not handled. They are kept for the consumer, so the outbox grows.", Do: "Start a process that serves the consumer. If it is stopped, fix the cause and use `perdure outbox consumers retry` or `skip`. Delete an unused consumer with `perdure outbox consumers delete <name>`."},
	{Name: "consumers_ahead", Severity: Broken, Holds: "No consumer of the outbox is after the newest entry.", Means: "The consumer skips the entries up to its position. The database was restored to an earlier time, or a row was changed.", Do: "Run `perdure outbox restart` after a restore, and set the consumer to a stamp that exists (`perdure outbox consumers reset`)."},
	{Name: "dead_letters", Severity: Warning, Holds: "There are no dead letters.", Means: "Failed or quarantined work waits for an operator.", Do: "List the dead letters with `perdure dead`, fix the cause, and retry them."},

	{Name: "audit_log", Severity: Broken, Holds: "The hashes of the audit log match its entries, and no entry is missing.", Means: "A user with access to the database has changed, added or removed entries.", Do: "Keep a copy of the database. Compare the named entries with a backup."},
}

// find returns a check by its name.
func find(name string) Check {
	for _, c := range Checks {
		if c.Name == name {
			return c
		}
	}
	return Check{Name: name, Severity: Warning}
}
