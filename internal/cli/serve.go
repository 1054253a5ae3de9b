package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/hook"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/logging"
	"github.com/perdure/perdure/internal/node"
	"github.com/perdure/perdure/internal/sample"
	"github.com/perdure/perdure/internal/telemetry"
	"github.com/perdure/perdure/internal/telemetry/otlp"
	"github.com/perdure/perdure/schema"
	"github.com/perdure/perdure/server"
	"github.com/perdure/perdure/task"
)

// serving has the flags of commands that serve.
type serving struct {
	listen, cert, key string
	metrics           string
	insecure          bool
	drain, grace      time.Duration
	roles             []string
	migrate           bool
	samples           bool
	lease             time.Duration
	queues            map[string]int
	level             string
	senders           senders
	guards            guards
}

func (s *serving) add(flags *pflag.FlagSet) {
	flags.StringVar(&s.listen, "listen", "127.0.0.1:7070", "address to serve")
	flags.StringVar(&s.metrics, "metrics-listen", "", "address that serves only /metrics, without an API token (default: --listen serves /metrics, with an API token)")
	flags.StringVar(&s.cert, "tls-cert", "", "file with the certificate for TLS")
	flags.StringVar(&s.key, "tls-key", "", "file with the key of the certificate")
	flags.BoolVar(&s.insecure, "insecure", false, "allow a non-loopback address without API tokens")
	flags.DurationVar(&s.drain, "drain-timeout", 25*time.Second, "maximum time that running work may take to finish after the first signal")
	flags.DurationVar(&s.grace, "drain-grace", 10*time.Second, "maximum time to wait until load balancers that poll /readyz have noticed the drain, within --drain-timeout; 0: do not wait")
	flags.StringVar(&s.level, "log-level", "info", "lowest level to log: one of debug, info, warn, error")
	s.senders.add(flags)
	s.guards.add(flags)
}

func (a *app) serve() *cobra.Command {
	var s serving
	cmd := &cobra.Command{
		Use: "serve", Short: "Serve the HTTP API and the dashboard, and run due work", Args: cobra.NoArgs,
		Long: "Serves the HTTP API, the dashboard, health checks and metrics on one address, and runs due\n" +
			"work. Any number of processes can serve one database; they share the work.\n\n" +
			"The first SIGTERM or SIGINT drains: the process stops claiming and waits for running\n" +
			"work for up to --drain-timeout. /readyz responds with 503 then. The listener stays open\n" +
			"until load balancers that poll /readyz have noticed that, for up to --drain-grace. The\n" +
			"second signal ends the process immediately. Other processes run its work when its\n" +
			"leases expire.\n\n" +
			"SIGHUP reloads files without interruption: the certificate and its key, the secrets of\n" +
			"webhooks, and the log level if a file sets it.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			dsn, err := a.database()
			if err != nil {
				return err
			}
			return a.runServe(cmd.Context(), dsn, &s, nil)
		},
	}
	flags := cmd.Flags()
	s.add(flags)
	flags.StringSliceVar(&s.roles, "roles", []string{"api", "worker", "ui"}, "roles of this process: any of api, worker, ui")
	flags.BoolVar(&s.migrate, "auto-migrate", true, "migrate Perdure's own tables at startup")
	flags.DurationVar(&s.lease, "lease", 30*time.Second, "time for which a claim is valid without a heartbeat; at least 1s")
	flags.StringToIntVar(&s.queues, "queue", nil, "queues to serve, each with the number of instances that run at the same time, for example mail=20 (default: default=100, and the queues of stored definitions)")
	flags.BoolVar(&s.samples, "samples", false, "run the work of the sample shop, see perdure dev")
	return cmd
}

// runServe serves until the context is cancelled. d is set by dev.
func (a *app) runServe(ctx context.Context, dsn string, s *serving, d *devRun) (err error) {
	if err := s.validate(); err != nil {
		return err
	}
	if err := a.startLog(s, d); err != nil {
		return err
	}
	stopTraces, err := otlp.Start(ctx, a.env, readBuild().Version)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stopTraces(context.WithoutCancel(ctx))) }()
	if err := makeDirectory(dsn); err != nil {
		return err
	}
	p := &process{app: a, flags: s, tables: sample.NewTables(), dev: d}
	options := p.engineOptions()
	if options.Keys, err = a.ring(); err != nil {
		return err
	}
	if p.eng, err = perdure.Open(ctx, dsn, options); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.eng.Close()) }()
	return p.run(ctx, dsn)
}

func (s *serving) validate() error {
	switch {
	case (s.cert == "") != (s.key == ""):
		return usagef("--tls-cert and --tls-key must be set together")
	case s.lease < time.Second:
		return usagef("--lease must be at least 1s, got %v", s.lease)
	case s.drain < 0:
		return usagef("--drain-timeout must not be negative, got %v", s.drain)
	case s.grace < 0:
		return usagef("--drain-grace must not be negative, got %v", s.grace)
	}
	for _, r := range s.roles {
		switch server.Role(r) {
		case server.API, server.Worker, server.UI:
		default:
			return usagef("--roles must be any of api, worker, ui, got %q", r)
		}
	}
	return nil
}

// startLog makes the program's logger the default for all its packages. A test that runs a
// command shares its process with other tests, and gets no logs.
func (a *app) startLog(s *serving, d *devRun) error {
	var level slog.Level
	if err := level.UnmarshalText([]byte(s.level)); err != nil {
		return usagef("--log-level must be one of debug, info, warn, error, got %q", s.level)
	}
	if _, ok := a.err.(*os.File); !ok {
		return nil
	}
	out := a.err
	if d != nil && d.screen.terminal {
		out = d.screen
	}
	slog.SetDefault(logging.New(out, logging.Options{
		Level: level, People: isTerminal(a.err) && !a.json, Color: a.colorful(), Secrets: a.secrets(),
	}))
	return nil
}

// process is a run of serve or dev.
type process struct {
	*app
	flags  *serving
	tables *sample.Tables
	eng    *perdure.Engine
	shop   *sample.Shop
	dev    *devRun
}

func (p *process) engineOptions() *perdure.Options {
	o := &perdure.Options{NoMigrate: !p.flags.migrate}
	if p.flags.samples {
		o.Schemas, o.Outbox = []*schema.Schema{p.tables.Schema}, true
	}
	if p.dev != nil {
		o.Clock = p.dev.warp
	}
	return o
}

func (p *process) run(ctx context.Context, dsn string) error {
	options, err := p.nodeOptions()
	if err != nil {
		return err
	}
	n, err := node.New(ctx, p.eng, options)
	if err != nil {
		return err
	}
	if p.dev != nil {
		return p.dev.run(ctx, p, n)
	}
	stop := onHangup(ctx, func() { p.reload(n) })
	defer stop()
	fmt.Fprintf(p.err, "perdure: serving %s on %s\n", strings.Join(p.flags.roles, ", "), n.URL())
	slog.Info("serving", "url", n.URL(), "roles", p.flags.roles, "database", redacted(dsn))
	return n.Run(ctx)
}

func (p *process) nodeOptions() (node.Options, error) {
	s, b := p.flags, readBuild()
	o := node.Options{
		Listen: s.listen, TLSCert: s.cert, TLSKey: s.key, Insecure: s.insecure, DrainTimeout: s.drain, DrainGrace: cmp.Or(s.grace, -1), MetricsListen: s.metrics,
		Version: b, Build: telemetry.Build{Version: b.Version, Revision: b.Revision}, Notify: node.NewNotifier(p.env),
		Routes: map[string]http.Handler{},
	}
	for _, r := range s.roles {
		o.Server.Roles = append(o.Server.Roles, server.Role(r))
	}
	workers := task.Options{Lease: s.lease}
	o.Server.Machines = &fsm.Options{Lease: s.lease, Queues: s.served()}
	var err error
	if workers.Senders, err = s.senders.make(p.app); err != nil {
		return o, err
	}
	if s.samples {
		if err := p.openShop(&o); err != nil {
			return o, err
		}
		workers.Senders = p.shop.Senders()
	}
	if p.dev != nil && auth.Loopback(s.listen) { // endpoints of remote steps run on the same host
		s.guards.allow = append(s.guards.allow, "127.0.0.0/8", "::1", "localhost")
	}
	if err := s.guards.apply(p.app, p.eng, &o.Server); err != nil {
		return o, err
	}
	if _, missing := task.NewAdmin(p.eng); missing != nil && !s.samples && s.senders.filesOnly() {
		return o, nil // a database without tasks, and no sender was named
	}
	o.Server.Tasks, err = task.NewWorker(p.eng, &workers)
	return o, err
}

// served returns the queues that the process serves from its start.
func (s *serving) served() map[string]int {
	queues := map[string]int{fsm.DefaultQueue: fsm.DefaultConcurrency}
	maps.Copy(queues, s.queues)
	return queues
}

// openShop makes the process run the work of the samples.
func (p *process) openShop(o *node.Options) (err error) {
	options := sample.Options{Lease: p.flags.lease, Sent: p.flags.senders.dir, OnError: func(err error) { slog.Error("sample", "error", err) }}
	if p.dev != nil {
		options.Every, options.Sent = p.dev.every, p.dev.sent
	}
	if p.shop, err = sample.New(p.eng, p.tables, options); err != nil {
		return err
	}
	o.Server.Definitions = p.shop.Definitions()
	o.Server.Hooks = []*hook.Hooks{p.shop.Hooks()}
	o.Server.Actors, o.Server.Alarms = p.shop.Actors(), p.shop.Alarms()
	if p.dev != nil {
		p.dev.control = sample.NewControl(p.eng, p.dev.warp)
		o.Routes = sample.Routes(p.dev.control, p.shop.Mailbox())
		o.Server.Dev = true
	}
	return nil
}

func (a *app) healthcheck() *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use: "healthcheck", Short: "Check whether a server is ready, for containers", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			c, err := a.client(defaultServer)
			if err != nil {
				return err
			}
			report, err := c.text(ctx, "/readyz?verbose")
			if err != nil {
				return err
			}
			_, err = fmt.Fprint(a.out, report)
			return err
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", 5*time.Second, "maximum time for the response")
	return cmd
}

// wait waits for d in real time, or until ctx is done. It reports whether d has passed.
func wait(ctx context.Context, d time.Duration) bool {
	timer := clock.System.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
		return true
	case <-ctx.Done():
		return false
	}
}
