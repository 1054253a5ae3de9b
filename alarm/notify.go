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
		body, err := json.Marshal(f.event(EventFired, a.rt.Clock.Now()))
		if err != nil {
			return err
		}
		m.ID, m.Body = idempotencyKey(f.row), body
	}
	return a.options.Sender.Send(ctx, m)
}

// notices returns the statements that record who is to be told of an event, while
// the claim is held.
func (a *Alarms) notices(row store.Alarm, h store.AlarmHold, e Event) []sqldb.Stmt {
	n, ok := a.notice(row, e)
	if !ok {
		return nil
	}
	return []sqldb.Stmt{a.rt.Store.RecordNotice(n, h, e.Kind == EventFired, a.rt.Now())}
}

// obituaries returns the statements that record who is to be told of alarms that
// were quarantined.
func (a *Alarms) obituaries(reaped []store.Alarm) []sqldb.Stmt {
	var stmts []sqldb.Stmt
	for _, row := range reaped {
		if Status(row.Status) != Quarantined {
			continue
		}
		if n, ok := a.notice(row, quarantined(row, a.rt.Clock.Now())); ok {
			stmts = append(stmts, a.rt.Store.ScheduleAlarm(store.NewAlarm{
				AlarmKey: store.AlarmKey{ID: n.ID}, Type: n.Type, Payload: n.Payload, Policy: n.Policy, MaxAttempts: n.MaxAttempts,
				Sequence: n.Sequence, Webhook: &n.URL, Trace: row.Trace,
			}, a.rt.Now())...)
		}
	}
	return stmts
}

// notice returns the notification of an event, if anybody is to be told.
func (a *Alarms) notice(row store.Alarm, e Event) (store.Notice, bool) {
	to := a.options.Notify
	if row.Webhook != nil && row.Type != Webhook {
		to = *row.Webhook
	}
	if to == "" || row.Type == noticeType || !slices.Contains(a.options.Events, e.Kind) {
		return store.Notice{}, false
	}
	body, err := json.Marshal(e)
	policy, broken := json.Marshal(a.options.Retry)
	if err != nil || broken != nil {
		return store.Notice{}, false // both were made by us, from what was stored
	}
	return store.Notice{
		ID: newToken(), Type: noticeType, Payload: string(body), Policy: string(policy),
		MaxAttempts: a.options.Retry.MaxAttempts, Sequence: a.nextSequence(), URL: to,
	}, true
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
