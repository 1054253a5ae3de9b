package alarm

import (
	"context"

	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/work"
)

// group collects the rows of a group of outcomes.
type group struct {
	ids      []string
	all      []store.FiredAlarm
	done     []store.FiredAlarm
	advanced []store.AdvancedAlarm
	failed   []store.FailedAlarm
	attempts []store.FailedStep
	// deadLetters are the statements that store failed ticks as dead letters. notices are the
	// statements that store notifications.
	deadLetters, notices []sqldb.Stmt
}

// write returns the statements of a group of outcomes. An alarm that was scheduled again
// while it ran is not changed. If its handler succeeded, its notification is stored
// nevertheless.
func (a *Alarms) write(decided []*work.Decided, wakeups *work.Wakeups) []sqldb.Stmt {
	var g group
	for _, d := range decided {
		f, o := d.Own.(*fire), d.Outcome.(*outcome)
		g.ids = append(g.ids, d.ID)
		g.all = append(g.all, f.fired())
		if !f.rescheduled() {
			a.gather(&g, f, o)
		}
		if !f.rescheduled() || o.event.Kind == NotifyFired {
			g.notices = append(g.notices, a.notices(*f.row, o.event)...)
		}
		switch {
		case f.rescheduled():
			wakeups.Woken(d.Queue)
		case o.delay != nil:
			wakeups.At(d.Queue, a.rt.Clock.Now().Add(*o.delay))
		case !f.plan.next.IsZero():
			wakeups.At(d.Queue, f.plan.next)
		}
	}
	return a.statements(&g)
}

func (f *fire) fired() store.FiredAlarm {
	return store.FiredAlarm{Item: f.row.Item, Generation: f.row.Generation}
}

// gather adds the outcome of one alarm to a group.
func (a *Alarms) gather(g *group, f *fire, o *outcome) {
	message := o.event.Error
	if o.event.Kind != NotifyFired {
		g.attempts = append(g.attempts, store.FailedStep{ID: f.row.Item, Number: f.row.Attempts + f.row.Crashes + 1, Error: message, Took: o.took})
	}
	switch recurs := !f.plan.next.IsZero(); {
	case o.event.Kind == NotifyFired && !recurs:
		g.done = append(g.done, f.fired())
	case o.event.Kind == NotifyFired:
		g.advanced = append(g.advanced, store.AdvancedAlarm{FiredAlarm: f.fired(), Next: f.plan.next, CaughtUp: f.plan.caughtUp})
	case o.delay != nil || !recurs:
		g.failed = append(g.failed, store.FailedAlarm{FiredAlarm: f.fired(), Error: message, Took: o.took, Delay: o.delay})
	default:
		// A tick that failed permanently is stored as a separate dead letter, so that the
		// alarm can continue with its next tick.
		g.deadLetters = append(g.deadLetters, a.rt.Store.InsertDeadAlarm(f.fired(), f.row.AlarmKey, work.NewID(), f.row.ID+tickSuffix(*f.row), f.row.Payload, message, f.row.Attempts+f.row.Crashes+1)...)
		g.advanced = append(g.advanced, store.AdvancedAlarm{FiredAlarm: f.fired(), Next: f.plan.next, CaughtUp: f.plan.caughtUp, Error: &message})
	}
}

func (a *Alarms) statements(g *group) []sqldb.Stmt {
	st, now := a.rt.Store, a.rt.Now()
	var stmts []sqldb.Stmt
	if len(g.attempts) > 0 {
		stmts = append(stmts, st.Alarms().RecordFailed(a.runner.ID, g.attempts, now)...)
	}
	stmts = append(stmts, g.deadLetters...)
	if len(g.done) > 0 {
		stmts = append(stmts, st.FinishAlarms(g.done)...)
	}
	if len(g.advanced) > 0 {
		stmts = append(stmts, st.AdvanceAlarms(g.advanced))
	}
	if len(g.failed) > 0 {
		stmts = append(stmts, st.TryAlarms(g.failed, now))
	}
	stmts = append(stmts, st.ResetAlarmCrashes(g.all), st.Alarms().Ready(g.ids)) // includes alarms that a CommitWith function of this transaction has scheduled again
	return append(stmts, g.notices...)
}

// quarantine makes an alarm that has crashed too many processes a dead letter.
func (a *Alarms) quarantine(ctx context.Context, tx sqldb.Tx, item, message string, _ *work.Wakeups) error {
	var row store.Alarm
	err := tx.Run(ctx, append(a.rt.Store.QuarantineAlarm(item, message, a.rt.Now()), a.rt.Store.GetAlarmItem(item, func(r store.Alarm) { row = r }))...)
	if err != nil {
		return err
	}
	e := quarantined(row, a.rt.Clock.Now())
	a.mu.Lock()
	a.dead[row.String()] = e // passed to happened after the commit
	a.mu.Unlock()
	return tx.Run(ctx, a.notices(row, e)...)
}

// crashed counts an expired claim that this process returned. If the alarm was
// quarantined, it publishes the notification.
func (a *Alarms) crashed(c work.Crash) {
	a.counts.crashed.Add(1)
	if !c.Quarantined {
		return
	}
	a.mu.Lock()
	e, known := a.dead[c.ID]
	delete(a.dead, c.ID)
	a.mu.Unlock()
	if known {
		a.emit(e)
	}
}
