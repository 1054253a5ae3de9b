// Package server is Perdure over HTTP: the API for programs in any language, the
// dashboard, and the workers behind them, as one http.Handler that a program
// mounts where it likes.
//
//	srv, err := server.New(eng, &server.Options{Definitions: []fsm.Definer{Order}})
//	…
//	err = srv.Start()
//	defer srv.Stop(ctx)
//	http.Handle("/perdure/", http.StripPrefix("/perdure", srv))
//
// A program that is nothing but a server takes HTTP, which has the time limits
// that an open port needs.
package server

import (
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/actor"
	"github.com/perdure/perdure/alarm"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/hook"
	"github.com/perdure/perdure/internal/api"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/egress"
	"github.com/perdure/perdure/internal/redact"
	"github.com/perdure/perdure/internal/site"
	"github.com/perdure/perdure/remote"
	"github.com/perdure/perdure/task"
	"github.com/perdure/perdure/ui"
)

// Role is a part of the work that a process can take.
type Role string

// The roles of a process.
const (
	// API answers requests under /v1.
	API Role = "api"
	// Worker runs due work.
	Worker Role = "worker"
	// UI serves the dashboard.
	UI Role = "ui"
)

// Options configure a Server. The zero value of every field is its default.
type Options struct {
	// Roles are what this process does. Default: everything.
	Roles []Role
	// Definitions are the state machines that this process runs. Default: none.
	Definitions []fsm.Definer
	// Machines configure how they are run. Default: see fsm.Options.
	Machines *fsm.Options
	// Hooks are the namespaces whose hooks this process runs, with their
	// handlers. Hooks are triggered over the API in these only. Default: none.
	Hooks []*hook.Hooks
	// Tasks runs the tasks. Default: this process runs none.
	Tasks *task.Worker
	// Alarms are the alarms with the handlers that this process has. Default:
	// alarms can be scheduled and looked at here, and are fired by others.
	Alarms *alarm.Alarms
	// Actors are the actors with the types that this process knows. Default: those
	// whose types are data only.
	Actors *actor.Actors
	// Processors are further kinds of work to drive. Default: none.
	Processors []dispatch.Processor
	// Auth says who sends a request. Default: the tokens and sessions of the
	// database; while there is no token, everybody on this machine is an
	// administrator.
	Auth Auth
	// Redact are rules that say what is taken out of payloads before they are
	// shown: JSON pointers (/card/number, /items/*/email, /a/**/b), names in any
	// depth (*password*), and common for names that are secret nearly everywhere.
	// Default: nothing is.
	Redact []string
	// Remote configures the state machines whose steps are HTTP endpoints.
	// Default: endpoints are at public addresses only.
	Remote *remote.Options
	// Dashboard serves what is not the API. Default: the one of package ui.
	Dashboard http.Handler
	// AuditRetention is how long entries of the audit log are kept; less than 0: without
	// limit. Default: 90 days.
	AuditRetention time.Duration
	// MaxBody is the largest body of a request in bytes. Default: 1 MiB.
	MaxBody int64
	// MaxStreams, MaxSockets and MaxRequests cap what one caller has open at the same
	// time in this process: streams of server-sent events and requests that wait,
	// WebSockets, and other requests. More are answered with 429. A caller is a token
	// with its sessions; programs on this machine without a token are one caller.
	// Negative: no cap. Defaults: 1,000, 1,000 and 256.
	MaxStreams, MaxSockets, MaxRequests int
	// RequestTimeout bounds a request that is not a stream. Default: 30 seconds.
	RequestTimeout time.Duration
	// Dev says that the server is for development: the dashboard then shows the
	// mailbox and the clock of package sample. Default: it is not.
	Dev bool
	// Version is that of the program. Default: "dev".
	Version string
	// Observe is told of every request that was answered, by the id of its route.
	// Default: nobody is.
	Observe func(route string, status int, took time.Duration)
	// OnError receives errors that have no caller, and those that a client is
	// told nothing of. Default: log them.
	OnError func(error)
}

// DefaultAuditRetention is how long entries of the audit log are kept.
const DefaultAuditRetention = 90 * 24 * time.Hour

// Server is Perdure over HTTP. It is safe for concurrent use.
type Server struct {
	eng      *perdure.Engine
	options  Options
	machines *fsm.Machines
	remote   *remote.Registry
	api      *api.API
	mux      *http.ServeMux
	workers  workers
}

// New returns a server of an engine. Nothing runs before Start.
func New(eng *perdure.Engine, options *Options) (*Server, error) {
	if eng == nil {
		return nil, fault.Invalidf("engine", "is nil")
	}
	o, err := options.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Server{eng: eng, options: o, mux: http.NewServeMux()}
	if s.machines, err = fsm.New(eng, o.Machines); err != nil {
		return nil, err
	}
	if err := s.machines.Register(o.Definitions...); err != nil {
		return nil, err
	}
	if err := s.openRemote(); err != nil {
		return nil, err
	}
	if err := s.open(); err != nil {
		return nil, err
	}
	config, err := s.apiConfig()
	if err != nil {
		return nil, err
	}
	if s.api, err = api.New(config); err != nil {
		return nil, err
	}
	s.mount()
	return s, nil
}

// webhookCheck returns the check of addresses of webhooks for a server whose alarms
// send none themselves: it allows what steps in other languages may reach.
func webhookCheck(o *remote.Options) (func(url string) error, error) {
	var allow []string
	if o != nil {
		allow = o.Allow
	}
	client, err := egress.New(&egress.Options{Allow: allow})
	if err != nil {
		return nil, err
	}
	return func(url string) error {
		_, err := client.CheckURL("webhook", url)
		return err
	}, nil
}

// open opens what the options leave out.
func (s *Server) open() (err error) {
	o := &s.options
	if o.Alarms == nil {
		check, err := webhookCheck(o.Remote)
		if err != nil {
			return err
		}
		if o.Alarms, err = alarm.New(s.eng, &alarm.Options{CheckWebhook: check, OnError: o.OnError}); err != nil {
			return err
		}
	}
	if o.Actors == nil {
		if o.Actors, err = actor.New(s.eng, &actor.Options{OnError: o.OnError}); err != nil {
			return err
		}
	}
	if o.Dashboard == nil {
		o.Dashboard, err = ui.Handler(nil)
	}
	return err
}

func (o *Options) withDefaults() (Options, error) {
	var options Options
	if o != nil {
		options = *o
	}
	if len(options.Roles) == 0 {
		options.Roles = []Role{API, Worker, UI}
	}
	for _, r := range options.Roles {
		if r != API && r != Worker && r != UI {
			return options, fault.Invalidf("Options.Roles", "has %q; api, worker and ui are possible", r)
		}
	}
	edge.Default(&options.MaxBody, 1<<20)
	edge.Default(&options.AuditRetention, DefaultAuditRetention)
	edge.Default(&options.RequestTimeout, 30*time.Second)
	edge.Default(&options.MaxStreams, 1000)
	edge.Default(&options.MaxSockets, 1000)
	edge.Default(&options.MaxRequests, 256)
	edge.Default(&options.Version, "dev")
	if options.MaxBody < 1 || options.RequestTimeout < 0 {
		return options, fault.Invalidf("Options", "has a negative limit")
	}
	if options.OnError == nil {
		options.OnError = func(err error) { slog.Error("serve", "error", err) }
	}
	return options, nil
}

// openRemote prepares the state machines of other languages, which a process
// without workers only stores.
func (s *Server) openRemote() (err error) {
	var o remote.Options
	if s.options.Remote != nil {
		o = *s.options.Remote
	}
	if o.OnError == nil {
		o.OnError = s.options.OnError
	}
	machines := s.machines
	if !s.has(Worker) {
		machines = nil
	}
	s.remote, err = remote.New(s.eng, machines, &o)
	return err
}

func (s *Server) apiConfig() (c api.Config, err error) {
	o := s.options
	rules, err := redact.New(o.Redact...)
	if err != nil {
		return c, err
	}
	c = api.Config{
		Engine: s.eng, Machines: s.machines, Hooks: map[string]*hook.Hooks{}, Alarms: o.Alarms, Actors: o.Actors, MaxBody: o.MaxBody, Timeout: o.RequestTimeout,
		Version: o.Version, Dev: o.Dev, Observe: o.Observe, OnError: o.OnError, Remote: s.remote, Redact: rules,
		Limits: api.Limits{Streams: o.MaxStreams, Sockets: o.MaxSockets, Requests: o.MaxRequests},
	}
	if _, missing := task.NewAdmin(s.eng); missing != nil {
		c.Missing = map[string]error{"tasks": missing, "processes": missing}
	}
	c.Auth, c.Access, err = access(s.eng, o.Auth)
	for _, h := range o.Hooks {
		c.Hooks[h.Namespace()] = h
	}
	return c, err
}

// mount puts together what this process serves.
func (s *Server) mount() {
	if s.has(API) {
		s.mux.Handle("/v1/", s.api)
		s.mux.Handle("/openapi.json", s.api)
	}
	if s.has(UI) {
		s.mux.Handle("/docs/", http.StripPrefix("/docs", site.Handler()))
	}
	if s.has(UI) {
		s.mux.Handle("/", auth.Protect(s.options.Dashboard, nil))
	}
}

func (s *Server) has(r Role) bool { return slices.Contains(s.options.Roles, r) }

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// Machines returns the state machines of the server.
func (s *Server) Machines() *fsm.Machines { return s.machines }

// OpenAPI returns the OpenAPI document of the API.
func (s *Server) OpenAPI() []byte { return s.api.Document() }
