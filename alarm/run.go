package alarm

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/tracing"
	"github.com/perdure/perdure/internal/work"
	"github.com/perdure/perdure/retry"
)

// fire is a claimed alarm: the part of an item that belongs to this package.
type fire struct {
	row  *store.Alarm
	plan plan
	// broken is the error of planOf, if there is no plan.
	broken error
	late   time.Duration
	// current is the generation of the alarm, read under the lock that commits its
	// outcome. It differs from the generation of row if the alarm was scheduled again
	// since the claim. It is 0 if the alarm was removed.
	current int64
}

// rescheduled reports whether the alarm was scheduled again while it ran.
func (f *fire) rescheduled() bool { return f.current != f.row.Generation }

// plan reads the database's time, in the transaction of a claim, and plans the firing of
// the claimed alarms.
func (a *Alarms) plan(items []*work.Item) []sqldb.Stmt {
	return []sqldb.Stmt{a.rt.Store.ReadTime(a.rt.Now(), func(now time.Time) {
		for _, i := range items {
			row := i.Row.(*store.Alarm)
			f := &fire{row: row, late: now.Sub(row.Due)}
			f.plan, f.broken = planOf(*row, now)
			i.Own = f
		}
	})}
}

// begin runs the handler of a claimed alarm and commits the outcome.
func (a *Alarms) begin(ctx context.Context, i *work.Item) {
	f := i.Own.(*fire)
	if f.row.Sealed != nil {
		a.runner.Unreadable(i, f.row.Sealed, work.SealedDelay)
		return
	}
	a.mu.RLock()
	handler := a.handlers[f.row.Type]
	a.mu.RUnlock()
	a.runner.Execute(ctx, i, work.Execution{
		Work:    tracing.Work{Kind: "alarm", Name: f.row.Type, ID: f.row.String(), Attempt: f.row.Attempts + 1, Trace: f.row.Trace, Created: f.row.Created},
		Timeout: handler.timeout,
		Run: func(ctx context.Context) error {
			if handler.run == nil { // it was removed after the claim
				return work.ErrReturned
			}
			if f.broken != nil {
				return fmt.Errorf("read ticks: %w", f.broken)
			}
			ctx = context.WithValue(context.WithValue(ctx, fireKey{}, f), infoKey{}, f.info())
			return handler.run(ctx, []byte(f.row.Payload))
		},
		Decide: func(err error, began time.Time) any { return a.decide(f, err, began) },
		Committed: func(d *work.Decided) {
			if o := d.Outcome.(*outcome); !f.rescheduled() || o.event.Kind == NotifyFired {
				a.emit(o.event)
			}
		},
	})
}

func (f *fire) info() Info {
	return Info{
		Alarm: keyOf(f.row.AlarmKey), Type: f.row.Type, Key: idempotencyKey(*f.row), Scheduled: f.plan.scheduled, Missed: f.plan.missed,
		Attempt: f.row.Attempts + 1, MaxAttempts: f.row.MaxAttempts, Crashes: f.row.Crashes, Next: f.plan.next, Created: f.row.Created.UTC(),
	}
}

// idempotencyKey returns a key that identifies one tick of one alarm. Retries and the
// dead letter of the tick have the same key.
func idempotencyKey(row store.Alarm) string {
	parts := []string{
		row.ActorType, row.ActorID, strings.TrimSuffix(row.ID, tickSuffix(row)),
		strconv.FormatInt(row.Sequence, 10), strconv.FormatInt(row.Occurs.UnixMicro(), 10),
	}
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:16])
}

// tickSuffix returns the suffix of the id of a tick's dead letter.
func tickSuffix(row store.Alarm) string {
	return "@" + row.Occurs.UTC().Format("2006-01-02T15:04:05.999999Z")
}

// outcome is the outcome of an attempt.
type outcome struct {
	event Notification
	took  time.Duration
	// delay is the time until the alarm is retried. It is nil if the alarm is not
	// retried.
	delay *time.Duration
}

// decide returns the outcome of an attempt.
func (a *Alarms) decide(f *fire, err error, began time.Time) *outcome {
	o := &outcome{event: f.event(NotifyFired, a.rt.Clock.Now()), took: max(a.rt.Clock.Now().Sub(began), 0)}
	if err == nil {
		return o
	}
	o.event.Kind, o.event.Error = NotifyDead, edge.Message(err.Error())
	var policy retry.Policy
	if unread := json.Unmarshal([]byte(f.row.Policy), &policy); unread != nil {
		o.event.Error = edge.Message(o.event.Error + "\ndecode retry policy: " + unread.Error())
		return o
	}
	if delay, again := policy.Decide(f.row.Attempts+1, err, a.options.Random()); again {
		o.event.Kind, o.delay = NotifyFailed, &delay
	}
	return o
}

// lock returns the statement that locks the alarms of outcomes. An alarm that was scheduled
// again has another generation.
func (a *Alarms) lock(group []*work.Decided, _ bool) []sqldb.Stmt {
	byItem := map[string]*fire{}
	var ids []string
	for _, d := range group {
		f := d.Own.(*fire)
		f.current = 0
		byItem[d.ID], ids = f, append(ids, d.ID)
	}
	return []sqldb.Stmt{a.rt.Store.LockAlarms(ids, func(item string, generation int64) { byItem[item].current = generation })}
}

// gone reports whether the alarm of an outcome was removed. Its claim may still exist if
// the alarm was cancelled while it was being claimed.
func gone(d *work.Decided) bool { return d.Own.(*fire).current == 0 }

// refused makes an alarm a dead letter because the database refuses its outcome. It
// returns false if the outcome already was a dead letter.
func refused(d *work.Decided, cause error) bool {
	o := d.Outcome.(*outcome)
	if o.event.Kind == NotifyDead {
		return false
	}
	o.event.Kind, o.event.Error, o.delay = NotifyDead, edge.Message(cause.Error()), nil
	return true
}
