package api

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/perdure/perdure/internal/unit"
)

// Route is one operation of the API: its path and the role that may use it.
type Route struct {
	ID     string
	Method string
	Path   string
	// Role is the least role that may use the route.
	Role Role
	// Actor is true if the token of the actor in the path may also use the route.
	Actor bool
	// Worker is true if a token with the role worker may also use the route.
	Worker bool
	// Stream is true if the response continues until the client disconnects, or if the request
	// waits. Such a request limits its own time.
	Stream bool
	// Status is the status of a successful response.
	Status  int
	Summary string
	// bind binds the handler.
	bind binding
}

// get, post, put, patch and remove shorten the table of routes.
func get(path string, role Role, id, summary string, bind binding) Route {
	return Route{ID: id, Method: http.MethodGet, Path: path, Role: role, Status: http.StatusOK, Summary: summary, bind: bind}
}

func post(path string, role Role, id, summary string, bind binding) Route {
	return Route{ID: id, Method: http.MethodPost, Path: path, Role: role, Status: http.StatusOK, Summary: summary, bind: bind}
}

func put(path string, role Role, id, summary string, bind binding) Route {
	return Route{ID: id, Method: http.MethodPut, Path: path, Role: role, Status: http.StatusOK, Summary: summary, bind: bind}
}

func patch(path string, role Role, id, summary string, bind binding) Route {
	return Route{ID: id, Method: http.MethodPatch, Path: path, Role: role, Status: http.StatusOK, Summary: summary, bind: bind}
}

func remove(path string, role Role, id, summary string, bind binding) Route {
	return Route{ID: id, Method: http.MethodDelete, Path: path, Role: role, Status: http.StatusNoContent, Summary: summary, bind: bind}
}

// created returns the route with the status of something new.
func (r Route) created() Route {
	r.Status = http.StatusCreated
	return r
}

// ok returns the route with the status of a response that has a body.
func (r Route) ok() Route {
	r.Status = http.StatusOK
	return r
}

// empty returns the route with the status of a response without a body.
func (r Route) empty() Route {
	r.Status = http.StatusNoContent
	return r
}

// streaming returns the route without a time limit.
func (r Route) streaming() Route {
	r.Stream = true
	return r
}

// byActor returns the route with access for the token of its actor.
func (r Route) byActor() Route {
	r.Actor = true
	return r
}

// byWorker returns the route with access for tokens of workers.
func (r Route) byWorker() Route {
	r.Worker = true
	return r
}

// tag returns the resource of the route: what follows /v1/.
func (r Route) tag() string {
	name, _, _ := strings.Cut(strings.TrimPrefix(r.Path, "/v1/"), "/")
	return name
}

// safe reports whether a request of the route only reads, and may be repeated.
func (r Route) safe() bool { return r.Method == http.MethodGet && !r.Stream }

// operation describes the route for the OpenAPI document, with the schemas of to.
func (a *API) operation(to huma.API, r Route) huma.Operation {
	op := huma.Operation{
		OperationID: r.ID, Method: r.Method, Path: r.Path, Summary: r.Summary, Tags: []string{r.tag()}, DefaultStatus: r.Status,
		Description: r.describe(), MaxBodyBytes: a.config.MaxBody, Metadata: map[string]any{"route": r},
		Extensions: map[string]any{"x-perdure-role": r.Role.String()},
		Responses:  map[string]*huma.Response{"default": problemResponse(to)},
	}
	if r.changes() {
		op.Parameters = append(op.Parameters, reasonParameter())
	}
	if r.Role != Anyone || r.Actor {
		op.Security = []map[string][]string{{"token": {}}, {"session": {}}}
	}
	return op
}

func (r Route) describe() string {
	switch {
	case r.Worker:
		return fmt.Sprintf("Requires the role %s, or the role worker.", r.Role)
	case r.Actor:
		return fmt.Sprintf("Requires the role %s, or a token of the actor.", r.Role)
	case r.Role == Anyone:
		return "Requires no authentication."
	}
	return fmt.Sprintf("Requires the role %s.", r.Role)
}

// binding binds the handler of a route to a huma API.
type binding func(a *API, r Route, to huma.API)

// by returns the binding of a handler.
func by[I, O any](handler func(*API, context.Context, *I) (*O, error)) binding {
	return func(a *API, r Route, to huma.API) {
		op := a.operation(to, r)
		if _, ok := any(new(O)).(interface{ hasTag() }); ok && r.Method == http.MethodGet {
			op.Responses["304"] = &huma.Response{Description: "The stored resource matches If-None-Match."}
		}
		huma.Register(to, op, func(ctx context.Context, in *I) (*O, error) {
			if err := a.config.Missing[r.tag()]; err != nil {
				return nil, a.problem(requestOf(ctx), err)
			}
			out, err := handler(a, a.acting(ctx, r, in), in)
			if err != nil && r.safe() && isTrouble(err) && ctx.Err() == nil { // for example, an idle connection was closed
				unit.Pause(ctx, 1)
				out, err = handler(a, ctx, in)
			}
			if err != nil {
				return nil, a.problem(requestOf(ctx), err)
			}
			return out, nil
		})
	}
}

// serve serves the requests of a route. The types of a request and its response are
// inspected at the first request. Inspecting them for all routes takes longer than a
// command may take.
func (a *API) serve(r Route) {
	bound := sync.OnceValue(func() http.Handler {
		mux := http.NewServeMux()
		to := humago.New(mux, a.humaConfig())
		to.UseMiddleware(a.admit)
		r.bind(a, r, to)
		return mux
	})
	a.mux.HandleFunc(r.Method+" "+r.Path, func(w http.ResponseWriter, r *http.Request) { bound().ServeHTTP(w, r) })
}
