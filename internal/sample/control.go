package sample

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/host"
)

const (
	// stride is how far time is moved at once: less than a lease, so that what
	// runs keeps it, and what falls due on the way is done in its order.
	stride = Lease / 4
	// breath is how long the work gets for each stride, by the machine's clock.
	breath = 5 * time.Millisecond
	// maxSkip is the longest way.
	maxSkip = 24 * time.Hour
	// maxSpeed is as fast as heartbeats can follow.
	maxSpeed = 20
)

// Control moves the time of the samples.
type Control struct {
	eng    *perdure.Engine
	warp   *clock.Warp
	moving sync.Mutex

	mu     sync.Mutex
	paused float64 // the speed before the pause, 0 if there is none
}

// NewControl returns the control of an engine that was opened with the clock.
func NewControl(eng *perdure.Engine, warp *clock.Warp) *Control {
	return &Control{eng: eng, warp: warp}
}

// Time is how the samples' time goes.
type Time struct {
	Now    time.Time `json:"now"`
	Speed  float64   `json:"speed"`
	Paused bool      `json:"paused"`
	// NextDue is when work is due next, if that is known.
	NextDue *time.Time `json:"next_due,omitempty"`
}

// Time returns how time goes.
func (c *Control) Time(ctx context.Context) Time {
	t := Time{Now: c.warp.Now().UTC().Truncate(time.Millisecond), Speed: c.warp.Speed()}
	t.Paused = t.Speed == 0
	if wait, ok := c.next(ctx); ok {
		due := t.Now.Add(wait).Truncate(time.Millisecond)
		t.NextDue = &due
	}
	return t
}

// next returns how long it is until work is due.
func (c *Control) next(ctx context.Context) (wait time.Duration, ok bool) {
	for _, w := range host.Of(c.eng).Workers.All() {
		d, due, err := w.Due(ctx)
		if err == nil && due && (!ok || d < wait) {
			wait, ok = max(d, 0), true
		}
	}
	return wait, ok
}

// Pause stops time; what runs goes on.
func (c *Control) Pause() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if speed := c.warp.Speed(); speed > 0 {
		c.paused = speed
		c.warp.SetSpeed(0)
	}
}

// Resume lets time go on as before the pause.
func (c *Control) Resume() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.paused > 0 {
		c.warp.SetSpeed(c.paused)
		c.paused = 0
	}
}

// SetSpeed lets time go as many times as fast.
func (c *Control) SetSpeed(speed float64) error {
	if !(speed > 0 && speed <= maxSpeed) {
		return fault.Invalidf("speed", "is not more than 0 and at most %d", maxSpeed)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.paused = 0
	c.warp.SetSpeed(speed)
	return nil
}

// Forward moves time on, in strides.
func (c *Control) Forward(ctx context.Context, d time.Duration) error {
	if d <= 0 || d > maxSkip {
		return fault.Invalidf("by", "is not more than 0 and at most %v", maxSkip)
	}
	c.moving.Lock()
	defer c.moving.Unlock()
	for d > 0 {
		step := min(d, c.stride(ctx))
		c.warp.Skip(step)
		d -= step
		timer := clock.System.NewTimer(breath)
		select {
		case <-timer.C():
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
	return nil
}

// stride returns how far time may be moved at once: while nothing runs, to when
// something is due.
func (c *Control) stride(ctx context.Context) time.Duration {
	for _, w := range host.Of(c.eng).Workers.All() {
		if w.Stats().Running > 0 {
			return stride
		}
	}
	wait, ok := c.next(ctx)
	if !ok {
		return maxSkip
	}
	return max(wait, stride)
}

// Skip moves time to when work is due next.
func (c *Control) Skip(ctx context.Context) error {
	wait, ok := c.next(ctx)
	if !ok || wait == 0 {
		return nil
	}
	return c.Forward(ctx, min(wait+time.Millisecond, maxSkip))
}

// command is the body of a request that moves time.
type command struct {
	Action string  `json:"action"`
	Speed  float64 `json:"speed"`
	By     string  `json:"by"`
}

func (c *Control) do(ctx context.Context, m command) error {
	switch m.Action {
	case "pause":
		c.Pause()
	case "resume":
		c.Resume()
	case "speed":
		return c.SetSpeed(m.Speed)
	case "skip":
		return c.Skip(ctx)
	case "forward":
		by, err := time.ParseDuration(m.By)
		if err != nil {
			return fault.Invalidf("by", "is not a duration like 1h30m")
		}
		return c.Forward(ctx, by)
	default:
		return fault.Invalidf("action", "is none of pause, resume, speed, skip and forward")
	}
	return nil
}

// Routes are the paths by which the samples are looked at and moved. Whoever serves them
// decides who may: node does.
func Routes(c *Control, m *Mailbox) map[string]http.Handler {
	return map[string]http.Handler{
		"GET /v1/dev/clock": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			write(w, http.StatusOK, c.Time(r.Context()))
		}),
		"POST /v1/dev/clock": http.HandlerFunc(c.serve),
		"GET /v1/dev/messages": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			m.serve(w, r.URL.Query().Get("kind"))
		}),
	}
}

func (c *Control) serve(w http.ResponseWriter, r *http.Request) {
	var m command
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<12)).Decode(&m); err != nil {
		refuse(w, fault.Invalidf("body", "is not JSON: %v", err))
		return
	}
	if err := c.do(r.Context(), m); err != nil {
		refuse(w, err)
		return
	}
	write(w, http.StatusOK, c.Time(r.Context()))
}

func (m *Mailbox) serve(w http.ResponseWriter, kind string) {
	if kind != "email" && kind != "sms" {
		refuse(w, fault.Invalidf("kind", "is neither email nor sms"))
		return
	}
	messages, err := m.List(kind)
	if err != nil {
		refuse(w, fmt.Errorf("read messages: %w", err))
		return
	}
	write(w, http.StatusOK, map[string]any{"data": messages})
}

func write(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client has gone
}

func refuse(w http.ResponseWriter, err error) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(http.StatusUnprocessableEntity)
	_ = json.NewEncoder(w).Encode(map[string]any{ // the client has gone
		"title": "Unprocessable Entity", "status": http.StatusUnprocessableEntity, "code": "invalid", "detail": err.Error(),
	})
}
