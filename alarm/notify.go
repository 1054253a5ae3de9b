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
	// Webhook is the type of alarms whose fire is a message to their webhook and
	// nothing else. They need no handler, but a process with a Sender.
	Webhook = "webhook"
	// noticeType is the type of notifications. They are alarms that are due at
	// once, recorded with the outcome that they tell of: claimed, tried again and
	// kept as dead letters as all alarms are.
	noticeType = reserved + "notice"
	// maxAfter is the longest wait that a receiver can ask for.
	maxAfter = 24 * time.Hour
	// maxURL is the longest URL of a webhook in bytes.
	maxURL = 2048
)

// Sender sends messages to webhooks.
type Sender interface {
	// Send sends a message once. It returns an error if the receiver did not accept
	// the message, which is then retried with the same id. Errors are marked
	// as for all work: see package retry.
	Send(ctx context.Context, m Message) error
}

// Checker is a Sender that knows which addresses it can never reach.
type Checker interface {
	// CheckURL returns an error if no message can be sent to a URL. The error must
	// not quote the URL, which may hold a secret.
	CheckURL(url string) error
}

// Message is what is sent to a webhook.
type Message struct {
	URL string
	// ID is the same each time that the message is sent.
	ID string
	// Body is JSON: {"type": "alarm.fired", "timestamp": …, "data": {…}}.
	Body []byte
}

type fireKey struct{}

// deliver sends the message of a webhook alarm or of a notification.
func (a *Alarms) deliver(ctx context.Context, payload []byte) error {
	f, ok := ctx.Value(fireKey{}).(*fire)
	if !ok || f.row.Webhook == nil {
		return fmt.Errorf("alarm has no webhook")
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

// notices returns the statements that record the notification of an event, if one is to
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
		return nil // both were made by us, from what was stored
	}
	item := work.NewID()
	return a.rt.Store.ScheduleAlarm(store.NewAlarm{
		AlarmKey: store.AlarmKey{ID: item}, Item: item, Type: noticeType, Payload: string(body), Policy: string(policy),
		MaxAttempts: a.options.Retry.MaxAttempts, Sequence: a.nextSequence(), Webhook: &to, Trace: row.Trace,
	}, a.rt.Now())
}

// checkURL refuses an address that a webhook can never have: one that no process
// can reach, or that this process knows not to be allowed. What a name resolves to is
// decided when it is dialled.
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
