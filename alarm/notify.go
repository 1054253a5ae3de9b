package alarm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/egress"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/work"
)

const (
	// Webhook is the type of alarms that only send a message to their webhook. They need
	// no handler, but a process with a Sender.
	Webhook = "webhook"
	// noticeType is the type of notifications. A notification is an alarm that is due
	// immediately and is written in the transaction of the outcome that it reports. It is
	// claimed, retried and kept as a dead letter like every alarm.
	noticeType = reserved + "notice"
	// maxAfter is the longest delay that a receiver can request.
	maxAfter = 24 * time.Hour
	// maxURL is the maximum length of the URL of a webhook, in bytes.
	maxURL = 2048
)

// Sender sends messages to webhooks.
type Sender interface {
	// Send sends a message once. It returns an error if the receiver did not accept the
	// message. The message is then retried with the same id. Functions of package retry
	// mark permanent errors and set the delay of the retry.
	Send(ctx context.Context, m Message) error
}

// Checker is a Sender that can report which URLs it can never reach.
type Checker interface {
	// CheckURL returns an error if no message can be sent to a URL. The error must not
	// quote the URL, which may contain a secret.
	CheckURL(url string) error
}

// Message is a message to a webhook.
type Message struct {
	URL string
	// ID identifies the message. It is the same for every attempt to send it.
	ID string
	// Body is JSON: {"type": "alarm.fired", "timestamp": …, "data": {…}}.
	Body []byte
}

type fireKey struct{}

// deliver sends the message of a webhook alarm or of a notification.
func (a *Alarms) deliver(ctx context.Context, payload []byte) error {
	f, ok := ctx.Value(fireKey{}).(*fire)
	if !ok || f.row.Webhook == nil {
		return fmt.Errorf("alarm must have a webhook")
	}
	m := Message{URL: *f.row.Webhook, ID: f.row.ID, Body: payload}
	if f.row.Type == Webhook {
		body, err := json.Marshal(f.event(NotifyFired, a.rt.Clock.Now()))
		if err != nil {
			return err
		}
		m.ID, m.Body = idempotencyKey(*f.row), body
	}
	return a.options.Sender.Send(ctx, m)
}

// notices returns the statements that store a notification for its webhook, if it is to
// be sent.
func (a *Alarms) notices(row store.Alarm, e Notification) []sqldb.Stmt {
	to := a.options.Notify
	if row.Webhook != nil && row.Type != Webhook {
		to = *row.Webhook
	}
	if to == "" || row.Type == noticeType || !slices.Contains(a.options.Notifications, e.Kind) {
		return nil
	}
	body, err := json.Marshal(e)
	policy, broken := json.Marshal(a.options.Retry)
	if err != nil || broken != nil {
		return nil // cannot happen: both values can be encoded
	}
	item := work.NewID()
	return a.rt.Store.ScheduleAlarm(store.NewAlarm{
		AlarmKey: store.AlarmKey{ID: item}, Item: item, Type: noticeType, Payload: string(body), Policy: string(policy),
		MaxAttempts: a.options.Retry.MaxAttempts, Sequence: a.nextSequence(), Webhook: &to, Trace: row.Trace,
	}, a.rt.Now())
}

// checkURL returns an error if a webhook can never have this URL: if no process can reach
// it, or if this process does not allow it. The addresses of a host name are checked only
// when it is dialed.
func (o *Options) checkURL(field, raw string) error {
	if err := edge.Text(field, raw, maxURL); err != nil {
		return err
	}
	if _, err := egress.CheckForm(field, raw); err != nil || o.CheckWebhook == nil {
		return err
	}
	err := o.CheckWebhook(raw)
	var invalid *fault.Invalid
	if errors.As(err, &invalid) {
		return fault.Invalidf(field, "%s", invalid.Reason)
	}
	if err != nil {
		return fault.Invalidf(field, "%s", err)
	}
	return nil
}
