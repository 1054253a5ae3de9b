// Package server serves Perdure over HTTP: the API for programs in any language, the
// dashboard, and the workers behind them. A Server is one http.Handler, which a program
// mounts at any path.
//
//	srv, err := server.New(eng, &server.Options{Definitions: []fsm.Definer{Order}})
//	…
//	err = srv.Start()
//	defer srv.Stop(ctx)
//	http.Handle("/perdure/", http.StripPrefix("/perdure", srv))
//
// A program that is only a server uses HTTP, which sets the time limits that an open port
// needs.
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
	"github.com/perdure/perdure/internal/pull"
	"github.com/perdure/perdure/internal/redact"
	"github.com/perdure/perdure/internal/site"
	"github.com/perdure/perdure/remote"
	"github.com/perdure/perdure/task"
	"github.com/perdure/perdure/ui"
)

// Role is a part of the server that a process can run.
type Role string

// The roles of a process.
const (
	// API serves the requests under /v1.
	API Role = "api"
	// Worker runs due work.
	Worker Role = "worker"
	// UI serves the dashboard.
	UI Role = "ui"
)

// Options configure a Server. The zero value of every field is its default.
type Options struct {
	// Roles are the roles of this process. Default: all roles.
	Roles []Role
	// Definitions are the state machines that this process runs. Default: none.
	Definitions []fsm.Definer
	// Machines configures how this process runs state machines. Default: see fsm.Options.
	Machines *fsm.Options
	// Hooks are the namespaces whose hooks this process runs, with their handlers. The API
	// triggers hooks only in these namespaces. Default: none.
	Hooks []*hook.Hooks
	// Tasks runs the tasks. Default: this process runs none.
	Tasks *task.Worker
	// Alarms are the alarms with the handlers of this process. Default: this process can
	// schedule and list alarms, and other processes fire them.
	Alarms *alarm.Alarms
	// Actors are the actors with the types that this process knows. Default: only actors whose
	// statecharts are stored.
	Actors *actor.Actors
	// Processors are additional kinds of work to run. Default: none.
	Processors []dispatch.Processor
	// Auth authenticates the sender of a request. Default: the API tokens and sessions of the
	// database. As long as there is no token, every client on this host is an administrator.
	Auth Auth
	// Redact are the rules for values that are removed from payloads before they are shown. A
	// rule is a JSON pointer (/card/number, /items/*/email, /a/**/b), a name at any depth
	// (*password*), or common, for names that are secret nearly everywhere. Default: no rules.
	Redact []string
	// Remote configures the state machines whose steps are HTTP endpoints. Default: only
	// endpoints at public addresses are allowed.
	Remote *remote.Options
	// Dashboard serves all requests outside the API. Default: the dashboard of package ui.
	Dashboard http.Handler
	// AuditRetention is the time for which entries of the audit log are kept. A negative value
	// keeps them without limit. Default: 90 days.
	AuditRetention time.Duration
	// MaxBody is the largest body of a request in bytes. Default: 1 MiB.
	MaxBody int64
	// MaxStreams, MaxSockets and MaxRequests cap what one caller has open concurrently in this
	// process. MaxStreams counts streams of server-sent events and requests that wait,
	// MaxSockets counts WebSockets, and MaxRequests counts other requests. Further requests
	// fail with status 429. A caller is a token with its sessions. Programs on this host
	// without a token are one caller. A negative value is no cap. Defaults: 1,000, 1,000 and
	// 256.
	MaxStreams, MaxSockets, MaxRequests int
	// RequestTimeout bounds a request that is not a stream. Default: 30 seconds.
	RequestTimeout time.Duration
	// Dev enables development mode: the dashboard then shows the mailbox and the clock of
	// package sample. Default: false.
	Dev bool
	// Version is the version of the program. Default: "dev".
	Version string
	// Observe is called after every request, with the id of its route. Default: not called.
	Observe func(route string, status int, took time.Duration)
	// OnError receives background errors and errors that are hidden from clients. Default: log
	// them.
	OnError func(error)
}

// DefaultAuditRetention is the default of Options.AuditRetention.
const DefaultAuditRetention = 90 * 24 * time.Hour

// Server serves Perdure over HTTP. It is safe for concurrent use.
type Server struct {
	eng      *perdure.Engine
	options  Options
	machines *fsm.Machines
	remote   *remote.Registry
	pull     *pull.Broker
	api      *api.API
	mux      *http.ServeMux
	workers  workers
}

// New returns a server of an engine. No work runs before Start.
func New(eng *perdure.Engine, options *Options) (*Server, error) {
	if eng == nil {
		return nil, fault.Invalidf("engine", "must not be nil")
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
	if s.has(Worker) {
		s.pull = pull.New(eng, pull.Options{Machines: s.options.Machines, SweepHooks: len(s.options.Hooks) == 0, OnError: s.options.OnError})
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

// webhookCheck returns the check of webhook addresses for a server without Options.Alarms.
// It allows the addresses that remote steps may reach.
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

// open creates the parts that the options leave out.
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
			return options, fault.Invalidf("Options.Roles", "must be api, worker or ui, got %q", r)
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
		return options, fault.Invalidf("Options", "limits must be positive, got MaxBody %d and RequestTimeout %v", options.MaxBody, options.RequestTimeout)
	}
	if options.OnError == nil {
		options.OnError = func(err error) { slog.Error("serve", "error", err) }
	}
	return options, nil
}

// openRemote prepares the state machines with remote steps. A process without workers only
// stores them.
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
		Version: o.Version, Dev: o.Dev, Observe: o.Observe, OnError: o.OnError, Remote: s.remote, Workers: s.pull, Redact: rules,
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

// mount registers the handlers of this process's roles.
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
