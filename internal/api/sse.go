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
	// heartbeat is the interval at which an idle stream sends a heartbeat.
	heartbeat = 15 * time.Second
	// writePatience is the time limit for a client to read a message. A client that exceeds it
	// is taken for dead.
	writePatience = 10 * time.Second
	// reconnect is the delay after which a client reconnects when a stream has ended.
	reconnect = 2 * time.Second
)

// events is an open stream of server-sent events. One goroutine writes to it.
type events struct {
	w  http.ResponseWriter
	rc *http.ResponseController
}

// stream sends events until fn returns, the client disconnects, the server closes its
// streams, or the credential of the request no longer suffices. In the last case the last
// event is "closed", with a problem.
func (a *API) stream(fn func(ctx context.Context, e *events) error) *huma.StreamResponse {
	return &huma.StreamResponse{Body: func(hctx huma.Context) {
		r, w := humago.Unwrap(hctx)
		route, _ := hctx.Operation().Metadata["route"].(Route)
		ctx, _, stop := a.guard(hctx.Context(), r, route)
		defer stop()
		h := w.Header()
		h.Set("Content-Type", "text/event-stream")
		h.Set("Cache-Control", "no-store")
		h.Set("X-Accel-Buffering", "no") // nginx would buffer events
		w.WriteHeader(http.StatusOK)
		e := &events{w: w, rc: http.NewResponseController(w)}
		if e.write(fmt.Appendf(nil, "retry: %d\n\n", reconnect.Milliseconds())) == nil {
			_ = fn(ctx, e) // the client has disconnected
		}
		var why *excludedError
		if errors.As(context.Cause(ctx), &why) {
			_ = e.send("", "closed", a.problem(requestOf(r.Context()), why.err))
		}
	}}
}

// send sends an event. Neither id nor event may contain a line feed.
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

// beat sends a heartbeat.
func (e *events) beat() error { return e.write([]byte(":\n\n")) }

func (e *events) write(text []byte) error {
	// A connection without deadlines, as in tests, has no limit.
	_ = e.rc.SetWriteDeadline(clock.System.Now().Add(writePatience))
	if _, err := e.w.Write(text); err != nil {
		return err
	}
	return e.rc.Flush()
}

// each calls next, and calls it again after every wake-up and after every heartbeat, which
// it sends while there is no wake-up. A wake-up is a hint that next may have something to
// send.
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
