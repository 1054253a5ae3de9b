package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/perdure/perdure/internal/clock"
)

const (
	// heartbeat is how often a stream that has nothing to say shows that it lives.
	heartbeat = 15 * time.Second
	// writePatience is how long a client may take to read what it is sent. Then it
	// is taken for dead.
	writePatience = 10 * time.Second
	// reconnect is when a client shall come back after a stream has ended.
	reconnect = 2 * time.Second
)

// events is an open stream of server-sent events. One goroutine writes to it.
type events struct {
	w  http.ResponseWriter
	rc *http.ResponseController
}

// stream answers with events until fn returns, the client has gone, the server closes
// its streams, or the credential of the request no longer suffices. In the last case the
// last event is "closed", with a problem.
func (a *API) stream(fn func(ctx context.Context, e *events) error) *huma.StreamResponse {
	return &huma.StreamResponse{Body: func(hctx huma.Context) {
		r, w := humago.Unwrap(hctx)
		route, _ := hctx.Operation().Metadata["route"].(Route)
		ctx, _, stop := a.guard(hctx.Context(), r, route)
		defer stop()
		h := w.Header()
		h.Set("Content-Type", "text/event-stream")
		h.Set("Cache-Control", "no-store")
		h.Set("X-Accel-Buffering", "no") // nginx would wait for more
		w.WriteHeader(http.StatusOK)
		e := &events{w: w, rc: http.NewResponseController(w)}
		if e.write(fmt.Appendf(nil, "retry: %d\n\n", reconnect.Milliseconds())) == nil {
			_ = fn(ctx, e) // the client has gone
		}
		var why *excludedError
		if errors.As(context.Cause(ctx), &why) {
			_ = e.send("", "closed", a.problem(requestOf(r.Context()), why.err))
		}
	}}
}

// send sends an event. Neither id nor event may have a line feed.
func (e *events) send(id, event string, data any) error {
	raw, err := json.Marshal(data)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if id != "" {
		fmt.Fprintf(&b, "id: %s\n", id)
	}
	if event != "" {
		fmt.Fprintf(&b, "event: %s\n", event)
	}
	fmt.Fprintf(&b, "data: %s\n\n", raw)
	return e.write(b.Bytes())
}

// beat shows that the stream lives.
func (e *events) beat() error { return e.write([]byte(":\n\n")) }

func (e *events) write(text []byte) error {
	// A connection without deadlines, as in tests, is not bounded.
	_ = e.rc.SetWriteDeadline(clock.System.Now().Add(writePatience))
	if _, err := e.w.Write(text); err != nil {
		return err
	}
	return e.rc.Flush()
}

// each sends what next returns, and heartbeats while it has nothing. wake tells that
// there may be something.
func (e *events) each(ctx context.Context, wake <-chan struct{}, next func() error) error {
	for {
		if err := next(); err != nil {
			return err
		}
		timer := clock.System.NewTimer(heartbeat)
		select {
		case <-wake:
		case <-timer.C():
			if err := e.beat(); err != nil {
				return err
			}
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
		timer.Stop()
	}
}
