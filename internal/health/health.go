// Package health reports whether a process is alive, and whether it is ready for work.
//
// Its responses need no authentication, so they contain only names and "ok". The cause of a
// failure is logged. The database is queried at most once a second, regardless of the
// number of requests.
package health

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/sqldb"
)

const (
	// fresh is the time for which a result of the checks is reused.
	fresh = time.Second
	// patience is the time limit for the checks.
	patience = 3 * time.Second
)

// Check is one condition for readiness.
type Check struct {
	Name string
	Run  func(context.Context) error
}

// Health reports the health of one process.
type Health struct {
	rt       *host.Runtime
	version  any
	checks   []Check
	draining atomic.Bool
	watchers watchers

	mu      sync.Mutex
	checked time.Time
	results []result
	writing write
}

type result struct {
	name string
	err  error
}

// New returns the health of an engine. It is ready if the database responds, has all
// migrations of this release and accepts writes, and the given checks succeed. version is the content of /version, as JSON.
func New(eng *perdure.Engine, version any, checks ...Check) *Health {
	h := &Health{rt: host.Of(eng), version: version}
	h.checks = append([]Check{{"database", h.ping}, {"migrations", h.migrated}, {"writes", h.write}}, checks...)
	return h
}

// Drain makes the process not ready from now on. So it receives no new requests while it
// finishes its running ones.
func (h *Health) Drain() { h.draining.Store(true) }

// Mount serves /livez, /readyz and /healthz, for all callers.
func (h *Health) Mount(mux *http.ServeMux) {
	mux.HandleFunc("GET /livez", h.live)
	mux.HandleFunc("GET /readyz", h.ready)
	mux.HandleFunc("GET /healthz", h.ready)
}

func (h *Health) ping(ctx context.Context) error {
	return h.read(ctx, func(sqldb.Tx) error { return nil })
}

// migrated accepts a database that a later release has migrated: during a rolling upgrade
// the old processes serve until they are replaced.
func (h *Health) migrated(ctx context.Context) error {
	return h.read(ctx, func(tx sqldb.Tx) error {
		missing, err := h.rt.Store.Missing(ctx, tx)
		if err == nil && missing > 0 {
			err = fmt.Errorf("%d migrations are pending", missing)
		}
		return err
	})
}

// read runs fn in a transaction after a query has reached the database.
func (h *Health) read(ctx context.Context, fn func(sqldb.Tx) error) error {
	tx, err := h.rt.DB.Begin(ctx, sqldb.Read)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := tx.Run(ctx, sqldb.Stmt{SQL: "select 1", Row: func(sqldb.Scan) error { return nil }}); err != nil {
		return err
	}
	return fn(tx)
}

// Ready runs the checks and returns the failures.
func (h *Health) Ready(ctx context.Context) error {
	var errs []error
	for _, r := range h.run(ctx) {
		if r.err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", r.name, r.err))
		}
	}
	return errors.Join(errs...)
}

var errDraining = errors.New("the process is draining")

func (h *Health) run(ctx context.Context) []result {
	h.mu.Lock()
	defer h.mu.Unlock()
	if now := h.rt.Clock.Now(); h.checked.IsZero() || now.Sub(h.checked) >= fresh {
		h.checked, h.results = now, nil
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience) // the result is shared with other requests
		defer cancel()
		for _, c := range h.checks {
			r := result{c.Name, c.Run(ctx)}
			if r.err != nil {
				slog.Warn("readiness check failed", "check", r.name, "error", r.err)
			}
			h.results = append(h.results, r)
		}
	}
	drain := result{name: "not draining"}
	if h.draining.Load() {
		drain.err = errDraining
	}
	return append([]result{drain}, h.results...)
}

func (h *Health) live(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, "ok\n") }

func (h *Health) ready(w http.ResponseWriter, r *http.Request) {
	h.watchers.poll(r, h.draining.Load())
	var report strings.Builder
	status, word := http.StatusOK, "ok"
	for _, r := range h.run(r.Context()) {
		mark := "ok"
		if r.err != nil {
			mark, status, word = "failed", http.StatusServiceUnavailable, "not ready"
		}
		fmt.Fprintf(&report, "%s: %s\n", r.name, mark)
	}
	if r.URL.Query().Has("verbose") {
		answer(w, status, report.String()+word+"\n")
		return
	}
	answer(w, status, word+"\n")
}

func answer(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text)) // the client may have disconnected
}

// ServeVersion responds with the version.
func (h *Health) ServeVersion(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(h.version) // the client may have disconnected
}
