package clock

import (
	"sync"
	"time"
)

// Warp is a clock whose speed can be changed while it runs: stopped, ten times as
// fast, or moved on by an hour. It is for looking at work that takes days. It is
// never behind where it was.
type Warp struct {
	mu     sync.Mutex
	real   time.Time // when the speed was set, by the machine
	at     time.Time // what this clock showed then
	speed  float64
	timers map[*warpTimer]bool
}

// NewWarp returns a clock that shows the machine's time and ahead, at its speed.
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

// Speed returns how fast the clock is: 1 is as fast as the machine's, 0 stands.
func (w *Warp) Speed() float64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.speed
}

// SetSpeed changes how fast the clock is from now on. Less than 0 is 0.
func (w *Warp) SetSpeed(speed float64) { w.set(0, &speed) }

// Skip moves the clock on at once.
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
	real  *time.Timer // nil while the clock stands
}

// arm sets the machine's timer for the speed that the clock has now.
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

// fire sends the time, unless the timer was stopped or the clock was slowed down
// meanwhile.
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
