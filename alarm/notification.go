package alarm

import (
	"encoding/json"
	"sync/atomic"
	"time"

	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/store"
)

// NotificationKind is the kind of a Notification.
type NotificationKind string

// The kinds of notifications.
const (
	// NotifyFired reports an alarm whose handler succeeded.
	NotifyFired NotificationKind = "fired"
	// NotifyFailed reports a failed attempt that will be retried.
	NotifyFailed NotificationKind = "failed"
	// NotifyDead reports an alarm, or a tick of a recurring alarm, that became a dead
	// letter.
	NotifyDead NotificationKind = "dead"
)

// NotificationKinds are all kinds of notifications.
var NotificationKinds = []NotificationKind{NotifyFired, NotifyFailed, NotifyDead}

// Notification reports the outcome of an alarm.
type Notification struct {
	Kind  NotificationKind
	Alarm Key
	Type  string
	// Key is the idempotency key of the tick.
	Key     string
	Payload json.RawMessage
	// Scheduled is the time for which the alarm was scheduled. At is the time of the
	// outcome.
	Scheduled, At time.Time
	// Late is the time between the due time of the alarm and its claim.
	Late time.Duration
	// Missed is the number of other ticks that passed without being fired.
	Missed int
	// Attempt is the number of executions for this tick. Crashes is the number of
	// executions that crashed.
	Attempt, Crashes int
	// Error is the error of the attempt. It is empty if Kind is NotifyFired.
	Error string
	// Next is the time when a recurring alarm is due again.
	Next time.Time
}

func (f *fire) event(kind NotificationKind, now time.Time) Notification {
	return Notification{
		Kind: kind, Alarm: keyOf(f.row.AlarmKey), Type: f.row.Type, Key: idempotencyKey(*f.row), Payload: json.RawMessage(f.row.Payload),
		Scheduled: f.plan.scheduled, At: now.UTC(), Late: f.late, Missed: f.plan.missed,
		Attempt: f.row.Attempts + 1, Crashes: f.row.Crashes, Next: f.plan.next,
	}
}

// quarantined returns the notification of an alarm that was quarantined after too many
// crashes.
func quarantined(row store.Alarm, now time.Time) Notification {
	return Notification{
		Kind: NotifyDead, Alarm: keyOf(row.AlarmKey), Type: row.Type, Key: idempotencyKey(row), Payload: json.RawMessage(row.Payload),
		Scheduled: row.Occurs.UTC(), At: now.UTC(), Attempt: row.Attempts, Crashes: row.Crashes, Error: edge.Value(row.Error),
	}
}

// message is a notification in the form that a webhook receives.
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

// MarshalJSON returns the notification in the form that a webhook receives.
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

// Stats counts the outcomes of the alarms that this process has fired since it started.
// Waiting times and durations are measured elsewhere, for all kinds of work.
type Stats struct {
	// Fired, Failed and Dead count the notifications of these kinds.
	Fired, Failed, Dead int64
	// Missed counts ticks that had passed and were not fired.
	Missed int64
	// Crashed counts the expired claims of other processes that this process returned.
	Crashed int64
}

type counts struct{ fired, failed, dead, missed, crashed atomic.Int64 }

// Stats returns the counts of this process.
func (a *Alarms) Stats() Stats {
	c := &a.counts
	return Stats{
		Fired: c.fired.Load(), Failed: c.failed.Load(), Dead: c.dead.Load(), Missed: c.missed.Load(), Crashed: c.crashed.Load(),
	}
}

// emit counts a notification and passes it to OnNotification. A panic of that
// function must not crash the process.
func (a *Alarms) emit(e Notification) {
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
	defer func() { _ = recover() }() // a panicking OnNotification must not crash the process
	a.options.OnNotification(e)
}
