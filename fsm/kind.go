package fsm

import (
	"context"
	"errors"
	"time"

	"github.com/perdure/perdure/internal/core"
	"github.com/perdure/perdure/internal/journal"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/work"
)

// sweepLimit is the largest number of expired rows of each kind that one claim handles.
const sweepLimit = 100

// claimOutcome is the outcome of a claimed instance.
type claimOutcome struct {
	decision *decision
	unroute  bool // not registered here: parked for another process. Paused: parked until it is resumed
	known    bool // for unroute: the definition is registered here, the step is not
	repark   bool // the instance was retried: it waits again as it did when it finished

	execution *execution
	late      []string // names of signals because of which the instance cannot finish
	// record is the progress of a function that continues. The other fields except execution are
	// then empty.
	record *journal.Progress
}

// kind returns the kind of work that instances are.
func (m *Machines) kind() work.Kind {
	return work.Kind{
		Name: "instance", Family: (*store.Store).Instances, Topic: topic, Begin: m.begin, Write: m.write, Refused: refused, Quarantine: m.quarantine, Next: m.next,
		Prepare: m.record, Read: m.readInboxes, Expire: m.expire, Verify: m.lateSignals, HandOver: m.handOver, Keep: m.keep, Sweep: m.sweep,
		Share: m.share, Spread: m.rt.Store.Spreads(),
	}
}

// readInboxes creates the executions of claimed instances and returns the statements that
// read their signals and the journals of functions.
func (m *Machines) readInboxes(items []*work.Item) []sqldb.Stmt {
	ids := make([]string, len(items))
	executions := make(map[string]*execution, len(items))
	for i, item := range items {
		e := &execution{Item: item, machines: m, instance: item.Row.(*store.Instance)}
		item.Own = e
		ids[i], executions[item.ID] = item.ID, e
	}
	stmts := []sqldb.Stmt{m.rt.Store.Inbox(ids, func(g store.Signal) {
		e := executions[g.Target]
		e.inbox = append(e.inbox, g)
	})}
	if functions := m.journaled(executions); len(functions) > 0 {
		stmts = append(stmts, m.rt.Store.ReadJournal(functions, func(r store.JournalRow) {
			e := executions[r.Instance]
			e.journal = append(e.journal, r)
		}))
	}
	return stmts
}

// begin runs steps of an instance in a row, as long as each outcome is Next. It commits
// each outcome before the next step.
func (m *Machines) begin(ctx context.Context, i *work.Item) { m.step(ctx, i.Own.(*execution), 1) }

// step runs the next step of an instance, the n-th in a row.
func (m *Machines) step(ctx context.Context, e *execution, n int) {
	machine := m.lookup(e.instance.FSM, e.instance.Version)
	switch {
	case e.instance.Wait != nil && n == 1:
		m.commitOutcome(e, claimOutcome{repark: true})
	case machine == nil, e.instance.Paused && n == 1: // parked until a process has the definition, or may run it
		m.commitOutcome(e, claimOutcome{unroute: true})
	case !machine.has(e.instance.Step): // a newer binary may have the step
		m.commitOutcome(e, claimOutcome{unroute: true, known: true})
	default:
		e.history, e.began = machine.keepsHistory(), m.rt.Clock.Now()
		machine.execute(ctx, e, func(decided *decision, err error) { m.decided(ctx, e, n, decided, err) })
	}
}

// decided commits the outcome of a step and continues with the next step, if any.
func (m *Machines) decided(ctx context.Context, e *execution, n int, decided *decision, err error) {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, core.ErrTaken): // the outcome is dropped, and the claim ends
		m.release(e, e.kept)
		return
	case errors.Is(cause, core.ErrLost):
		m.runner.Lose(e.Item, cause, e.end)
		return
	case err != nil && errors.Is(cause, core.ErrStopping):
		m.runner.Release(e.Item, e.end)
		return
	case err != nil && m.runner.Undecided(ctx, e.Item, err, e.end):
		return
	case isUnreadable(err):
		m.runner.Unreadable(e.Item, err, m.unreadDelay(err))
		return
	case err != nil:
		decided = failed(err)
	}
	e.Claim.Failed = decided.err != "" && decided.outcome.kind != kindStop
	d := work.Decided{Item: e.Item, Outcome: &claimOutcome{decision: decided, execution: e}, With: decided.outcome.with, Keyed: len(decided.progress.Rows) > 0}
	then := e.end
	if decided.outcome.kind == kindNext && n < m.options.InlineSteps && ctx.Err() == nil {
		d.Inline, then = true, func(err error) { m.advanced(ctx, e, n, decided, err) }
	}
	if len(d.With) > 0 {
		m.commitWith(ctx, e, n, d, then)
		return
	}
	m.runner.CommitOutcome(d, then)
}

// advanced continues with the next step after an inline outcome was committed.
func (m *Machines) advanced(ctx context.Context, e *execution, n int, decided *decision, err error) {
	if err != nil {
		e.end(err)
		return
	}
	e.Claim.Go(func() {
		e.advance(decided)
		e.Claim.Rename(m.systemOf(e.instance))
		m.step(ctx, e, n+1)
	})
}

// commitOutcome commits the outcome of an instance and finishes its claim.
func (m *Machines) commitOutcome(e *execution, s claimOutcome) {
	s.execution = e
	m.runner.CommitOutcome(work.Decided{Item: e.Item, Outcome: &s}, e.end)
}

// end finishes the claim.
func (e *execution) end(err error) { e.machines.runner.End(e.Item, err) }

// write returns the statements of a group of outcomes.
func (m *Machines) write(group []*work.Decided, wakeups *work.Wakeups) []sqldb.Stmt {
	w := newWriting(m, wakeups)
	w.ends.finishes = make([]store.Finish, 0, len(group))
	for _, d := range group {
		w.add(d.Outcome.(*claimOutcome), d.Inline)
	}
	return w.statements()
}

// refused fails an instance whose outcome the database rejects.
func refused(d *work.Decided, cause error) bool {
	s := d.Outcome.(*claimOutcome)
	if s.unroute || s.repark || s.record == nil && s.decision.outcome.kind == kindFail {
		return false
	}
	s.decision, s.record = failed(cause), nil
	return true
}

// lateSignals returns the statements that find signals because of which instances cannot
// finish.
func (m *Machines) lateSignals(group []*work.Decided) []sqldb.Stmt {
	byID := map[string]*work.Decided{}
	for _, d := range group {
		if s, ok := d.Outcome.(*claimOutcome); ok {
			byID[d.ID], s.late, d.Void = d, nil, false
		}
	}
	ends := endings(group)
	if len(ends) == 0 {
		return nil
	}
	return m.rt.Store.LateSignals(ends, func(id, name string) {
		d := byID[id]
		s := d.Outcome.(*claimOutcome)
		s.late, d.Void = append(s.late, name), true
	})
}

// quarantine quarantines an instance that has crashed at least MaxCrashes times.
func (m *Machines) quarantine(ctx context.Context, tx sqldb.Tx, id, message string, wakeups *work.Wakeups) error {
	end := ending{rt: m.rt, wakeups: wakeups}
	if err := tx.Run(ctx, m.rt.Store.GetInstance(id, func(i *store.Instance) { end.add(*i, Quarantined, nil, nil, &message) })); err != nil {
		return err
	}
	return tx.Run(ctx, end.statements(m.rt.Now())...)
}

// next returns the statements that find the next due time of a queue.
func (m *Machines) next(from store.Claim, least int, found func(time.Duration)) []sqldb.Stmt {
	return []sqldb.Stmt{
		m.rt.Store.NextInstance(from.Queue, m.definitions(), least, m.rt.Now(), found),
		m.rt.Store.NextSchedule(m.rt.Now(), found),
	}
}

// transact runs fn in a transaction on a connection that is reserved for claims.
func (a *Admin) transact(ctx context.Context, fn func(sqldb.Tx) error) error {
	return a.machines.runner.Transact(ctx, fn)
}

// read runs statements on a snapshot.
func (a *Admin) read(ctx context.Context, stmts ...sqldb.Stmt) error {
	return a.machines.runner.Read(ctx, stmts...)
}
