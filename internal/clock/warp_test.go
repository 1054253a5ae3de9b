package clock

import (
	"testing"
	"testing/synctest"
	"time"
)

// elapsed returns how long it takes by the machine until a timer has fired.
func elapsed(t Timer, begun time.Time) time.Duration {
	<-t.C()
	return time.Since(begun).Round(time.Millisecond)
}

func TestAWarpedClockRunsAtItsSpeed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		w := NewWarp(time.Hour)
		if got := w.Now().Sub(begun); got != time.Hour {
			t.Errorf("it is ahead by %v", got)
		}
		if got := elapsed(w.NewTimer(time.Minute), begun); got != time.Minute {
			t.Errorf("at its own speed a minute takes %v", got)
		}
		w.SetSpeed(60)
		if got := elapsed(w.NewTimer(time.Minute), time.Now()); got != time.Second {
			t.Errorf("at sixty times the speed a minute takes %v", got)
		}
		if got := w.Now().Sub(begun).Round(time.Second); got != time.Hour+2*time.Minute {
			t.Errorf("it shows %v", got)
		}
	})
}

func TestATimerFollowsItsClock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := NewWarp(0)
		w.SetSpeed(0)
		before := w.Now()
		timer, other := w.NewTimer(time.Minute), w.NewTimer(time.Hour)
		time.Sleep(24 * time.Hour)
		select {
		case <-timer.C():
			t.Error("it fired while the clock stood")
		default:
		}
		if !w.Now().Equal(before) {
			t.Error("the clock went on")
		}
		w.SetSpeed(1)
		if got := elapsed(timer, time.Now()); got != time.Minute {
			t.Errorf("it took %v", got)
		}
		w.Skip(time.Hour)
		if got := elapsed(other, time.Now()); got != 0 {
			t.Errorf("after the skip it took %v", got)
		}
	})
}

func TestAStoppedTimerDoesNotFire(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := NewWarp(0)
		timer, fired := w.NewTimer(time.Second), w.NewTimer(time.Millisecond)
		timer.Stop()
		time.Sleep(time.Minute)
		fired.Stop() // what was sent is taken back
		w.Skip(time.Hour)
		synctest.Wait()
		for _, timer := range []Timer{timer, fired} {
			select {
			case <-timer.C():
				t.Error("it fired")
			default:
			}
		}
	})
}
