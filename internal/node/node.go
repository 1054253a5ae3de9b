// Package node is one process that runs Perdure, from the start to the end of the drain. It
// serves the server with its workers, health, metrics and traces on one address.
package node

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/health"
	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/telemetry"
	"github.com/perdure/perdure/server"
	"github.com/perdure/perdure/ui"
)

// Options configure a Node. The zero value of every field is its default.
type Options struct {
	// Listen is the address to serve. Default: "127.0.0.1:7070".
	Listen string
	// TLSCert and TLSKey are the files of a certificate and its key.
	// Default: no TLS.
	TLSCert, TLSKey string
	// Insecure allows an address that other hosts can reach without any API token configured.
	// Default: false.
	Insecure bool
	// DrainTimeout is the time limit for running work after ctx is cancelled. Default: 25
	// seconds.
	DrainTimeout time.Duration
	// DrainGrace is the longest time for which a drain waits for load balancers before it
	// closes the listener. A load balancer is an address that polls /readyz or /healthz;
	// three failed polls tell it to send no further requests. Negative: do not wait. Default: 10 seconds, within DrainTimeout.
	DrainGrace time.Duration
	// Server configures the server: its roles and its work.
	Server server.Options
	// MetricsListen is an address that serves only /metrics, without credentials. If it is a
	// loopback address, requests must name it as their host. Default: none; /metrics is served
	// on the main address and needs the role of a viewer.
	MetricsListen string
	// Routes are additional paths to serve, by pattern, by the rules of the API. GET needs the
	// role of a viewer, other methods need the role of an operator. Default: none.
	Routes map[string]http.Handler
	// Version is the content of /version, as JSON. Build is the same for metrics.
	Version any
	Build   telemetry.Build
	// Notify notifies systemd. Default: no notifications.
	Notify *Notifier
}

// Node is a process that is ready to serve. Call Close if it is not run.
type Node struct {
	eng      *perdure.Engine
	options  Options
	listener net.Listener
	server   *server.Server
	health   *health.Health
	exporter *telemetry.Exporter
	http     *http.Server
	metrics  *metricsServer // nil if there is none
	// certificate is the certificate that was read last.
	certificate atomic.Pointer[tls.Certificate]
}

// New listens on the address, and returns a node that serves when it is run.
func New(ctx context.Context, eng *perdure.Engine, options Options) (*Node, error) {
	edge.Default(&options.Listen, "127.0.0.1:7070")
	edge.Default(&options.DrainTimeout, 25*time.Second)
	edge.Default(&options.DrainGrace, 10*time.Second)
	n := &Node{eng: eng, options: options}
	if err := n.admit(ctx); err != nil {
		return nil, err
	}
	if err := n.Reload(); err != nil {
		return nil, err
	}
	if err := n.assemble(); err != nil {
		return nil, err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", options.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", options.Listen, err)
	}
	n.listener = listener
	if n.metrics, err = listenMetrics(ctx, options.MetricsListen, n.exporter); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return n, nil
}

// admit sets up authentication, and refuses an address that other hosts can reach while
// there is no API token.
func (n *Node) admit(ctx context.Context) error {
	open := auth.Loopback(n.options.Listen) || n.options.Insecure
	access, err := auth.New(n.eng, &auth.Options{Open: open, SecureCookies: n.options.TLSCert != ""})
	if err != nil {
		return err
	}
	if !n.options.Insecure {
		if err := access.CheckListen(ctx, n.options.Listen); err != nil {
			return err
		}
	}
	if n.options.Server.Auth == nil {
		n.options.Server.Auth = access
	}
	return nil
}

// assemble creates the parts of the process.
func (n *Node) assemble() error {
	dashboard, err := ui.Handler(&ui.Options{})
	if err != nil {
		return err
	}
	n.exporter = telemetry.New(n.eng, n.options.Build)
	o := n.options.Server
	o.Version, o.Dashboard = n.options.Build.Version, dashboard
	o.Observe = n.exporter.Observe
	if n.server, err = server.New(n.eng, &o); err != nil {
		return err
	}
	n.health = health.New(n.eng, n.options.Version)
	mux := http.NewServeMux()
	n.health.Mount(mux)
	access := n.options.Server.Auth
	mux.Handle("GET /metrics", auth.Require(access, auth.Viewer, n.exporter))
	mux.Handle("GET /version", auth.Require(access, auth.Viewer, http.HandlerFunc(n.health.ServeVersion)))
	for pattern, handler := range n.options.Routes {
		role := auth.Operator
		if strings.HasPrefix(pattern, "GET ") {
			role = auth.Viewer
		}
		mux.Handle(pattern, auth.Require(access, role, handler))
	}
	mux.Handle("/", host.Of(n.eng).Tracer.Serve(n.server))
	n.http = n.server.HTTP()
	n.http.Handler = n.leaving(mux)
	return nil
}

// URL returns the URL of the node.
func (n *Node) URL() string {
	scheme := "http"
	if n.options.TLSCert != "" {
		scheme = "https"
	}
	host, port, err := net.SplitHostPort(n.listener.Addr().String())
	if ip := net.ParseIP(host); err == nil && ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	return scheme + "://" + net.JoinHostPort(host, port)
}

// Server returns the server of the node.
func (n *Node) Server() *server.Server { return n.server }

// Close closes a node that is not run.
func (n *Node) Close() error { return errors.Join(n.listener.Close(), n.metrics.close()) }

// Run serves until ctx is done, then drains: the node is no longer ready, claims no work,
// and finishes running work within DrainTimeout.
func (n *Node) Run(ctx context.Context) error {
	served := make(chan error, 1)
	go func() { served <- n.serve() }()
	n.metrics.start()
	defer func() { _ = n.metrics.close() }()
	if err := n.server.Start(); err != nil { //nolint:contextcheck // the goroutines end with Stop
		return errors.Join(err, n.http.Close(), <-served)
	}
	n.options.Notify.Ready()
	stop := n.options.Notify.Watch(context.WithoutCancel(ctx), n.health.Ready) // also while it drains
	defer stop()
	select {
	case err := <-served: // without a request to stop
		return errors.Join(err, n.drain(ctx))
	case <-ctx.Done():
	}
	err := n.drain(ctx)
	return errors.Join(err, <-served)
}

func (n *Node) serve() error {
	var err error
	if n.options.TLSCert != "" {
		n.http.TLSConfig = n.tls()
		err = n.http.ServeTLS(n.listener, "", "")
	} else {
		err = n.http.Serve(n.listener)
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serve: %w", err)
}

// leaving asks clients to close their connections while the node drains, so that no idle
// connection is left when the listener is closed.
func (n *Node) leaving(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n.health.Draining() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// drain stops the workers first. Until they have stopped and load balancers have noticed
// that the node is not ready, the node serves requests: a refused connection is a lost
// request.
func (n *Node) drain(ctx context.Context) error {
	n.health.Drain()
	n.options.Notify.Stopping()
	slog.Info("drain started", "timeout", n.options.DrainTimeout.String())
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), n.options.DrainTimeout)
	defer cancel()
	announced := make(chan struct{})
	go func() {
		defer close(announced)
		n.health.Announced(ctx, n.options.DrainGrace)
	}()
	err := n.server.Stop(ctx)
	if err != nil {
		slog.Warn("drain incomplete; leases will expire", "error", err)
	}
	<-announced
	if err := n.http.Shutdown(ctx); err != nil { // streams do not end automatically
		_ = n.http.Close()
	}
	slog.Info("drain completed")
	return nil
}
