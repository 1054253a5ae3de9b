package alarm

import (
	"encoding/json"
	"sync/atomic"
	"time"

	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/store"
)

// NotificationKind says what happened to an alarm.
type NotificationKind string

// The kinds of events.
const (
	// NotifyFired is an alarm that was handled.
	NotifyFired NotificationKind = "fired"
	// NotifyFailed is an attempt that failed and will be made again.
	NotifyFailed NotificationKind = "failed"
	// NotifyDead is an alarm, or a tick of one, that became a dead letter.
	NotifyDead NotificationKind = "dead"
)

// NotificationKinds are all of them.
var NotificationKinds = []NotificationKind{NotifyFired, NotifyFailed, NotifyDead}

// Notification tells what happened to an alarm.
type Notification struct {
	Kind  NotificationKind
	Alarm Key
	Type  string
	// Key is the idempotency key of the tick.
	Key     string
	Payload json.RawMessage
	// Scheduled is the time that the alarm was for, At when this happened.
	Scheduled, At time.Time
	// Late is how long after it was due the alarm was claimed.
	Late time.Duration
	// Missed is how many further ticks passed unfired.
	Missed int
	// Attempt counts the executions for this tick, Crashes those that lost their
	// process.
	Attempt, Crashes int
	// Error is what went wrong, unless it was fired.
	Error string
	// Next is when a recurring alarm is due again.
	Next time.Time
}

func (f *fire) event(kind NotificationKind, now time.Time) Notification {
	return Notification{
		Kind: kind, Alarm: keyOf(f.row.AlarmKey), Type: f.row.Type, Key: idempotencyKey(*f.row), Payload: json.RawMessage(f.row.Payload),
		Scheduled: f.plan.scheduled, At: now.UTC(), Late: f.late, Missed: f.plan.missed,
		Attempt: f.row.Attempts + 1, Crashes: f.row.Crashes, Next: f.plan.next,
	}
}

// quarantined is the event of an alarm that lost its process once too often.
func quarantined(row store.Alarm, now time.Time) Notification {
	return Notification{
		Kind: NotifyDead, Alarm: keyOf(row.AlarmKey), Type: row.Type, Key: idempotencyKey(row), Payload: json.RawMessage(row.Payload),
		Scheduled: row.Occurs.UTC(), At: now.UTC(), Attempt: row.Attempts, Crashes: row.Crashes, Error: edge.Value(row.Error),
	}
}

// message is an event as a webhook receives it.
type message struct {
	Type      string      `json:"type"`
	Timestamp time.Time   `json:"timestamp"`
	Data      messageData `json:"data"`
}

type messageData struct {
	Actor     *messageActor   `json:"actor,omitempty"`
	ID        string          `json:"id"`
	Type      string          `json:"type"`
	Key       string          `json:"key"`
	Payload   json.RawMessage `json:"payload"`
	Scheduled time.Time       `json:"scheduled"`
	Missed    int             `json:"missed"`
	Attempt   int             `json:"attempt"`
	Crashes   int             `json:"crashes,omitempty"`
	Error     string          `json:"error,omitempty"`
	Next      time.Time       `json:"next,omitzero"`
}

type messageActor struct {
	Type string `json:"type"`
	ID   string `json:"id"`
}

// MarshalJSON returns the event as a webhook receives it.
func (e Notification) MarshalJSON() ([]byte, error) {
	data := messageData{
		ID: e.Alarm.ID, Type: e.Type, Key: e.Key, Payload: e.Payload, Scheduled: e.Scheduled, Missed: e.Missed,
		Attempt: e.Attempt, Crashes: e.Crashes, Error: e.Error, Next: e.Next,
	}
	if e.Alarm.ActorType != "" {
		data.Actor = &messageActor{Type: e.Alarm.ActorType, ID: e.Alarm.ActorID}
	}
	return json.Marshal(message{Type: "alarm." + string(e.Kind), Timestamp: e.At, Data: data})
}

// Stats counts what became of the alarms that this process fired since it
// started. How long they waited and took is measured for all kinds of work alike.
type Stats struct {
	// Fired, Failed and Dead count the events of these kinds.
	Fired, Failed, Dead int64
	// Missed counts the ticks that were not fired because they had passed.
	Missed int64
	// Crashed counts the claims of lost processes that this one returned.
	Crashed int64
}

type counts struct{ fired, failed, dead, missed, crashed atomic.Int64 }

// Stats returns what this process has counted.
func (a *Alarms) Stats() Stats {
	c := &a.counts
	return Stats{
		Fired: c.fired.Load(), Failed: c.failed.Load(), Dead: c.dead.Load(), Missed: c.missed.Load(), Crashed: c.crashed.Load(),
	}
}

// happened counts an event and hands it to the callback, which may panic: that
// must not end the process.
func (a *Alarms) happened(e Notification) {
	switch e.Kind {
	case NotifyFired:
		a.counts.fired.Add(1)
	case NotifyFailed:
		a.counts.failed.Add(1)
	case NotifyDead:
		a.counts.dead.Add(1)
	}
	if e.Kind == NotifyFired || e.Kind == NotifyDead && !e.Next.IsZero() {
		a.counts.missed.Add(int64(e.Missed))
	}
	defer func() { _ = recover() }() // the last resort: nobody is left to tell
	a.options.OnNotification(e)
}
