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
	// Holds is the condition that should hold. Means explains a violation, and Do is what to
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
	cancelOr = "then end the instance with `perdure fsm terminate <id>` and start it again."
)

// Checks are all checks, in the order in which they run.
var Checks = []Check{
	{Name: "migrations", Severity: Broken, Holds: "Perdure's own tables are those of this version.", Means: "Processes of this version refuse to start.", Do: "Run `perdure migrate`."},
	{Name: "version", Severity: Warning, Holds: "The database answers and says what it is.", Means: "Only for information.", Do: "Nothing."},
	{Name: "clock_skew", Severity: Warning, Holds: "The clocks of the process and of the server are at most 5 seconds apart.", Means: "The server's clock decides what is due, so nothing is lost; but work may begin late, and times in logs differ.", Do: "Let NTP set the clocks of both machines."},
	{Name: "durability", Severity: Broken, Holds: "Commits are on disk before they are acknowledged.", Means: "A power failure can lose work that was acknowledged, and stamps of the outbox can be used twice.", Do: "PostgreSQL: set `synchronous_commit` to `on` for the role. MySQL: set `innodb_flush_log_at_trx_commit` to 1. SQLite: open the file without `synchronous=`."},
	{Name: "pool_size", Severity: Warning, Holds: "Two processes find enough connections on the server.", Means: "A further process may get no connection.", Do: "Raise `max_connections` of the server, or set `pool_max_conns` in the database URL."},
	{Name: "pooler", Severity: Warning, Holds: "Nothing stands between the process and PostgreSQL.", Means: "A pooler of transactions works, but notifications do not come through it: other processes then find work when they poll.", Do: "Nothing, or connect directly where work should begin at once."},
	{Name: "wal_mode", Severity: Broken, Holds: "The SQLite file has a write-ahead log.", Means: "Readers and the writer wait for each other, up to errors.", Do: "Find the program that has changed `journal_mode`; opening the file with Perdure sets it again."},
	{Name: "integrity", Severity: Broken, Holds: "The SQLite file is whole.", Means: "The file is damaged, by a disk or by a program that has copied or locked it wrongly.", Do: "Stop all processes, copy the file, and restore a backup or use `.recover` of the sqlite3 shell."},

	{Name: "fsm_place", rule: "InvariantPlace", Severity: Broken, Holds: "A live instance is in exactly one place: ready, claimed, waiting, behind a barrier, in the queue of its key, or set aside.", Means: "In none, nobody will run it; in two, it may run twice.", Do: bug + cancelOr},
	{Name: "fsm_ended", rule: "InvariantEnded", Severity: Broken, Holds: "What lets an instance run belongs to one that lives.", Means: "An instance that has ended may be run again.", Do: bug + "the rows that are named can be deleted."},
	{Name: "fsm_kept", rule: "InvariantKept", Severity: Broken, Holds: "What is kept of an instance is kept with it.", Means: "Rows are left over; a unique key may stay occupied for ever.", Do: bug + "the rows that are named can be deleted."},
	{Name: "fsm_ready", rule: "InvariantReady", Severity: Broken, Holds: "An instance is ready in its own queue, at its own priority and time.", Means: "It runs elsewhere or at another time.", Do: bug + cancelOr},
	{Name: "fsm_wake", rule: "InvariantWake", Severity: Broken, Holds: "Nobody waits beside a signal that it waits for.", Means: "A wake-up was lost: the instance waits for ever.", Do: bug + "send the signal again to wake it."},
	{Name: "fsm_waiting", rule: "InvariantWaiting", Severity: Broken, Holds: "An instance waits for what its row says.", Means: "Signals that it waits for do not wake it.", Do: bug + cancelOr},
	{Name: "fsm_barrier", rule: "InvariantBarrier", Severity: Broken, Holds: "A parent waits for as many children as live.", Means: "It goes on too early, or never.", Do: bug + cancelOr},
	{Name: "fsm_unique", rule: "InvariantUnique", Severity: Broken, Holds: "A unique key is occupied by the instance that has it, for as long as its scope says.", Means: "A second instance can be started with the key, or none at all.", Do: bug + cancelOr},
	{Name: "fsm_partition", rule: "InvariantPartition", Severity: Broken, Holds: "Of each partition key one instance is at the head, and the others are in its queue.", Means: "Instances of the key do not run, or two at once.", Do: bug + cancelOr},
	{Name: "fsm_deadline", rule: "InvariantDeadline", Severity: Broken, Holds: "Deadlines are on the list of deadlines.", Means: "An instance is not ended at its deadline.", Do: bug + cancelOr},
	{Name: "fsm_interrupt", rule: "InvariantInterrupt", Severity: Broken, Holds: "A claim that was taken away belongs to a lease that goes on.", Means: "Rows are left over.", Do: bug + "the rows that are named can be deleted."},
	{Name: "fsm_tree", rule: "InvariantTree", Severity: Broken, Holds: "Children are being ended only if their parent has ended.", Means: "Children end or run although they must not.", Do: bug + "the rows of `tree_ends` that are named can be deleted."},

	{Name: "fsm_unrouted", rule: "InstanceDoctorUnrouted", Severity: Warning, Holds: "Every due instance has a process that knows its definition, version and step.", Means: "A process claimed the instance and does not have its code. The instance waits until a process that has it serves the queue.", Do: "Finish the deploy, start a process of the release that has the definition, or cancel the instance with `perdure fsm cancel <id>`."},
	{Name: "fsm_unread", rule: "InstanceDoctorUnread", Severity: Warning, Holds: "The state of every due instance decodes.", Means: "The stored state does not fit the type of the binary that claimed the instance. It is tried again every 15 to 30 s and loses no attempt.", Do: "Deploy a binary that can read the state, or give the definition an error handler."},

	{Name: "hook_place", rule: "HookDoctorPlace", Severity: Broken, Holds: "A hook is in exactly one place: ready, running or finished.", Means: "The hook is never run, or run twice.", Do: bug + "retry the hook with `perdure hook retry <id>`."},
	{Name: "hook_ready", rule: "HookDoctorReady", Severity: Broken, Holds: "A waiting hook is in the queue that its row says.", Means: "The hook is run at another time than it should be, or twice.", Do: bug + "cancel the hook with `perdure hook cancel <id>`, and retry it."},
	{Name: "hook_ended", rule: "HookDoctorEnded", Severity: Broken, Holds: "A hook has an end exactly if it has ended, and no row is left of a hook that was removed.", Means: "Retention removes it too early, or never.", Do: bug + "retry the hook with `perdure hook retry <id>`; rows of no hook can be deleted."},
	{Name: "hook_attempts", rule: "HookDoctorAttempts", Severity: Broken, Holds: "A hook is tried at most as often as its policy says.", Means: "Its effect has happened more often than was promised.", Do: bug + "look at the hook with `perdure hook show <id>`."},
	{Name: "hook_stuck", rule: "HookDoctorStuck", Severity: Warning, Holds: "No claim of a hook expired ten minutes ago.", Means: "A process was lost, and no other serves the namespace.", Do: "Start a process that serves the namespace; it takes the hook up."},
	{Name: "hook_unhandled", rule: "HookDoctorUnhandled", Severity: Warning, Holds: "No hook has been due for an hour.", Means: "No process has its handler or its encryption key, or too few are running.", Do: "Deploy the handler, compare `perdure key status` with the keys of the processes, start more processes, or cancel the hook with `perdure hook cancel <id>`."},
	{Name: "hook_kept", rule: "HookDoctorKept", Severity: Broken, Holds: "The attempts that are recorded are those of hooks that exist.", Means: "Rows are left over.", Do: bug + "the rows that are named can be deleted."},

	{Name: "task_ended", rule: "TaskDoctorEnded", Severity: Broken, Holds: "A task has an end exactly if it has ended.", Means: "Retention removes it too early, or never.", Do: bug + "retry the task with `perdure task retry <id>`."},
	{Name: "task_stuck", rule: "TaskDoctorStuck", Severity: Warning, Holds: "No claim of a task expired ten minutes ago.", Means: "A worker was lost, and there is no other.", Do: "Start a worker; it takes the task up."},
	{Name: "task_unhandled", rule: "TaskDoctorUnhandled", Severity: Warning, Holds: "No task has been due for an hour.", Means: "No worker knows its type, or too few are running.", Do: "Deploy a worker that knows it, start more, or cancel the task with `perdure task cancel <id>`."},
	{Name: "task_rights", Severity: Warning, Holds: "On PostgreSQL, the role of the worker has what it needs and no more.", Means: "A worker that is not trusted could do more than its tasks.", Do: "Let a superuser run the statements that the findings name; `perdure task lint` shows them too."},

	{Name: "alarm_place", rule: "AlarmDoctorPlace", Severity: Broken, Holds: "An alarm is in exactly one place: ready, running or dead.", Means: "The alarm is never fired, or fired twice.", Do: bug + "schedule the alarm again."},
	{Name: "alarm_ready", rule: "AlarmDoctorReady", Severity: Broken, Holds: "A waiting alarm is in the queue that its row says.", Means: "The alarm is fired at another time than it should be, or twice.", Do: bug + "schedule the alarm again."},
	{Name: "alarm_stray", rule: "AlarmDoctorStray", Severity: Broken, Holds: "No row is left of an alarm that was removed.", Means: "Claims of its type find nothing to run.", Do: bug + "the rows that are named can be deleted."},
	{Name: "alarm_orphan", rule: "AlarmDoctorOrphan", Severity: Broken, Holds: "A delay of a machine belongs to an actor that exists.", Means: "It fires for nobody.", Do: bug + "the rows that are named can be deleted."},
	{Name: "alarm_ended", rule: "AlarmDoctorEnded", Severity: Broken, Holds: "Delays belong to actors that have not ended.", Means: "A delay fires into a machine that is over; it is dropped then.", Do: bug + "nothing else is needed."},
	{Name: "alarm_stuck", rule: "AlarmDoctorStuck", Severity: Warning, Holds: "No claim of an alarm expired ten minutes ago.", Means: "A process was lost, and no other handles the type.", Do: "Start a process that handles it; it takes the alarm up."},
	{Name: "alarm_unhandled", rule: "AlarmDoctorUnhandled", Severity: Warning, Holds: "No alarm has been due for an hour.", Means: "No process handles its type, or the actor's, or none has its encryption key.", Do: "Deploy one that does, compare `perdure key status` with the keys of the processes, or cancel the alarm with `perdure alarm cancel`."},
	{Name: "alarm_kept", rule: "AlarmDoctorKept", Severity: Broken, Holds: "The attempts that are recorded are those of alarms that exist.", Means: "Rows are left over, and a new alarm of the name would have them.", Do: bug + "the rows that are named can be deleted."},

	{Name: "actor_snapshot", rule: "ActorDoctorSnapshot", Severity: Broken, Holds: "Every actor has the snapshot of its last step.", Means: "It cannot be loaded, or goes back in time.", Do: bug + "the actor is quarantined when it is used next, and its log tells how to get its state again."},
	{Name: "actor_orphan", rule: "ActorDoctorOrphan", Severity: Broken, Holds: "What belongs to an actor belongs to one that exists.", Means: "Rows are left over, and would belong to a new actor of the name.", Do: bug + "the rows that are named can be deleted."},
	{Name: "actor_ahead", rule: "ActorDoctorAhead", Severity: Broken, Holds: "The log of an actor ends with its last step.", Means: "A step was recorded that was not taken.", Do: bug + "look at the log with `perdure actor log`."},
	{Name: "actor_postponed", rule: "ActorDoctorPostponed", Severity: Warning, Holds: "Every process can move the actors whose types it knows.", Means: "An actor cannot be decrypted with the key that it names, or is at a version of its machine that a process lacks: its delays fire late, or not at all.", Do: "Give all processes the same keys under the same ids (`PERDURE_ENCRYPTION_KEYS`) and the newest release."},
	{Name: "delay_quarantined", rule: "ActorDoctorQuarantined", Severity: Warning, Holds: "No delay of an actor kills the process that fires it.", Means: "Processes crashed while they fired a delay. It is a dead letter; the actor and its other delays continue.", Do: "Fix the action, guard or machine that the delay leads to, then retry the dead letter, or skip the delay (`perdure actor timers skip`)."},

	{Name: "fsm_unserved", Severity: Warning, Holds: "A queue in which instances have been due for a minute is served by a live process.", Means: "No live process claims instances of the queue.", Do: "Start a process that serves the queue (`Options.Queues`), or move the definition to a queue that is served."},
	{Name: "schedule_unserved", Severity: Warning, Holds: "The definition and version that a schedule starts are served by a live process.", Means: "Instances that the schedule starts wait until a process knows the definition.", Do: "Deploy the definition, or set the schedule to a version that is served."},
	{Name: "hook_unserved", Severity: Warning, Holds: "A hook that has been due for a minute is served by a live process.", Means: "No live process has its handler.", Do: "Deploy the handler, or start a process that serves the namespace."},
	{Name: "task_unserved", Severity: Warning, Holds: "A task that has been due for a minute is served by a live process.", Means: "No live worker knows its type.", Do: "Start a worker that knows it."},
	{Name: "alarm_unserved", Severity: Warning, Holds: "An alarm, or a delay of an actor, that has been due for a minute is served by a live process.", Means: "No live process handles its type, or the actor's.", Do: "Start a process that does."},
	{Name: "schedule_unread", Severity: Broken, Holds: "The expression and the options of every schedule can be read.", Means: "The schedule does not fire. Processes try it again every minute.", Do: "Set the schedule again, from the program that does so or in the dashboard, or remove it."},

	{Name: "outbox", Severity: Broken, Holds: "The stamps have no gaps, every entry can be read, and the replay of all entries gives the tables.", Means: "Consumers have seen another history than the tables tell.", Do: "If the database was restored or failed over, run `perdure outbox restart`; otherwise something writes to the tables past Perdure: see `perdure outbox verify`."},
	{Name: "consumers", Severity: Warning, Holds: "Every consumer of the outbox has moved within a week, or has nothing to read.", Means: "Entries are kept for it, so the outbox grows.", Do: "Start the consumer, or remove it with `perdure outbox consumers delete <name>`."},
	{Name: "dead_letters", Severity: Warning, Holds: "Nothing has failed for good.", Means: "Work waits for a decision.", Do: "Look at it with `perdure dead`, mend the cause, and retry it."},

	{Name: "audit_log", Severity: Broken, Holds: "The hashes of the audit log are those of its entries, and no entry is missing.", Means: "Someone with access to the database has changed, added or removed entries.", Do: "Keep a copy of the database. Compare the entries that are named with a backup."},
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
