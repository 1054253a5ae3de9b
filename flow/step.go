package flow

import (
	"context"
	"errors"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/core"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/journal"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/retry"
)

// StepOption configures a step.
type StepOption func(*stepOptions)

type stepOptions struct {
	retry  retry.Policy
	within time.Duration
	once   bool
}

// DefaultTimeout is the time limit of steps that set none.
const DefaultTimeout = 5 * time.Minute

// patience is the time after which a step that does not return is abandoned, counted from its
// time limit.
const patience = 10 * time.Second

// Retry sets the retry policy of a step. Default: the policy of the definition.
func Retry(p retry.Policy) StepOption { return func(o *stepOptions) { o.retry = p } }

// Within sets the time limit of an attempt of a step. After that time its context is cancelled and
// the attempt fails. Default: DefaultTimeout. Transactions have a limit of 30 s.
func Within(d time.Duration) StepOption { return func(o *stepOptions) { o.within = d } }

// Once makes a step run at most once. Its start is recorded first. If the process crashes while it
// runs, the step returns a *StepError that is ErrInterrupted. It is not retried.
func Once() StepOption { return func(o *stepOptions) { o.once = true } }

func optionsOf(all []StepOption) stepOptions {
	o := stepOptions{within: DefaultTimeout}
	for _, set := range all {
		set(&o)
	}
	return o
}

// attempt is one attempt of a step.
type attempt struct {
	root   *root
	run    *Run
	key    string
	kind   store.JournalKind
	number int
	began  time.Time
	o      stepOptions
}

// Step runs a function once, and records its result. fn may run more than once before it is
// recorded: after a failure, by the retry policy, and after a crash. The result must survive its
// JSON form: Step returns the decoded result in the first run too.
//
// A failed attempt does not occupy the process: the function ends, and runs again when the step is
// due. If the step has no attempts left, or fails with retry.Stop, Step returns a *StepError.
func Step[T any](run *Run, name string, fn func(ctx context.Context) (T, error), options ...StepOption) (T, error) {
	key, recorded := run.enter(name, store.JournalStep)
	return perform(&attempt{root: run.root, run: run, key: key, kind: store.JournalStep, o: optionsOf(options)}, recorded, fn)
}

// Tx runs a function in a transaction and records its result in the same transaction. The rows
// that fn writes commit exactly once. fn may run more than once, like the function of
// Engine.Update, and must have no side effect outside its Tx. Otherwise Tx is like Step.
func Tx[T any](run *Run, name string, fn func(tx *perdure.Tx) (T, error), options ...StepOption) (T, error) {
	key, recorded := run.enter(name, store.JournalTx)
	return transact(&attempt{root: run.root, run: run, key: key, kind: store.JournalTx, o: optionsOf(options)}, recorded, fn)
}

// perform runs a step, or returns its recorded result. The lock is held.
func perform[T any](a *attempt, recorded bool, fn func(ctx context.Context) (T, error)) (T, error) {
	if recorded {
		return result[T](a)
	}
	if err := a.begin(); err != nil {
		var none T
		return none, err
	}
	ctx, cancel := context.WithTimeout(a.context(), a.o.within)
	defer cancel()
	watch := time.AfterFunc(a.o.within+patience, a.abandon)
	a.run.inStep = true
	var value T
	var text string
	err := core.Call(func() (err error) {
		if value, err = fn(ctx); err == nil {
			text, err = encode(value, a.root.session.Limit())
		}
		return err
	})
	a.run.inStep = false
	<-a.root.slots
	if !watch.Stop() {
		a.root.abort() // it was abandoned
	}
	a.root.mu.Lock()
	if a.root.ended {
		if err == nil && a.root.decided != nil { // its effect is known as long as the decision is not committed
			a.root.record(a.row(&text, nil))
		}
		a.root.unwind()
	}
	if err == nil {
		a.root.record(a.row(&text, nil))
		a.root.mu.Unlock()
		a.root.lost()
		a.root.mu.Lock()
		return result[T](a)
	}
	return failed[T](a, err)
}

// transact runs a transaction step, or returns its recorded result. The lock is held.
func transact[T any](a *attempt, recorded bool, fn func(tx *perdure.Tx) (T, error)) (T, error) {
	if recorded {
		return result[T](a)
	}
	if err := a.prepare(); err != nil {
		var none T
		return none, err
	}
	err := a.commit(func(tx *perdure.Tx) (store.JournalRow, error) {
		value, err := fn(tx)
		if err != nil {
			return store.JournalRow{}, err
		}
		text, err := encode(value, a.root.session.Limit())
		row := a.row(&text, nil)
		a.root.mu.Lock()
		row.Seq = a.root.seq + 1
		a.root.mu.Unlock()
		return row, err
	})
	a.root.mu.Lock()
	if err != nil {
		return failed[T](a, err)
	}
	return result[T](a)
}

// commit commits a transaction step with everything that is pending.
func (a *attempt) commit(fn func(tx *perdure.Tx) (store.JournalRow, error)) error {
	r := a.root
	r.commits.Lock()
	defer r.commits.Unlock()
	p := r.takePending()
	var row store.JournalRow
	a.began = r.session.Clock().Now()
	a.run.inStep = true
	err := r.session.Transact(p, func(tx *perdure.Tx) (_ store.JournalRow, err error) {
		row, err = fn(tx)
		return row, err
	})
	a.run.inStep = false
	var failure *journal.StepError
	switch {
	case err == nil:
		r.mu.Lock()
		defer r.mu.Unlock()
		r.seq = max(r.seq, row.Seq)
		r.rows[row.Key] = row
		return nil
	case errors.As(err, &failure):
		r.mu.Lock()
		defer r.mu.Unlock()
		r.pending = merge(p, r.pending)
		return failure.Err
	}
	r.abort()
	return err
}

func merge(a, b journal.Progress) journal.Progress {
	return journal.Progress{
		Reset: a.Reset || b.Reset, Rows: append(a.Rows, b.Rows...), Consumed: append(a.Consumed, b.Consumed...), Children: append(a.Children, b.Children...),
	}
}

// prepare checks whether the step may run. It unlocks the run. A step that waits for its next
// attempt ends the goroutine.
func (a *attempt) prepare() error {
	r := a.root
	if r.cancelled && !r.undoing {
		r.mu.Unlock()
		return ErrCancelled
	}
	if f, ok := r.rows[a.key+"!"]; ok {
		a.number = f.Attempt
		if due, err := decode[time.Time]("due time", edge.Value(f.Result)); err == nil && due.After(r.now()) {
			r.park(wait{until: due, err: errors.New(edge.Value(f.Error)), failures: f.Attempt})
		}
	}
	a.number++
	if _, begun := r.rows[a.key+"^"]; begun {
		message := ErrInterrupted.Error()
		r.record(a.row(nil, &message))
		defer r.mu.Unlock()
		return a.failure(message)
	}
	if a.o.once {
		now := r.session.Clock().Now()
		r.record(store.JournalRow{Key: a.key + "^", Kind: store.JournalOnce, Attempt: 1, Began: now, Ended: now})
	}
	r.mu.Unlock()
	return nil
}

// begin waits until the step may have effects: what happened before is committed, and the number
// of running steps allows another one. It unlocks the run.
func (a *attempt) begin() error {
	if err := a.prepare(); err != nil {
		return err
	}
	a.root.flush()
	a.root.lost()
	select {
	case a.root.slots <- struct{}{}:
	case <-a.root.ctx.Done():
		a.root.lost()
	}
	a.began = a.root.session.Clock().Now()
	return nil
}

// context returns the context of the step. Compensation also runs after a cancellation.
func (a *attempt) context() context.Context {
	return context.WithValue(a.root.ctx, stepKey{}, stepInfo{key: a.root.derived(a.key), attempt: a.number})
}

// row returns the record of the step.
func (a *attempt) row(text, message *string) store.JournalRow {
	now := a.root.session.Clock().Now()
	if a.began.IsZero() {
		a.began = now
	}
	return store.JournalRow{Key: a.key, Kind: a.kind, Attempt: a.number, Result: text, Error: message, Began: a.began, Ended: now}
}

// failed decides about a failed attempt. The lock is held.
func failed[T any](a *attempt, err error) (T, error) {
	var none T
	if again := a.fail(err); again != nil {
		a.root.park(*again)
	}
	a.root.mu.Unlock()
	return none, a.failure(edge.Message(err.Error()))
}

// fail records a failed attempt. It returns the wait for the next one, or nil if there is none.
// The lock must be held.
func (a *attempt) fail(err error) *wait {
	r := a.root
	if r.ended {
		r.unwind()
	}
	if r.session.Context().Err() != nil { // the attempt was cut off
		r.end(journal.End{Kind: journal.Unwound})
	}
	policy := a.o.retry
	if policy.IsZero() {
		r.mu.Unlock()
		policy = r.session.Policy()
		r.mu.Lock()
	}
	message := edge.Message(err.Error())
	delay, again := policy.Decide(a.number, err, r.session.Random())
	if !again || a.o.once {
		r.record(a.row(nil, &message))
		return nil
	}
	due := r.session.Clock().Now().Add(delay)
	text, _ := encode(due, 100)
	row := a.row(&text, &message)
	row.Key, row.Kind = a.key+"!", store.JournalFailure
	r.record(row)
	return &wait{until: due, err: err, failures: a.number}
}

// failure returns the error of the step.
func (a *attempt) failure(message string) *StepError {
	return &StepError{Step: a.key, Attempts: a.number, Message: message, interrupted: message == ErrInterrupted.Error()}
}

// abandon ends the run because the step does not return. It waits for a commit that is in progress,
// because its rows precede those of the decision. It ends its goroutine.
func (a *attempt) abandon() {
	r := a.root
	r.commits.Lock()
	defer r.commits.Unlock()
	defer r.hand(r.session.Abandon)
	r.mu.Lock()
	if r.ended { // by another branch, whose decision waits for the step
		r.unwind()
	}
	cause := &core.AbandonedError{Cause: context.DeadlineExceeded}
	end := journal.End{Kind: journal.Retried, Err: cause, Failures: a.number, Wait: new(time.Duration(0))}
	if again := a.fail(cause); again != nil {
		end.Wait = new(max(again.until.Sub(r.session.Clock().Now()), 0))
	}
	r.end(end)
}

// result returns the recorded result of the step. The lock is held.
func result[T any](a *attempt) (T, error) {
	row := a.root.rows[a.key]
	a.number = row.Attempt
	if row.Error != nil {
		a.root.mu.Unlock()
		var none T
		return none, a.failure(*row.Error)
	}
	value, err := decode[T]("result of "+a.key, edge.Value(row.Result))
	if err != nil {
		a.root.diverged("%v", err)
	}
	a.root.mu.Unlock()
	return value, nil
}

// encode returns a value as JSON text.
func encode(value any, limit int) (string, error) {
	raw, err := edge.Marshal("result", value, limit)
	if err != nil {
		return "", retry.Stop(err)
	}
	return string(raw), nil
}
