package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/perdure/perdure/internal/auth"
)

// The time limits of connections to the metrics server.
const (
	metricsRead  = 5 * time.Second
	metricsWrite = 30 * time.Second
	metricsIdle  = 2 * time.Minute
)

// metricsServer serves /metrics on its own address. A nil metricsServer does nothing.
type metricsServer struct {
	listener net.Listener
	http     *http.Server
}

// listenMetrics listens on an address. It returns nil for "".
func listenMetrics(ctx context.Context, address string, exporter http.Handler) (*metricsServer, error) {
	if address == "" {
		return nil, nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen for metrics on %s: %w", address, err)
	}
	if auth.Loopback(address) {
		exporter = auth.LocalHost(exporter)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", auth.Protect(exporter, nil))
	return &metricsServer{listener: listener, http: &http.Server{
		Handler: mux, ReadHeaderTimeout: metricsRead, ReadTimeout: metricsRead, WriteTimeout: metricsWrite, IdleTimeout: metricsIdle,
		ErrorLog: slog.NewLogLogger(slog.Default().Handler(), slog.LevelDebug),
	}}, nil
}

func (m *metricsServer) start() {
	if m == nil {
		return
	}
	go func() {
		if err := m.http.Serve(m.listener); !errors.Is(err, http.ErrServerClosed) {
			slog.Error("metrics server stopped", "error", err)
		}
	}()
}

func (m *metricsServer) close() error {
	if m == nil {
		return nil
	}
	return errors.Join(m.http.Close(), ignoreClosed(m.listener.Close()))
}

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// MetricsURL returns the URL of the metrics server without credentials, or "" if there is
// none.
func (n *Node) MetricsURL() string {
	if n.metrics == nil {
		return ""
	}
	return "http://" + n.metrics.listener.Addr().String() + "/metrics"
}
