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

	get("/v1/hooks", Viewer, "list-hooks", "List hooks, newest first"),
	get("/v1/hooks/{id}", Viewer, "get-hook", "Show a hook"),
}
