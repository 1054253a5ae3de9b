package api

import (
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/hook"
	"github.com/perdure/perdure/task"
)

// Routes are all routes of the API, with the least role that each needs and its handler.
// This is the only definition: the handlers, the OpenAPI document and the test of every
// role on every route are generated from it.
var Routes = []Route{
	get("/v1/definitions", Viewer, "list-definitions", "List definitions", by((*API).listDefinitions)),
	get("/v1/definitions/{name}", Viewer, "get-definition", "Get a definition with its versions", by((*API).getDefinition)),
	put("/v1/definitions/{name}", Admin, "put-definition", "Store a version of a definition with remote steps", by((*API).putDefinition)),
	remove("/v1/definitions/{name}", Admin, "delete-definition", "Delete a version of a definition with remote steps", by((*API).deleteDefinition)),

	get("/v1/instances", Viewer, "list-instances", "List instances", by((*API).listInstances)),
	post("/v1/instances", Operator, "start-instance", "Start an instance", by((*API).startInstance)).created(),
	post("/v1/instances/batch", Operator, "start-instances", "Start several instances in one transaction", by((*API).startInstances)).created(),
	post("/v1/instances/actions", Operator, "act-on-instances", "Cancel, terminate, retry or delete several instances", by((*API).actOnInstances)),
	post("/v1/instances/purge", Admin, "purge-instances", "Purge old finished instances", by(purges(machines, (*fsm.Machines).Purge, (*fsm.Machines).PurgeDead))).streaming(),
	get("/v1/instances/{id}", Viewer, "get-instance", "Get an instance", by((*API).getInstance)),
	get("/v1/instances/{id}/children", Viewer, "list-children", "List the children of an instance, newest first", by((*API).listChildren)),
	get("/v1/instances/{id}/signals", Viewer, "list-signals", "List the inbox of an instance", by((*API).listSignals)),
	get("/v1/instances/{id}/history", Viewer, "get-history", "Get the history of an instance", by((*API).getHistory)),
	get("/v1/instances/{id}/wait", Viewer, "wait-instance", "Wait until an instance is finished", by((*API).waitInstance)).streaming(),
	post("/v1/instances/{id}/signals", Operator, "signal-instance", "Send a signal to an instance", by((*API).signalInstance)).created(),
	post("/v1/instances/{id}/cancel", Operator, "cancel-instance", "Cancel an instance and its children, or run its cancel step", by((*API).cancelInstance)),
	post("/v1/instances/{id}/terminate", Operator, "terminate-instance", "Cancel an instance and its children without running its cancel step", by((*API).terminateInstance)),
	remove("/v1/instances/{id}", Operator, "delete-instance", "Delete a finished instance with its history", by(deletes(machines, (*fsm.Machines).Delete))),
	post("/v1/instances/{id}/retry", Operator, "retry-instance", "Retry a failed, cancelled or quarantined instance", by(changes(machines, (*fsm.Machines).RetryIn))),

	get("/v1/schedules", Viewer, "list-schedules", "List schedules by name", by((*API).listSchedules)),
	get("/v1/ticks", Viewer, "list-ticks", "List the next ticks of a cron expression or an interval", by((*API).previewTicks)),
	get("/v1/schedules/{name}", Viewer, "get-schedule", "Get a schedule", by((*API).getSchedule)),
	put("/v1/schedules/{name}", Operator, "set-schedule", "Create or replace a schedule", by((*API).setSchedule)),
	patch("/v1/schedules/{name}", Operator, "change-schedule", "Change some fields of a schedule", by((*API).changeSchedule)),
	remove("/v1/schedules/{name}", Admin, "remove-schedule", "Delete a schedule, not its instances", by((*API).removeSchedule)),
	post("/v1/schedules/{name}/fire", Operator, "fire-schedule", "Start an instance of a schedule now", by((*API).fireSchedule)).created(),
	post("/v1/schedules/{name}/pause", Operator, "pause-schedule", "Pause a schedule", by((*API).pauseSchedule)),
	post("/v1/schedules/{name}/resume", Operator, "resume-schedule", "Resume a schedule", by((*API).resumeSchedule)),

	get("/v1/hooks", Viewer, "list-hooks", "List hooks, newest first", by((*API).listHooks)),
	post("/v1/hooks", Operator, "trigger-hook", "Trigger a hook", by((*API).triggerHook)).created(),
	post("/v1/hooks/actions", Operator, "act-on-hooks", "Cancel, retry or delete several hooks", by((*API).actOnHooks)),
	post("/v1/hooks/purge", Admin, "purge-hooks", "Purge old finished hooks", by(purges(hooks, (*hook.Admin).Purge, (*hook.Admin).PurgeDead))).streaming(),
	get("/v1/hooks/{id}", Viewer, "get-hook", "Get a hook", by((*API).getHook)),
	remove("/v1/hooks/{id}", Operator, "delete-hook", "Delete a hook that is not running, with its attempts", by(deletes(hooks, (*hook.Admin).Delete))),
	post("/v1/hooks/{id}/retry", Operator, "retry-hook", "Retry a hook now, from its first attempt", by(changes(hooks, (*hook.Admin).RetryIn))),
	post("/v1/hooks/{id}/cancel", Operator, "cancel-hook", "Cancel a hook", by(changes(hooks, (*hook.Admin).CancelIn))),
	post("/v1/hooks/{id}/replay", Operator, "replay-hook", "Trigger a copy of a hook", by((*API).replayHook)).created(),

	get("/v1/dead", Viewer, "list-dead", "List dead letters, newest first or grouped by error", by((*API).listDead)),
	post("/v1/dead/retry", Operator, "retry-dead", "Retry dead letters", by((*API).retryDead)),

	get("/v1/overview", Viewer, "get-overview", "Get the amount and the throughput of work", by((*API).getOverview)),
	get("/v1/upcoming", Viewer, "list-upcoming", "List upcoming work", by((*API).listUpcoming)),
	get("/v1/stream", Viewer, "stream-changes", "Stream changes as server-sent events", by((*API).streamChanges)).streaming(),

	get("/v1/outbox", Viewer, "list-outbox", "List entries of the outbox in commit order", by((*API).listOutbox)),
	get("/v1/outbox/tail", Viewer, "tail-outbox", "Stream entries of the outbox as server-sent events", by((*API).tailOutbox)).streaming(),
	get("/v1/outbox/status", Viewer, "get-outbox-status", "Get the last entry, the retention and the incarnations of the outbox", by((*API).getOutboxStatus)),
	post("/v1/outbox/purge", Admin, "purge-outbox", "Purge old entries that all consumers have acknowledged", by((*API).purgeOutbox)).streaming(),
	get("/v1/outbox/consumers", Viewer, "list-consumers", "List consumers of the outbox", by((*API).listConsumers)),
	post("/v1/outbox/consumers/{name}/reset", Admin, "reset-consumer", "Move a consumer to a stamp, forwards or backwards", by((*API).resetConsumer)),
	get("/v1/outbox/consumers/{name}/dead", Viewer, "list-consumer-dead", "List dead letters of a consumer", by((*API).listConsumerDead)),
	post("/v1/outbox/consumers/{name}/retry", Operator, "retry-consumer", "Retry a dead letter of a consumer", by((*API).retryConsumerDead)),
	post("/v1/outbox/consumers/{name}/skip", Operator, "skip-consumer", "Drop a dead letter of a consumer", by((*API).skipConsumerDead)),
	remove("/v1/outbox/consumers/{name}", Admin, "delete-consumer", "Delete a consumer, so that retention ignores its position", by((*API).deleteConsumer)).ok(),

	get("/v1/nodes", Viewer, "list-nodes", "List nodes", by((*API).listNodes)),
	post("/v1/nodes/{id}/drain", Admin, "drain-node", "Drain a node", by((*API).drainNode)),

	get("/v1/tasks", Viewer, "list-tasks", "List tasks, newest first", by((*API).listTasks)),
	post("/v1/tasks", Operator, "enqueue-task", "Enqueue a task", by((*API).enqueueTask)).created(),
	post("/v1/tasks/actions", Operator, "act-on-tasks", "Cancel, retry or delete several tasks", by((*API).actOnTasks)),
	post("/v1/tasks/purge", Admin, "purge-tasks", "Purge old finished tasks and old errors of tasks", by((*API).purgeTasks)).streaming(),
	get("/v1/tasks/errors", Viewer, "list-task-errors", "List errors of tasks, newest first", by((*API).listTaskErrors)),
	get("/v1/tasks/{id}", Viewer, "get-task", "Get a task with its errors", by((*API).getTask)),
	post("/v1/processes/{name}", Operator, "start-process", "Start a business process", by((*API).startProcess)).created(),
	post("/v1/tasks/{id}/retry", Operator, "retry-task", "Retry a task now, from its first attempt", by(changes(tasks, (*task.Admin).RetryIn))),
	remove("/v1/tasks/{id}", Operator, "delete-task", "Delete a task that is not running", by(deletes(tasks, (*task.Admin).Delete))),
	post("/v1/tasks/{id}/cancel", Operator, "cancel-task", "Cancel a task", by(changes(tasks, (*task.Admin).CancelIn))),

	get("/v1/alarms", Viewer, "list-alarms", "List alarms by due time", by((*API).listAlarms)),
	remove("/v1/alarms", Operator, "cancel-alarms", "Cancel all alarms of a type", by((*API).cancelAlarms)).ok(),
	post("/v1/alarms/actions", Operator, "act-on-alarms", "Cancel, retry, skip or fire several alarms", by((*API).actOnAlarms)),
	get("/v1/alarms/{id}", Viewer, "get-alarm", "Get an alarm", by((*API).getAlarm)),
	put("/v1/alarms/{id}", Operator, "schedule-alarm", "Schedule an alarm, replacing any with the same id", by((*API).scheduleAlarm)),
	remove("/v1/alarms/{id}", Operator, "cancel-alarm", "Cancel an alarm", by((*API).cancelAlarm)).ok(),
	post("/v1/alarms/{id}/move", Operator, "move-alarm", "Change the due time of an alarm", by((*API).moveAlarm)),
	post("/v1/alarms/{id}/skip", Operator, "skip-alarm", "Skip the next tick of an alarm", by((*API).skipAlarm)),
	post("/v1/alarms/{id}/fire", Operator, "fire-alarm", "Fire an alarm now", by((*API).fireAlarm)),
	post("/v1/alarms/{id}/retry", Operator, "retry-alarm", "Retry a failed or quarantined alarm", by((*API).retryAlarm)),

	get("/v1/actors", Viewer, "list-actors", "List actors, newest first", by((*API).listActors)),
	post("/v1/actors", Operator, "spawn-actor", "Spawn an actor", by((*API).spawnActor)).created(),
	post("/v1/actors/actions", Operator, "act-on-actors", "Stop or resume several actors", by((*API).actOnActors)),
	get("/v1/actors/{type}/{id}", Viewer, "get-actor", "Get an actor", by((*API).getActor)),
	remove("/v1/actors/{type}/{id}", Admin, "delete-actor", "Delete an actor with its log, timers and tokens", by((*API).deleteActor)),
	get("/v1/actors/{type}/{id}/snapshot", Viewer, "get-snapshot", "Get the snapshot that a caller can see, optionally after a state is reached", by((*API).getSnapshot)).byActor().streaming(),
	post("/v1/actors/{type}/{id}/events", Operator, "send-event", "Send an event to an actor", by((*API).sendEvent)).byActor(),
	get("/v1/actors/{type}/{id}/log", Viewer, "get-log", "List the transitions of an actor, oldest first", by((*API).getLog)),
	get("/v1/actors/{type}/{id}/stream", Viewer, "stream-actor", "Stream the snapshots that a caller can see as server-sent patches", by((*API).streamActor)).byActor().streaming(),
	get("/v1/actors/{type}/{id}/socket", Viewer, "open-socket", "Stream snapshots and send events over a WebSocket", by((*API).openSocket)).byActor().streaming(),
	post("/v1/actors/{type}/{id}/stop", Operator, "stop-actor", "Stop an actor", by((*API).stopActor)),
	post("/v1/actors/{type}/{id}/resume", Operator, "resume-actor", "Resume a quarantined actor", by((*API).resumeActor)),
	post("/v1/actors/{type}/{id}/reset", Admin, "reset-actor", "Reset an actor to its state after an earlier transition", by((*API).resetActor)),
	get("/v1/actors/{type}/{id}/tokens", Admin, "list-actor-tokens", "List actor tokens of an actor, newest first", by((*API).listActorTokens)),
	post("/v1/actors/{type}/{id}/tokens", Admin, "create-actor-token", "Create an actor token for one caller", by((*API).createActorToken)).created(),
	get("/v1/actors/{type}/{id}/timers", Viewer, "list-timers", "List timers of an actor by due time", by((*API).listTimers)),
	post("/v1/actors/{type}/{id}/timers/{key}/move", Operator, "move-timer", "Change the due time of a timer", by((*API).moveTimer)),
	post("/v1/actors/{type}/{id}/timers/{key}/skip", Operator, "skip-timer", "Remove a timer", by((*API).skipTimer)),
	post("/v1/actors/{type}/{id}/timers/{key}/fire", Operator, "fire-timer", "Fire a timer now", by((*API).fireTimer)),

	get("/v1/statecharts", Viewer, "list-statecharts", "List stored statecharts", by((*API).listStatecharts)),
	post("/v1/statecharts/check", Viewer, "check-statechart", "Validate a statechart", by((*API).checkStatechart)),
	put("/v1/statecharts/{name}", Admin, "put-statechart", "Store a statechart, as a new version if it differs", by((*API).putStatechart)),
	get("/v1/statecharts/{name}", Viewer, "get-statechart", "Get a statechart", by((*API).getStatechart)),
	get("/v1/statecharts/{name}/drawing.svg", Viewer, "draw-statechart", "Draw a statechart as SVG", by((*API).drawStatechart)),

	get("/v1/audit", Operator, "list-audit", "List entries of the audit log, newest first", by((*API).listAudit)),
	post("/v1/audit/trim", Admin, "trim-audit", "Trim old entries of the audit log", by((*API).trimAudit)).streaming(),

	get("/v1/search", Viewer, "search", "Search by prefix of an id or by name", by((*API).search)),
	get("/v1/facets/{kind}", Viewer, "get-facets", "List values for filters", by((*API).getFacets)),

	get("/v1/me", Viewer, "get-me", "Get the sender of the request", by((*API).getMe)),
	get("/v1/tokens", Admin, "list-tokens", "List API tokens", by((*API).listTokens)),
	post("/v1/tokens", Admin, "create-token", "Create an API token", by((*API).createToken)).created(),
	get("/v1/tokens/actors", Admin, "list-all-actor-tokens", "List all actor tokens, newest first", by((*API).listAllActorTokens)),
	remove("/v1/tokens/{id}", Admin, "revoke-token", "Revoke an API token and its sessions, or an actor token", by((*API).revokeToken)),
	post("/v1/session", Anyone, "begin-session", "Start a browser session", by((*API).beginSession)),
	remove("/v1/session", Anyone, "end-session", "End a browser session", by((*API).endSession)),
}
