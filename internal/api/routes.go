package api

// Routes are all routes of the API, with the least role that each needs. This is
// the only place that says so: the handlers, the OpenAPI document and the test of
// every role on every route are made from it.
var Routes = []Route{
	get("/v1/definitions", Viewer, "list-definitions", "List the state machines that processes run"),
	get("/v1/definitions/{name}", Viewer, "get-definition", "Show a state machine with its versions"),
	put("/v1/definitions/{name}", Admin, "put-definition", "Store a version of a state machine whose steps are HTTP endpoints"),
	remove("/v1/definitions/{name}", Admin, "delete-definition", "Remove a version of such a state machine; its instances wait"),

	get("/v1/instances", Viewer, "list-instances", "List instances of state machines"),
	post("/v1/instances", Operator, "start-instance", "Start an instance").created(),
	post("/v1/instances/batch", Operator, "start-instances", "Start many instances, all or none").created(),
	post("/v1/instances/actions", Operator, "act-on-instances", "Cancel or retry many instances"),
	get("/v1/instances/{id}", Viewer, "get-instance", "Show an instance"),
	get("/v1/instances/{id}/children", Viewer, "list-children", "List the children of an instance, newest first"),
	get("/v1/instances/{id}/signals", Viewer, "list-signals", "List the inbox of an instance"),
	get("/v1/instances/{id}/history", Viewer, "get-history", "Tell what is known of the life of an instance"),
	get("/v1/instances/{id}/wait", Viewer, "wait-instance", "Wait for the end of an instance").streaming(),
	post("/v1/instances/{id}/signals", Operator, "signal-instance", "Send a signal to an instance").created(),
	post("/v1/instances/{id}/cancel", Operator, "cancel-instance", "Cancel an instance and its children"),
	post("/v1/instances/{id}/retry", Operator, "retry-instance", "Let an instance that ended badly go on"),

	get("/v1/schedules", Viewer, "list-schedules", "List schedules by name"),
	get("/v1/schedules/{name}", Viewer, "get-schedule", "Show a schedule"),
	put("/v1/schedules/{name}", Operator, "set-schedule", "Create or change a schedule"),
	patch("/v1/schedules/{name}", Operator, "change-schedule", "Change a part of a schedule; the rest stays as it is"),
	remove("/v1/schedules/{name}", Admin, "remove-schedule", "Remove a schedule; what it has started goes on"),
	post("/v1/schedules/{name}/fire", Operator, "fire-schedule", "Start an instance for a schedule now").created(),
	post("/v1/schedules/{name}/pause", Operator, "pause-schedule", "Keep a schedule from firing"),
	post("/v1/schedules/{name}/resume", Operator, "resume-schedule", "Let a schedule fire again"),

	get("/v1/hooks", Viewer, "list-hooks", "List hooks, newest first"),
	post("/v1/hooks", Operator, "trigger-hook", "Trigger a hook").created(),
	get("/v1/hooks/{id}", Viewer, "get-hook", "Show a hook"),
	post("/v1/hooks/{id}/retry", Operator, "retry-hook", "Make a hook due now, with all its attempts"),
	post("/v1/hooks/{id}/cancel", Operator, "cancel-hook", "Keep a hook from being run"),
	post("/v1/hooks/{id}/replay", Operator, "replay-hook", "Trigger a hook once more, as a new one").created(),

	get("/v1/dead", Viewer, "list-dead", "List dead letters of every kind, newest first, or grouped by their error"),
	post("/v1/dead/retry", Operator, "retry-dead", "Try dead letters again"),

	get("/v1/overview", Viewer, "get-overview", "Tell how much there is to do, and how fast it is done"),
	get("/v1/upcoming", Viewer, "list-upcoming", "Tell what will be due next"),
	get("/v1/stream", Viewer, "stream-changes", "Stream what changes, as server-sent events").streaming(),

	get("/v1/outbox", Viewer, "list-outbox", "List entries of the outbox in the order of commits"),
	get("/v1/outbox/tail", Viewer, "tail-outbox", "Stream entries of the outbox, as server-sent events").streaming(),
	get("/v1/outbox/consumers", Viewer, "list-consumers", "List the consumers of the outbox"),

	get("/v1/nodes", Viewer, "list-nodes", "List the processes that run"),
	post("/v1/nodes/{id}/drain", Admin, "drain-node", "Ask a process to end its work"),

	get("/v1/tasks", Viewer, "list-tasks", "List tasks, newest first"),
	get("/v1/tasks/errors", Viewer, "list-task-errors", "List the errors of tasks, newest first"),
	get("/v1/tasks/{id}", Viewer, "get-task", "Show a task with its errors"),
	post("/v1/processes/{name}", Operator, "start-process", "Start a business process").created(),
	post("/v1/tasks/{id}/retry", Operator, "retry-task", "Make a task due now, with all its attempts"),
	post("/v1/tasks/{id}/cancel", Operator, "cancel-task", "Keep a task from being run"),

	get("/v1/alarms", Viewer, "list-alarms", "List alarms, the first to be due first"),
	remove("/v1/alarms", Operator, "cancel-alarms", "Cancel all alarms of a type").ok(),
	get("/v1/alarms/{id}", Viewer, "get-alarm", "Show an alarm"),
	put("/v1/alarms/{id}", Operator, "schedule-alarm", "Schedule an alarm, in place of the one with its id"),
	remove("/v1/alarms/{id}", Operator, "cancel-alarm", "Cancel an alarm"),
	post("/v1/alarms/{id}/move", Operator, "move-alarm", "Change when an alarm is due"),
	post("/v1/alarms/{id}/skip", Operator, "skip-alarm", "Pass the next tick of an alarm over"),
	post("/v1/alarms/{id}/fire", Operator, "fire-alarm", "Make an alarm due now"),
	post("/v1/alarms/{id}/retry", Operator, "retry-alarm", "Try an alarm that has died again"),

	get("/v1/actors", Viewer, "list-actors", "List actors, newest first"),
	post("/v1/actors", Operator, "spawn-actor", "Create an actor").created(),
	get("/v1/actors/{type}/{id}", Viewer, "get-actor", "Show everything of an actor"),
	remove("/v1/actors/{type}/{id}", Admin, "delete-actor", "Remove all that is stored of an actor"),
	get("/v1/actors/{type}/{id}/snapshot", Viewer, "get-snapshot", "Show what a caller sees of an actor, perhaps after waiting for a state").byActor().streaming(),
	post("/v1/actors/{type}/{id}/events", Operator, "send-event", "Give an actor an event").byActor(),
	get("/v1/actors/{type}/{id}/log", Viewer, "get-log", "List the steps of an actor, oldest first"),
	get("/v1/actors/{type}/{id}/stream", Viewer, "stream-actor", "Stream what a caller sees of an actor as patches, as server-sent events").byActor().streaming(),
	get("/v1/actors/{type}/{id}/socket", Viewer, "open-socket", "The same over a WebSocket, with events in the other direction").byActor().streaming(),
	post("/v1/actors/{type}/{id}/stop", Operator, "stop-actor", "End an actor"),
	post("/v1/actors/{type}/{id}/release", Operator, "release-actor", "Let a quarantined actor go on"),
	post("/v1/actors/{type}/{id}/tokens", Admin, "create-actor-token", "Make a token for one actor and one caller").created(),
	get("/v1/actors/{type}/{id}/timers", Viewer, "list-timers", "List the delays of an actor in the order in which they will fire"),
	post("/v1/actors/{type}/{id}/timers/{key}/move", Operator, "move-timer", "Change when a delay fires"),
	post("/v1/actors/{type}/{id}/timers/{key}/skip", Operator, "skip-timer", "Remove a delay"),
	post("/v1/actors/{type}/{id}/timers/{key}/fire", Operator, "fire-timer", "Let a delay fire now"),

	get("/v1/machines", Viewer, "list-machines", "List the types of actors that are data only"),
	post("/v1/machines/check", Viewer, "check-machine", "Say what is wrong with a machine"),
	put("/v1/machines/{name}", Admin, "put-machine", "Store a machine, as a new version if it differs"),
	get("/v1/machines/{name}", Viewer, "get-machine", "Show a machine"),
	get("/v1/machines/{name}/drawing.svg", Viewer, "draw-machine", "Draw a machine"),

	get("/v1/search", Viewer, "search", "Find things by the beginning of their id, or by their name"),
	get("/v1/facets/{kind}", Viewer, "get-facets", "List values that lists can be narrowed to"),

	get("/v1/me", Viewer, "get-me", "Tell who sends the request"),
	get("/v1/tokens", Admin, "list-tokens", "List API tokens"),
	post("/v1/tokens", Admin, "create-token", "Make an API token").created(),
	remove("/v1/tokens/{id}", Admin, "revoke-token", "End an API token and its sessions"),
	post("/v1/session", Anyone, "begin-session", "Begin the session of a browser"),
	remove("/v1/session", Anyone, "end-session", "End the session of a browser"),
}
