package api

// Routes are all routes of the API, with the least role that each needs. This is
// the only place that says so: the handlers, the OpenAPI document and the test of
// every role on every route are made from it.
var Routes = []Route{
	get("/v1/instances", Viewer, "list-instances", "List instances of state machines"),
	get("/v1/instances/{id}", Viewer, "get-instance", "Show an instance"),

	get("/v1/hooks", Viewer, "list-hooks", "List hooks, newest first"),
	get("/v1/hooks/{id}", Viewer, "get-hook", "Show a hook"),
}
