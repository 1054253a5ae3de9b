package effect

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/core"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/tracing"
	"github.com/perdure/perdure/internal/work"
	"github.com/perdure/perdure/retry"
)

// outcome is the outcome of an attempt.
type outcome struct {
	row *store.Hook
	// status is the final status of the hook. If it is empty, the hook is retried after
	// delay.
	status string
	delay  time.Duration
	err    string // the error of a failed attempt
	took   time.Duration
}

// begin runs the handler of a claimed hook and commits the outcome.
func (r *Runner) begin(ctx context.Context, i *work.Item) {
	row := i.Row.(*store.Hook)
	if row.Sealed != nil {
		r.Unreadable(i, row.Sealed, work.SealedDelay)
		return
	}
	handler := r.handler(row.Name)
	var result any
	e := work.Execution{
		Work:    tracing.Work{Kind: r.options.Kind, Name: row.Name, ID: row.ID, Attempt: row.Attempts + 1, Trace: row.Trace, Created: row.Created},
		Timeout: handler.Timeout,
		Run: func(ctx context.Context) (err error) {
			if handler.Run == nil { // it was removed after the claim
				return work.ErrReturned
			}
			result, err = handler.Run(ctx, *row)
			return err
		},
		Decide: func(err error, began time.Time) any { return r.decide(row, err, began) },
	}
	if handler.Finish != nil {
		e.Finish = func(o any, err error, with []func(*perdure.Tx) error) func(context.Context, *work.Apart) error {
			if o.(*outcome).status == "" {
				return nil
			}
			end := Ending{Row: *row, Err: err, with: with}
			if err == nil { // an abandoned handler may still write its result
				end.Result = result
			}
			return func(ctx context.Context, a *work.Apart) error {
				end.apart = a
				return handler.Finish(ctx, end)
			}
		}
	}
	r.Execute(ctx, i, e)
}

// decide returns the outcome of an attempt.
func (r *Runner) decide(row *store.Hook, err error, began time.Time) *outcome {
	o := &outcome{row: row, status: store.StatusDone, took: max(r.rt.Clock.Now().Sub(began), 0)}
	if err == nil {
		return o
	}
	o.status, o.err = store.StatusFailed, edge.Message(err.Error())
	var policy retry.Policy
	if unread := json.Unmarshal([]byte(row.Policy), &policy); unread != nil {
		o.err = edge.Message(o.err + "\ndecode retry policy: " + unread.Error())
		return o
	}
	if delay, again := policy.Decide(row.Attempts+1, err, r.options.Random()); again {
		o.status, o.delay = "", delay
	}
	return o
}

// Record writes the final outcome. run executes statements in the transaction of Finish.
// Record returns core.ErrLost if the claim is lost; Finish must then write nothing.
func (e Ending) Record(run func(...sqldb.Stmt) error) error {
	if err := e.apart.Verify(run); err != nil {
		return err
	}
	return e.apart.Write(run)
}

// Add runs the functions that the handler has added with CommitWith, in the transaction
// of Finish. It is called after Record.
func (e Ending) Add(tx *perdure.Tx) error { return core.RunAdditions(tx, e.with) }

// lock returns the statement that locks the hooks whose outcomes change their rows.
// Cancel locks the hook too. So a cancellation is either visible to reads after this
// lock, or waits for the transaction of the outcome.
func (r *Runner) lock(group []*work.Decided, all bool) []sqldb.Stmt {
	var ids []string
	for _, d := range group {
		if o, ok := d.Outcome.(*outcome); all || !ok || o.status != store.StatusDone {
			ids = append(ids, d.ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	return []sqldb.Stmt{r.rt.Store.Hooks().Lock(ids)}
}

// write returns the statements of a group of outcomes.
func (r *Runner) write(group []*work.Decided, wakeups *work.Wakeups) []sqldb.Stmt {
	var ends []store.HookEnd
	var tried []store.FailedHook
	var attempts []store.FailedStep
	var ready []string
	for _, d := range group {
		o := d.Outcome.(*outcome)
		if o.status != "" {
			end := store.HookEnd{ID: d.ID, Status: o.status, Created: o.row.Created, Took: &o.took}
			if o.err != "" {
				end.Error = &o.err
			}
			ends = append(ends, end)
		}
		if o.status == store.StatusDone {
			continue
		}
		failure := store.FailedHook{ID: d.ID, Error: o.err, Took: o.took}
		if o.status == "" {
			failure.Delay = &o.delay
			ready = append(ready, d.ID)
			wakeups.At(d.Queue, r.rt.Clock.Now().Add(o.delay))
		}
		tried = append(tried, failure)
		attempts = append(attempts, store.FailedStep{ID: d.ID, Number: o.row.Attempts + o.row.Crashes + 1, Error: o.err, Took: o.took})
	}
	st, now := r.rt.Store, r.rt.Now()
	var stmts []sqldb.Stmt
	if len(tried) > 0 {
		stmts = append(stmts, st.TryHooks(tried, now))
		stmts = append(stmts, st.Hooks().RecordFailed(r.ID, attempts, now)...)
	}
	if len(ready) > 0 {
		stmts = append(stmts, st.Hooks().Ready(ready))
	}
	if len(ends) > 0 { // in the same order as Stop, so that transactions that finish the same hooks do not deadlock
		slices.SortFunc(ends, func(a, b store.HookEnd) int { return strings.Compare(a.ID, b.ID) })
		stmts = append(stmts, st.EndHooks(r.ID, ends, now))
	}
	return stmts
}

// refused makes a hook fail because the database refuses its outcome.
func refused(d *work.Decided, cause error) bool {
	o := d.Outcome.(*outcome)
	if o.status == store.StatusFailed {
		return false
	}
	o.status, o.err = store.StatusFailed, edge.Message(cause.Error())
	return true
}

// quarantine quarantines a hook that has crashed too many processes.
func (r *Runner) quarantine(ctx context.Context, tx sqldb.Tx, id, message string, _ *work.Wakeups) error {
	return tx.Run(ctx, r.rt.Store.QuarantineHook(id, message, r.rt.Now())...)
}
