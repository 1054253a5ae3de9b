package alarm

import (
	"context"
	crand "crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/perdure/perdure/internal/core"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/failpoint"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/tracing"
)

const (
	// reapLimit is how many expired claims one claim returns at most.
	reapLimit = 100
	// patience is how long a handler may take to return after its context ended.
	patience = 10 * time.Second
	// outcomeTimeout bounds the commit of an outcome.
	outcomeTimeout = time.Minute
	// lost is the error of an alarm whose process died.
	lost = "process was lost while the alarm was fired"
)

func random() float64 { return rand.Float64() }

// newToken returns a name for a claim or a process that no other has. It is not
// one of Options.NewID, which may be anything.
func newToken() string { return crand.Text() }

// fire is an alarm that was claimed: the work of a core.Claim.
type fire struct {
	row  store.Alarm
	plan plan
	// broken says why there is no plan.
	broken error
	late   time.Duration
}

func (f *fire) hold(token string) store.AlarmHold {
	return store.AlarmHold{AlarmKey: f.row.AlarmKey, Token: token, Generation: f.row.Generation}
}

// kind describes alarms to the worker.
func (a *Alarms) kind() core.Kind {
	return core.Kind{Name: "alarm", Claim: a.claim, Run: a.run, Extend: a.extend, Release: a.release, Return: a.restore, Next: a.next, Sweep: a.sweep}
}

// claim returns expired claims and takes due alarms, in one transaction, which does
// not wait for the disk: a claim that is lost with the power did not happen.
func (a *Alarms) claim(ctx context.Context, limit int, lease time.Duration) ([]*core.Claim, error) {
	var reaped, claimed []store.Alarm
	var now time.Time
	var foreign bool
	token := newToken()
	err := a.transact(ctx, sqldb.Claim, func(tx sqldb.Tx) error {
		a.leave(claimed) // admitted by an attempt that failed
		claimed = nil
		st, clock := a.rt.Store, a.rt.Now()
		var expired []store.LostAlarm
		err := tx.Run(ctx, st.TellTime(clock, func(t time.Time) { now = t }),
			st.ExpiredAlarms(reapLimit, clock, func(l store.LostAlarm) { expired = append(expired, l) }))
		if err != nil {
			return err
		}
		mine, crashed := a.sort(expired)
		if err := tx.Run(ctx, a.releases(mine)...); err != nil {
			return err
		}
		if reaped, err = st.ReturnAlarms(ctx, tx, crashed, a.judge, lost, clock); err != nil {
			return err
		}
		if err := tx.Run(ctx, append(st.LostAlarms(reaped, clock), a.obituaries(reaped)...)...); err != nil {
			return err
		}
		var rows []store.Alarm
		rows, foreign, err = a.take(ctx, tx, store.AlarmClaim{
			Types: a.types(), Worker: a.id, Token: token, Lease: lease, Limit: limit, Least: a.least(),
		}, clock)
		if err != nil {
			return err
		}
		var surplus []sqldb.Stmt
		claimed, surplus = a.admit(rows, token)
		return tx.Run(ctx, surplus...)
	})
	if err != nil {
		a.leave(claimed)
		return core.Unanswered(claims(claimed, token, now), err), err
	}
	a.crashed(reaped)
	if foreign {
		a.rt.Hub.Publish(topic, time.Time{}) // for the processes that have the key
	}
	return claims(claimed, token, now), nil
}

func claims(rows []store.Alarm, token string, now time.Time) []*core.Claim {
	store.SortAlarms(rows)
	claims := make([]*core.Claim, len(rows))
	for i, row := range rows {
		f := &fire{row: row, late: now.Sub(row.Due)}
		f.plan, f.broken = planOf(row, now)
		claims[i] = &core.Claim{ID: row.String(), Token: token, Work: f, Due: row.Due}
	}
	return claims
}

// run executes the handler of a claimed alarm and commits what came of it.
func (a *Alarms) run(ctx context.Context, c *core.Claim) error {
	f := c.Work.(*fire)
	defer a.left(f.row)
	handling, additions := core.WithAdditions(ctx)
	err := a.execute(handling, f)
	if cause := context.Cause(ctx); errors.Is(cause, core.ErrLost) {
		return cause // somebody else has the alarm: our outcome would be stale
	} else if err != nil && errors.Is(cause, core.ErrStopping) {
		return a.giveBack(context.WithoutCancel(ctx), []*core.Claim{c})
	}
	if err := failpoint.Hit("alarm.executed"); err != nil {
		return err
	}
	o, err := a.decide(ctx, f, f.hold(c.Token), additions.Close(), err)
	if c.Failed = o.err != nil; err != nil {
		return fmt.Errorf("record outcome: %w", err)
	}
	if o.stale {
		return a.yield(ctx, f.hold(c.Token), o)
	}
	if !o.again.IsZero() {
		a.rt.Hub.Tell(topic, o.again)
	}
	a.happened(o.event)
	return failpoint.Hit("alarm.settled")
}

// yield ends a claim whose outcome was dropped. If it is still held, the alarm was
// scheduled anew, by its own handler perhaps: then it was fired all the same.
func (a *Alarms) yield(ctx context.Context, h store.AlarmHold, o *outcome) error {
	var held bool
	if err := a.settle(ctx, a.rt.Store.YieldAlarm(h, &held)); err != nil {
		return fmt.Errorf("end claim: %w", err)
	}
	if !held {
		return core.ErrLost
	}
	if o.event.Kind == EventFired {
		a.happened(o.event)
	}
	return nil
}

func (a *Alarms) execute(ctx context.Context, f *fire) (err error) {
	if f.broken != nil {
		return fmt.Errorf("read the ticks: %w", f.broken)
	}
	a.mu.RLock()
	handler := a.handlers[f.row.Type]
	a.mu.RUnlock()
	ctx, span := a.rt.Tracer.Process(ctx, a.rt.Clock.Now(), tracing.Work{
		Kind: "alarm", Name: f.row.Type, ID: f.row.String(), Attempt: f.row.Attempts + 1, Trace: f.row.Trace, Created: f.row.Created,
	})
	defer func() { span.End(err) }()
	ctx = context.WithValue(context.WithValue(ctx, fireKey{}, f), infoKey{}, f.info())
	ctx, cancel := context.WithTimeout(ctx, handler.timeout)
	defer cancel()
	return core.CallWithin(ctx, a.rt.Clock, patience, func(ctx context.Context) error {
		return handler.run(ctx, []byte(f.row.Payload))
	})
}

func (f *fire) info() Info {
	return Info{
		Alarm: keyOf(f.row.AlarmKey), Type: f.row.Type, Key: idempotencyKey(f.row), Scheduled: f.plan.scheduled, Missed: f.plan.missed,
		Attempt: f.row.Attempts + 1, MaxAttempts: f.row.MaxAttempts, Crashes: f.row.Crashes, Next: f.plan.next, Created: f.row.Created.UTC(),
	}
}

// idempotencyKey names one tick of one alarm: a retry has the same, and so has
// the dead letter that is left of it.
func idempotencyKey(row store.Alarm) string {
	parts := []string{
		row.ActorType, row.ActorID, strings.TrimSuffix(row.ID, tickSuffix(row)),
		strconv.FormatInt(row.Sequence, 10), strconv.FormatInt(row.Occurs.UnixMicro(), 10),
	}
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:16])
}

// tickSuffix is what the id of a dead letter of a tick has at its end.
func tickSuffix(row store.Alarm) string {
	return "@" + row.Occurs.UTC().Format("2006-01-02T15:04:05.999999Z")
}

func (a *Alarms) extend(ctx context.Context, claims []*core.Claim, lease time.Duration) ([]*core.Claim, error) {
	stale := make([]bool, len(claims))
	stmts := make([]sqldb.Stmt, len(claims))
	for i, c := range claims {
		stmts[i] = a.rt.Store.ExtendAlarm(c.Work.(*fire).hold(c.Token), lease, a.rt.Now(), &stale[i])
	}
	if err := a.transact(ctx, sqldb.Urgent, func(tx sqldb.Tx) error { return tx.Run(ctx, stmts...) }); err != nil {
		return nil, err
	}
	var lost []*core.Claim
	for i, c := range claims {
		if stale[i] {
			lost = append(lost, c)
		}
	}
	return lost, nil
}

// release gives claims back that were not started.
func (a *Alarms) release(ctx context.Context, claims []*core.Claim) error {
	err := a.giveBack(ctx, claims)
	for _, c := range claims {
		a.left(c.Work.(*fire).row)
	}
	return err
}

func (a *Alarms) giveBack(ctx context.Context, claims []*core.Claim) error {
	ctx, cancel := context.WithTimeout(ctx, outcomeTimeout)
	defer cancel()
	return a.restore(ctx, core.Return(claims))
}

// restore returns claims of this process that it does not run. An alarm that was
// scheduled anew meanwhile does not wait.
func (a *Alarms) restore(ctx context.Context, claims []core.Returned) error {
	var stmts []sqldb.Stmt
	for _, c := range claims {
		hold := c.Work.(*fire).hold(c.Token)
		if c.Delay > 0 {
			message := edge.Message(c.Message)
			stmts = append(stmts, a.rt.Store.PostponeAlarm(hold, &message, c.Delay, a.rt.Now()))
		}
		stmts = append(stmts, a.rt.Store.ReleaseAlarm(hold))
	}
	if err := a.transact(ctx, sqldb.Urgent, func(tx sqldb.Tx) error { return tx.Run(ctx, stmts...) }); err != nil {
		return err
	}
	a.rt.Hub.Publish(topic, core.DueAgain(claims, a.rt.Clock.Now())) // for the other processes
	return nil
}

func (a *Alarms) next(ctx context.Context) (wait time.Duration, ok bool, err error) {
	err = a.read(ctx, a.rt.Store.NextAlarm(a.types(), a.least(), a.rt.Now(), func(d time.Duration) { wait, ok = d, true }))
	return wait, ok, err
}
