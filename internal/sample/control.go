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
	// stride is the step by which time moves. It is less than a lease, so that running work
	// keeps its lease, and work that becomes due in between runs in order.
	stride = Lease / 4
	// strideTime is the time that work gets for each stride, by the host's clock.
	strideTime = 5 * time.Millisecond
	// maxSkip is the maximum distance of one move.
	maxSkip = 24 * time.Hour
	// maxSpeed is the highest speed at which heartbeats keep up.
	maxSpeed = 20
)

// Control controls the clock of the samples.
type Control struct {
	eng    *perdure.Engine
	warp   *clock.Warp
	moving sync.Mutex

	mu     sync.Mutex
	paused float64 // the speed before the pause, 0 if the clock is not paused
}

// NewControl returns the control of an engine that was opened with the clock.
func NewControl(eng *perdure.Engine, warp *clock.Warp) *Control {
	return &Control{eng: eng, warp: warp}
}

// Time is the state of the samples' clock.
type Time struct {
	Now    time.Time `json:"now"`
	Speed  float64   `json:"speed"`
	Paused bool      `json:"paused"`
	// NextDue is the next due time of any work, if it is known.
	NextDue *time.Time `json:"next_due,omitempty"`
}

// Time returns the state of the clock.
func (c *Control) Time(ctx context.Context) Time {
	t := Time{Now: c.warp.Now().UTC().Truncate(time.Millisecond), Speed: c.warp.Speed()}
	t.Paused = t.Speed == 0
	if wait, ok := c.next(ctx); ok {
		due := t.Now.Add(wait).Truncate(time.Millisecond)
		t.NextDue = &due
	}
	return t
}

// next returns the time until the next work is due.
func (c *Control) next(ctx context.Context) (wait time.Duration, ok bool) {
	for _, w := range host.Of(c.eng).Workers.All() {
		d, due, err := w.Due(ctx)
		if err == nil && due && (!ok || d < wait) {
			wait, ok = max(d, 0), true
		}
	}
	return wait, ok
}

// Pause stops the clock. Running work continues.
func (c *Control) Pause() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if speed := c.warp.Speed(); speed > 0 {
		c.paused = speed
		c.warp.SetSpeed(0)
	}
}

// Resume restores the speed of the clock before the pause.
func (c *Control) Resume() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.paused > 0 {
		c.warp.SetSpeed(c.paused)
		c.paused = 0
	}
}

// SetSpeed sets the speed of the clock, as a multiple of real time.
func (c *Control) SetSpeed(speed float64) error {
	if !(speed > 0 && speed <= maxSpeed) {
		return fault.Invalidf("speed", "must be positive and at most %d", maxSpeed)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.paused = 0
	c.warp.SetSpeed(speed)
	return nil
}

// Forward advances the clock by d, in strides.
func (c *Control) Forward(ctx context.Context, d time.Duration) error {
	if d <= 0 || d > maxSkip {
		return fault.Invalidf("by", "must be positive and at most %v", maxSkip)
	}
	c.moving.Lock()
	defer c.moving.Unlock()
	for d > 0 {
		step := min(d, c.stride(ctx))
		c.warp.Skip(step)
		d -= step
		timer := clock.System.NewTimer(strideTime)
		select {
		case <-timer.C():
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
	return nil
}

// stride returns the step by which the clock may move. While nothing runs, it reaches to
// the next due time.
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

// Skip advances the clock to the next due time.
func (c *Control) Skip(ctx context.Context) error {
	wait, ok := c.next(ctx)
	if !ok || wait == 0 {
		return nil
	}
	return c.Forward(ctx, min(wait+time.Millisecond, maxSkip))
}

// command is the body of a request that controls the clock.
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
			return fault.Invalidf("by", "must be a duration such as 1h30m")
		}
		return c.Forward(ctx, by)
	default:
		return fault.Invalidf("action", "must be pause, resume, speed, skip or forward")
	}
	return nil
}

// Routes are the paths for reading and controlling the samples. They do not check
// permissions: package node does.
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
		refuse(w, fault.Invalidf("body", "must be JSON: %v", err))
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
		refuse(w, fault.Invalidf("kind", "must be email or sms"))
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
	_ = json.NewEncoder(w).Encode(v) // the client may have disconnected
}

func refuse(w http.ResponseWriter, err error) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(http.StatusUnprocessableEntity)
	_ = json.NewEncoder(w).Encode(map[string]any{ // the client may have disconnected
		"title": "Unprocessable Entity", "status": http.StatusUnprocessableEntity, "code": "invalid", "detail": err.Error(),
	})
}
