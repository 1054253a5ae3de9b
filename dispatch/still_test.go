package dispatch_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/internal/clock"
)

// busy is a processor whose work is being taken by another process at first.
type busy struct {
	mu   sync.Mutex
	runs int
}

func (b *busy) Namespace() string { return "busy" }

func (b *busy) Process(context.Context) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.runs++
	return max(b.runs-3, 0), nil
}

func (b *busy) NextWakeAt(context.Context) (time.Time, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.runs > 3 {
		return time.Time{}, nil
	}
	return time.Unix(0, 0), nil
}

// What is due is run although the clock stands, however often it was in other hands.
func TestAnAlarmGoesOnWhileItsClockStands(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		still := clock.NewWarp(0)
		still.SetSpeed(0)
		p := &busy{}
		d, err := dispatch.NewWaker(p, &dispatch.WakerOptions{Clock: still})
		run(t, d, err)
		<-time.After(time.Second)
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.runs != 4 {
			t.Errorf("it ran %d times, want 4", p.runs)
		}
	})
}
