package actor

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"time"

	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/statechart"
)

// maxAlarmID is the maximum length of a timer id that is stored unchanged. With the actor's
// name it must fit an index.
const maxAlarmID = 512

// alarmID returns the id of the row of a timer.
func alarmID(t statechart.Timer) string {
	key := t.Key()
	if len(key) <= maxAlarmID {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return key[:maxAlarmID-65] + "#" + hex.EncodeToString(sum[:])
}

// timerChanges are the changes of the stored timers of an actor. They apply in this order: all
// timers of some actors in the tree are removed, single timers are removed, timers are added.
type timerChanges struct {
	all  []statechart.Timer // Path and Generation
	gone []statechart.Timer
	put  []statechart.Timer
}

func (c *timerChanges) empty() bool { return len(c.all)+len(c.gone)+len(c.put) == 0 }

// over returns the timers after the changes, in firing order.
func (c *timerChanges) over(before []statechart.Timer) []statechart.Timer {
	keys := map[string]bool{}
	for _, t := range append(slices.Clone(c.gone), c.put...) {
		keys[t.Key()] = true
	}
	after := slices.DeleteFunc(before, func(t statechart.Timer) bool {
		return keys[t.Key()] || slices.ContainsFunc(c.all, func(p statechart.Timer) bool { return samePlace(p, t) })
	})
	after = append(after, c.put...)
	slices.SortFunc(after, compareTimers)
	return after
}

func samePlace(a, b statechart.Timer) bool { return a.Path == b.Path && a.Generation == b.Generation }

func (c *timerChanges) apply(o statechart.TimerOp) {
	if o.Kind == statechart.CancelAll {
		c.put = slices.DeleteFunc(c.put, func(t statechart.Timer) bool { return samePlace(t, o.Timer) })
		c.all = append(c.all, o.Timer)
		return
	}
	if o.Kind == statechart.Cancel && o.Timer.ID == "" {
		return // the operation names no timer
	}
	key := o.Timer.Key()
	c.put = slices.DeleteFunc(c.put, func(t statechart.Timer) bool { return t.Key() == key })
	if o.Kind == statechart.Schedule {
		c.put = append(c.put, o.Timer)
		return
	}
	c.gone = append(c.gone, o.Timer)
}

// take applies the timer operations of a transition.
func (t *turn) take(ops []statechart.TimerOp) {
	if t.kind.options.DisableTimers {
		return
	}
	for _, o := range ops {
		t.timers.apply(o)
		t.due = slices.DeleteFunc(t.due, func(d statechart.Timer) bool { return removes(o, d) })
		if o.Kind == statechart.Schedule && !t.unchained && !time.UnixMilli(o.Timer.Due).After(t.row.Now) {
			t.addDue(o.Timer)
		}
	}
}

// addDue inserts a timer into the timers that fire now, in firing order.
func (t *turn) addDue(timer statechart.Timer) {
	at, _ := slices.BinarySearchFunc(t.due, timer, compareTimers)
	t.due = slices.Insert(t.due, at, timer)
}

func compareTimers(a, b statechart.Timer) int {
	return cmp.Or(cmp.Compare(a.Due, b.Due), cmp.Compare(a.Sequence, b.Sequence))
}

// removes reports whether an operation cancels or replaces a timer.
func removes(o statechart.TimerOp, t statechart.Timer) bool {
	if o.Kind == statechart.CancelAll {
		return samePlace(t, o.Timer)
	}
	return (o.Kind != statechart.Cancel || o.Timer.ID != "") && t.Key() == o.Timer.Key()
}

// drop removes the row of a timer that was fired or skipped.
func (t *turn) drop(timer statechart.Timer) {
	t.timers.apply(statechart.TimerOp{Kind: statechart.Schedule, Timer: timer}) // of its place in put, if any
	t.timers.put = t.timers.put[:len(t.timers.put)-1]
	t.timers.gone = append(t.timers.gone, timer)
}

func (t *turn) storedTimer(timer statechart.Timer) store.ActorTimer {
	return store.ActorTimer{
		ActorRef: t.ref.stored(), AlarmID: alarmID(timer), Event: timer.Event.Type, Due: timeOf(timer.Due),
		Sequence: timer.Sequence, Payload: *text(timer), Path: timer.Path, Generation: timer.Generation, Created: t.row.Now,
	}
}
