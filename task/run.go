package task

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/core"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/failpoint"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/tracing"
	"github.com/perdure/perdure/internal/work"
	"github.com/perdure/perdure/retry"
)

// patience is the time after which a sender that does not return is abandoned, counted
// from the cancellation of its context.
const patience = 10 * time.Second

// attempt is a task that is running.
type attempt struct {
	*work.Item
	w    *Worker
	task *store.Task
	ctx  context.Context // context of the claim
	span tracing.Span
	out  *outcome // outcome of the send
}

func taskOf(i *work.Item) *store.Task { return i.Row.(*store.Task) }

// begin runs a claimed task, to completion or to its next attempt.
func (w *Worker) begin(ctx context.Context, i *work.Item) {
	t := taskOf(i)
	traced, span := w.rt.Tracer.Process(ctx, w.rt.Clock.Now(), tracing.Work{
		Kind: "task", Name: t.Type, ID: i.ID, Attempt: t.Attempts + 1, Trace: t.Trace, Created: t.Enqueued,
	})
	a := &attempt{Item: i, w: w, task: t, ctx: ctx, span: span}
	last, err := a.execute(traced)
	if err != nil || last == nil {
		a.executed(err)
		return
	}
	w.commit(traced, i, last, a.executed)
}

// executed records the failure of a task that could not be run to completion, and
// finishes the claim.
func (a *attempt) executed(err error) {
	if a.out != nil && isTooLarge(err) {
		a.out.Result = unstorable(err)
		if last, again := a.note(); again == nil {
			err = a.w.committed(a.ctx, a.Item, last)
		}
	}
	if err != nil && a.out != nil && len(a.out.added) == 0 { // otherwise it is sent again, with the same key
		err = &unnotedError{*a.out, err}
	}
	a.span.End(err)
	switch cause := context.Cause(a.ctx); {
	case err == nil: // the outcome is committed; later heartbeats do not find the claim
		a.end(nil)
	case errors.Is(cause, core.ErrLost):
		a.end(core.ErrLost) // another worker may have claimed the task: this outcome would be stale
	case errors.Is(err, core.ErrLost), errors.As(err, new(absentError)):
		a.end(err)
	case errors.Is(cause, core.ErrStopping):
		a.end(core.ErrStopping)
	default:
		a.Claim.Failed = true
		a.fail(err)
	}
}

// end finishes the claim of a task. If the outcome was not committed, the task is
// returned to the queue.
func (a *attempt) end(err error) {
	end := func(err error) { a.w.runner.End(a.Item, err) }
	if err == nil {
		a.w.rt.Hub.Notify(topic, time.Time{}) // it may have enqueued other tasks
		err = failpoint.Hit("task.settled")
	}
	switch {
	case err == nil:
		end(nil)
	case errors.Is(err, core.ErrStopping):
		a.w.runner.Release(a.Item, end)
	default:
		a.w.runner.Lose(a.Item, err, end)
	}
}

// fail records an error of a task that could not be run to completion. The task is
// retried if its policy allows it.
func (a *attempt) fail(failure error) {
	f := store.TaskFailure{Message: edge.Message(failure.Error()), Outcome: outcomeOf(failure)}
	if delay, more := a.delay(failure); more {
		f.Delay = &delay
	}
	a.w.commit(a.ctx, a.Item, &step{failure: &f}, func(err error) {
		if isTooLarge(err) {
			f.Outcome = outcomeOf(&unnotedError{outcome: outcome{Result: unstorable(err)}})
			err = a.w.committed(a.ctx, a.Item, &step{failure: &f})
		}
		a.end(err)
	})
}

// delay returns the delay before the next attempt of a failed task, if there is one.
func (a *attempt) delay(failure error) (time.Duration, bool) {
	return a.w.options.Retry.Decide(a.task.Attempts+1, failure, a.w.options.Random())
}

// execute runs a task up to its last step and returns that step. The step is nil if the
// before-handler has finished the task.
func (a *attempt) execute(ctx context.Context) (*step, error) {
	c, err := parseContract(a.task.Payload)
	switch {
	case err != nil:
		return nil, err
	case a.task.Type != functionType:
		return a.send(ctx, c)
	case c.Function == "":
		return nil, refusedf("payload must have db_function")
	}
	return &step{function: c.Function, payload: a.task.Payload}, nil
}

// send prepares and sends, and returns the step that records the result. If an earlier
// run has sent but not recorded the result, nothing is sent again.
func (a *attempt) send(ctx context.Context, c contract) (*step, error) {
	out, done, err := a.outcome(ctx, c)
	if done || err != nil {
		return nil, err
	}
	if err := failpoint.Hit("task.sent"); err != nil {
		return nil, err
	}
	out.contract = c
	a.out = &out
	return a.note()
}

// isTooLarge reports whether an outcome is larger than queues.max_outcome_bytes. The
// database writes JSON with spaces, so it can reject a result that deliver accepts.
func isTooLarge(err error) bool {
	const tooLarge = "54000"
	var raised *store.TaskFunctionError
	return store.SQLState(err) == tooLarge || errors.As(err, &raised) && raised.Code == tooLarge
}

// note returns the step that calls the handler with the outcome and finishes the task.
func (a *attempt) note() (*step, error) {
	original := json.RawMessage(a.task.Payload)
	handler, report := a.out.contract.Success, map[string]any{"original_payload": original, "worker_payload": a.out.Result}
	if a.out.Error != "" {
		handler, report = a.out.contract.Error, map[string]any{"original_payload": original, "error": a.out.Error}
	}
	payload, err := json.Marshal(report)
	if err != nil {
		return nil, fmt.Errorf("encode payload of handler: %w", err)
	}
	return &step{function: handler, payload: string(payload), message: a.out.Error, added: a.out.added}, nil
}

// unstorable returns a replacement for a result that cannot be stored. The send has
// succeeded in any case.
func unstorable(err error) json.RawMessage {
	raw, _ := json.Marshal(map[string]string{"note": edge.Message("result of the sender cannot be stored: " + err.Error())}) // a string can always be encoded
	return raw
}

// outcome returns the outcome of the send, of this or an earlier run. done is true if
// the before-handler has finished the task.
func (a *attempt) outcome(ctx context.Context, c contract) (out outcome, done bool, err error) {
	t := a.task
	if t.Outcome != nil {
		if err := json.Unmarshal([]byte(*t.Outcome), &out); err != nil {
			return out, false, refusedf("stored outcome is malformed: %w", err)
		}
		return out, false, nil
	}
	input := json.RawMessage(t.Payload)
	if c.Before != "" {
		s := &step{function: c.Before, payload: t.Payload, before: true}
		if err := a.w.committed(ctx, a.Item, s); err != nil || s.ends() {
			return out, true, err
		}
		if input = s.envelope.Payload; input == nil {
			input = json.RawMessage("null")
		}
	}
	result, added, err := a.deliver(ctx, input)
	if err != nil && context.Cause(ctx) != nil {
		return out, false, err
	}
	if _, asked := retry.Delay(err); asked {
		if _, more := a.delay(err); more {
			return out, false, err
		}
	}
	if err != nil {
		return outcome{Error: edge.Message(err.Error())}, false, nil
	}
	return outcome{Result: result, added: added}, false, nil
}

// deliver calls the sender. A panic becomes an error; a sender that hangs is abandoned.
func (a *attempt) deliver(ctx context.Context, input json.RawMessage) (json.RawMessage, []func(*perdure.Tx) error, error) {
	w, t := a.w, a.task
	additions := &core.Additions{}
	if w.eng != nil {
		ctx, additions = core.WithAdditions(ctx)
	}
	ctx = context.WithValue(ctx, infoKey{}, info(t))
	var result any
	done := make(chan error, 1)
	go a.Claim.Call(ctx, core.Limits{Timeout: w.options.Timeout, Patience: patience}, func(ctx context.Context) (err error) {
		result, err = w.options.Senders[t.Type](ctx, input)
		return err
	}, func(err error) { done <- err })
	if err := <-done; err != nil {
		return nil, nil, err
	}
	raw, err := edge.Marshal("result", result, 0)
	if err != nil {
		raw = unstorable(err)
	}
	var added []func(*perdure.Tx) error
	for _, fn := range additions.Close() {
		added = append(added, func(tx *perdure.Tx) error { return fn(tx) })
	}
	return raw, added, nil
}

func info(t *store.Task) Info {
	return Info{
		ID: text(t.ID), Type: t.Type, Key: fmt.Sprintf("task-%d-%d", t.ID, t.Enqueued.UnixMicro()), Attempt: t.Attempts + 1, Crashes: t.Crashes,
		Enqueued: t.Enqueued.UTC(), Scheduled: t.Scheduled.UTC(),
	}
}
