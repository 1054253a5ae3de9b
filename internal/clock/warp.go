package clock

import (
	"sync"
	"time"
)

// Warp is a clock whose speed can be changed while it runs. It can be stopped, run ten
// times as fast, or skip an hour. It is for watching work that takes days. It never
// goes back.
type Warp struct {
	mu     sync.Mutex
	real   time.Time // time when the speed was set, by the system clock
	at     time.Time // time that this clock showed then
	speed  float64
	timers map[*warpTimer]bool
}

// NewWarp returns a clock that is ahead of the system clock and runs at its speed.
func NewWarp(ahead time.Duration) *Warp {
	now := time.Now()
	return &Warp{real: now, at: now.Add(ahead), speed: 1, timers: map[*warpTimer]bool{}}
}

// Now implements Clock.
func (w *Warp) Now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now()
}

func (w *Warp) now() time.Time {
	return w.at.Add(time.Duration(float64(time.Since(w.real)) * w.speed)).Round(0)
}

// Speed returns the speed of the clock: 1 is the speed of the system clock, 0 is
// stopped.
func (w *Warp) Speed() float64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.speed
}

// SetSpeed changes the speed of the clock from now on. Negative values mean 0.
func (w *Warp) SetSpeed(speed float64) { w.set(0, &speed) }

// Skip moves the clock forward immediately.
func (w *Warp) Skip(d time.Duration) { w.set(max(d, 0), nil) }

func (w *Warp) set(skip time.Duration, speed *float64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	w.at, w.real = w.now().Add(skip), now
	if speed != nil {
		w.speed = max(*speed, 0)
	}
	for t := range w.timers {
		t.arm()
	}
}

// NewTimer implements Clock.
func (w *Warp) NewTimer(d time.Duration) Timer {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := &warpTimer{clock: w, at: w.now().Add(d), c: make(chan time.Time, 1)}
	w.timers[t] = true
	t.arm()
	return t
}

// warpTimer is a timer of a Warp; the clock's lock guards it.
type warpTimer struct {
	clock *Warp
	at    time.Time
	c     chan time.Time
	real  *time.Timer // nil while the clock is stopped
}

// arm sets the system timer for the current speed of the clock.
func (t *warpTimer) arm() {
	if t.real != nil {
		t.real.Stop()
		t.real = nil
	}
	left := t.at.Sub(t.clock.now())
	if left > 0 && t.clock.speed == 0 {
		return
	}
	if left > 0 {
		left = time.Duration(float64(left)/t.clock.speed) + time.Microsecond
	}
	t.real = time.AfterFunc(left, t.fire)
}

// fire sends the time, unless the timer was stopped or the clock was slowed down since
// it was armed.
func (t *warpTimer) fire() {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	now := t.clock.now()
	switch {
	case !t.clock.timers[t]:
	case now.Before(t.at):
		t.arm()
	default:
		delete(t.clock.timers, t)
		t.c <- now
	}
}

// C implements Timer.
func (t *warpTimer) C() <-chan time.Time { return t.c }

// Stop implements Timer.
func (t *warpTimer) Stop() {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	delete(t.clock.timers, t)
	if t.real != nil {
		t.real.Stop()
	}
	select {
	case <-t.c:
	default:
	}
}
