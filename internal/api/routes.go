package api

// Routes are all routes of the API, with the least role that each needs. This is
// the only place that says so: the handlers, the OpenAPI document and the test of
// every role on every route are made from it.
var Routes = []Route{
	get("/v1/definitions", Viewer, "list-definitions", "List the state machines that processes run"),
	get("/v1/definitions/{name}", Viewer, "get-definition", "Show a state machine with its versions"),

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
}
