// Package api is the HTTP interface of Perdure: one table of routes, one file for each
// resource.
//
// A request is authenticated, checked against the role that the table requires, read within
// limits, and answered with JSON. Every refusal is a problem (RFC 9457) with a stable code.
// The effect of a POST is committed together with the record of its Idempotency-Key.
package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/actor"
	"github.com/perdure/perdure/alarm"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/hook"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/inspect"
	"github.com/perdure/perdure/internal/pull"
	"github.com/perdure/perdure/internal/redact"
	"github.com/perdure/perdure/remote"
	"github.com/perdure/perdure/task"
)

// Config configures an API.
type Config struct {
	Engine   *perdure.Engine
	Machines *fsm.Machines
	// Hooks are the namespaces in which hooks can be triggered.
	Hooks  map[string]*hook.Hooks
	Alarms *alarm.Alarms
	Actors *actor.Actors
	// Missing are the resources that the engine's database does not support, by the part of
	// their path after /v1/. The value is the error that their routes return. Machines, Alarms
	// and Actors may be nil if all their routes are missing.
	Missing map[string]error
	// Remote has the state machines whose steps are HTTP endpoints.
	Remote *remote.Registry
	// Workers hands work to workers outside the server. Nil: this process has none.
	Workers *pull.Broker
	// Redact are the rules for values that are removed from payloads before they are shown.
	// nil: no rules.
	Redact *redact.Rules
	// Auth authenticates the sender of a request.
	Auth Auth
	// Access manages API tokens and sessions. nil: they are managed elsewhere.
	Access *auth.Access
	// MaxBody is the largest body of a request in bytes.
	MaxBody int64
	// Limits cap what one caller has open concurrently.
	Limits Limits
	// Timeout bounds a request that is not a stream.
	Timeout time.Duration
	// Version is the version of the program, for the OpenAPI document.
	Version string
	// NoDocument leaves out the OpenAPI document. Writing it takes as long as a command may
	// take.
	NoDocument bool
	// Dev is true if the server is for development.
	Dev bool
	// Observe is called after every request. It may be nil.
	Observe func(route string, status int, took time.Duration)
	// OnError receives errors that are hidden from clients.
	OnError func(error)
}

// API serves the requests under /v1. It is an http.Handler.
type API struct {
	config   Config
	rt       *host.Runtime
	mux      *http.ServeMux
	handler  http.Handler
	document []byte

	hooks       *hook.Admin
	inspect     *inspect.Inspector
	tasks       *task.Admin
	alarms      *alarm.Alarms
	feed        *feed
	tails       *tails
	streams     context.Context // is cancelled to end all streams
	endStreams  context.CancelFunc
	inFlight    inFlight
	definitions definitions
	drawings    drawings
	quota       quota
	verdicts    verdicts
	routes      map[string]Route // by their ids
}

// New returns the API of an engine.
func New(c Config) (*API, error) {
	if c.Engine == nil || c.Auth == nil || c.lacks(c.Machines == nil, "definitions", "instances", "schedules") ||
		c.lacks(c.Alarms == nil, "alarms") || c.lacks(c.Actors == nil, "actors", "statecharts") {
		return nil, fault.Invalidf("Config", "must have Engine, Machines, Alarms, Actors and Auth")
	}
	if c.OnError == nil {
		c.OnError = func(err error) { slog.Error("request failed", "error", err) }
	}
	a := &API{config: c, rt: host.Of(c.Engine), mux: http.NewServeMux(), routes: map[string]Route{}}
	if err := a.open(); err != nil {
		return nil, err
	}
	for _, r := range Routes {
		a.routes[r.ID] = r
		a.serve(r)
	}
	if !c.NoDocument {
		if err := a.describe(); err != nil {
			return nil, err
		}
		a.mux.Handle("GET /openapi.json", auth.Require(c.Auth, Viewer, http.HandlerFunc(a.serveDocument)))
	}
	a.mux.HandleFunc("/v1/", a.unknown)
	a.handler = a.outermost(auth.Protect(a.mux, http.HandlerFunc(refuseForeign)))
	return a, nil
}

// lacks reports whether a part is absent although one of its resources is not missing.
func (c *Config) lacks(absent bool, resources ...string) bool {
	return absent && slices.ContainsFunc(resources, func(name string) bool { return c.Missing[name] == nil })
}

// refuseForeign refuses a request that changes something and comes from a page of another
// site.
func refuseForeign(w http.ResponseWriter, r *http.Request) {
	writeProblem(w, newProblem(http.StatusForbidden, codeForbidden, "requests from other sites are not allowed", requestOf(r.Context())))
}

// open creates the parts that the handlers read through.
func (a *API) open() (err error) {
	c := a.config
	a.inspect, a.alarms = inspect.New(c.Engine, c.Machines), c.Alarms
	a.feed = newFeed(a.rt.NewID(), a.watchChanges)
	a.tails = newTails(c.Engine.Outbox(), c.OnError)
	a.streams, a.endStreams = context.WithCancel(context.Background())
	if a.hooks, err = hook.NewAdmin(c.Engine); err != nil {
		return err
	}
	if c.Missing["tasks"] == nil {
		a.tasks, err = task.NewAdmin(c.Engine)
	}
	return err
}

// EndStreams ends all streams, so that their clients connect to another server.
func (a *API) EndStreams() { a.endStreams() }

// Close ends the streams and waits for their database readers. The caller must send no
// further requests, and no request may be in flight.
func (a *API) Close() {
	a.endStreams()
	a.tails.idle.Wait()
	a.feed.close()
}

// ServeHTTP implements http.Handler.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.handler.ServeHTTP(w, r) }

func (a *API) humaConfig() huma.Config {
	c := huma.DefaultConfig("Perdure", a.config.Version)
	c.OpenAPIPath, c.DocsPath, c.SchemasPath, c.CreateHooks = "", "", "", nil
	format := huma.Format{Marshal: huma.DefaultJSONFormat.Marshal, Unmarshal: a.unmarshal}
	c.Formats = map[string]huma.Format{"application/json": format, "json": format}
	c.Transformers = []huma.Transformer{a.problems, a.redact}
	c.RejectUnknownQueryParameters = true
	c.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		"token":   {Type: "http", Scheme: "bearer", Description: "API token with a role, or actor token."},
		"session": {Type: "apiKey", In: "cookie", Name: "perdure_session", Description: "Session of the dashboard."},
	}
	return c
}

// unmarshal refuses JSON that is nested too deeply, or that databases would change, before
// it decodes the JSON.
func (a *API) unmarshal(data []byte, v any) error {
	if err := edge.JSON("body", data, int(a.config.MaxBody)); err != nil {
		return err
	}
	return json.Unmarshal(data, v)
}

// outermost gives every request an id and recovers from panics of handlers.
func (a *API) outermost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		req := &request{id: a.rt.NewID(), method: r.Method, url: *r.URL}
		req.failure, _ = r.Context().Value(failureKey{}).(*Failure)
		w.Header().Set("X-Request-Id", req.id)
		w.Header().Set("Cache-Control", "no-store") // browsers must not revalidate ETags automatically
		joinLines(r.Header, "If-Match", "If-None-Match")
		answer := &watched{ResponseWriter: w}
		begun := a.rt.Clock.Now()
		defer func() {
			if p := recover(); p != nil {
				a.panicked(answer, req, p)
			}
			if a.config.Observe != nil {
				a.config.Observe(req.route, answer.status, a.rt.Clock.Now().Sub(begun))
			}
		}()
		// The limit applies to a copy of the request, so that the server still sees its own body
		// in the original. The server then waits briefly before it closes a connection whose body
		// was not read, so that the response arrives.
		r = r.WithContext(context.WithValue(r.Context(), requestKey{}, req))
		r.Body = http.MaxBytesReader(w, r.Body, a.config.MaxBody)
		next.ServeHTTP(answer, r)
	})
}

// joinLines joins each header field that is a list into one line.
func joinLines(h http.Header, names ...string) {
	for _, name := range names {
		if lines := h.Values(name); len(lines) > 1 {
			h.Set(name, strings.Join(lines, ", "))
		}
	}
}

func (a *API) panicked(w *watched, req *request, p any) {
	if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(p) // net/http expects this panic to abort a connection
	}
	a.report(req, fmt.Errorf("panic: %v", p))
	if w.status == 0 {
		writeProblem(w, newProblem(http.StatusInternalServerError, codeInternal, "request failed", req))
	}
}

// watched records the status of a response.
type watched struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements http.ResponseWriter. Only the first status counts. huma sets
// another status if the client disconnects while the body is written, and net/http would
// log that as a mistake.
func (w *watched) WriteHeader(status int) {
	if w.status != 0 {
		return
	}
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *watched) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap lets an http.ResponseController reach the connection.
func (w *watched) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// unknown answers requests that match no route.
func (a *API) unknown(w http.ResponseWriter, r *http.Request) {
	req := requestOf(r.Context())
	var allowed []string
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		probe := r.Clone(r.Context())
		probe.Method = method
		if _, pattern := a.mux.Handler(probe); pattern != "/v1/" {
			allowed = append(allowed, method)
		}
	}
	if len(allowed) == 0 {
		writeProblem(w, newProblem(http.StatusNotFound, codeNotFound, "route not found", req))
		return
	}
	for _, method := range allowed {
		w.Header().Add("Allow", method)
	}
	writeProblem(w, newProblem(http.StatusMethodNotAllowed, codeInvalid, "route does not support the method "+r.Method, req))
}
