package task

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/perdure/perdure/internal/core"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/failpoint"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/retry"
)

// execute runs a task to its end. An error means that it did not get there.
func (w *Worker) execute(ctx context.Context, t store.Task) error {
	c, err := parseContract(t.Payload)
	if err != nil {
		return err
	}
	if t.Type != functionType {
		return w.send(ctx, t, c)
	}
	if c.Function == "" {
		return refusedf("payload has no db_function")
	}
	return w.finish(ctx, t, c.Function, t.Payload, outcome{})
}

// finish ends a task: the function, the errors, what the sender has added and the end
// are one transaction.
func (w *Worker) finish(ctx context.Context, t store.Task, function, payload string, out outcome) error {
	finish := func(s session) error {
		if err := w.conclude(s, t, function, payload, out.Error); err != nil || len(out.added) == 0 {
			return err
		}
		return core.RunAdditions[any](s.unit(), out.added)
	}
	if len(out.added) > 0 {
		return w.hold(ctx, t, w.holdUnit, finish)
	}
	return w.holding(ctx, t, finish)
}

// conclude calls the function that ends a task. message is an error to be recorded.
func (w *Worker) conclude(s session, t store.Task, function, payload, message string) error {
	now := w.rt.Now()
	if message != "" {
		s.add(w.rt.Store.AppendTaskError(t.ID, t.Token, edge.Message(message), now))
	}
	if function != "" {
		e, err := s.call(function, payload)
		if err != nil {
			return err
		}
		if e.ValidationFailure != "" {
			s.add(w.rt.Store.AppendTaskError(t.ID, t.Token, edge.Message(function+": "+e.ValidationFailure), now))
		}
	}
	s.add(w.rt.Store.CompleteTask(t.ID, t.Token, now))
	return nil
}

// send prepares, sends and has the result noted. What was sent before, and only
// not noted, is not sent again.
func (w *Worker) send(ctx context.Context, t store.Task, c contract) error {
	out, done, err := w.outcome(ctx, t, c)
	if done || err != nil {
		return err
	}
	if err := failpoint.Hit("task.sent"); err != nil {
		return err
	}
	err = w.note(ctx, t, c, out)
	if store.SQLState(err) == outcomeTooLarge {
		out.Result = unstorable(err)
		err = w.note(ctx, t, c, out)
	}
	if err != nil && len(out.added) == 0 { // otherwise it is sent again, with the same key
		err = &unnotedError{out, err}
	}
	return err
}

// outcomeTooLarge is PostgreSQL's code for an outcome above queues.max_outcome_bytes.
// The database writes JSON with spaces, so it can refuse a result that deliver accepts.
const outcomeTooLarge = "54000"

// note has the handler take note of an outcome, and ends the task.
func (w *Worker) note(ctx context.Context, t store.Task, c contract, out outcome) error {
	handler, report := c.Success, map[string]any{"original_payload": json.RawMessage(t.Payload), "worker_payload": out.Result}
	if out.Error != "" {
		handler, report = c.Error, map[string]any{"original_payload": json.RawMessage(t.Payload), "error": out.Error}
	}
	payload, err := json.Marshal(report)
	if err != nil {
		return fmt.Errorf("encode the handler's payload: %w", err)
	}
	return w.finish(ctx, t, handler, string(payload), out)
}

// unstorable returns what stands for the result of a send that cannot be stored. It
// was sent, whatever the sender returned.
func unstorable(err error) json.RawMessage {
	raw, _ := json.Marshal(map[string]string{"note": edge.Message("the sender's result cannot be stored: " + err.Error())}) // a text always can
	return raw
}

// outcome returns what came of the send: now, or in an earlier run. done says
// that the before-handler has ended the task.
func (w *Worker) outcome(ctx context.Context, t store.Task, c contract) (out outcome, done bool, err error) {
	if t.Outcome != nil {
		if err := json.Unmarshal([]byte(*t.Outcome), &out); err != nil {
			return out, false, refusedf("stored outcome is malformed: %w", err)
		}
		return out, false, nil
	}
	input, done, err := w.before(ctx, t, c.Before)
	if done || err != nil {
		return out, done, err
	}
	result, added, err := w.deliver(ctx, t, input)
	if err != nil && context.Cause(ctx) != nil {
		return out, false, err
	}
	if _, asked := retry.Delay(err); asked {
		if _, more := w.delay(t, err); more {
			return out, false, err
		}
	}
	if err != nil {
		return outcome{Error: edge.Message(err.Error())}, false, nil
	}
	return outcome{Result: result, added: added}, false, nil
}

// before runs the before-handler. If it refuses, the task ends there.
func (w *Worker) before(ctx context.Context, t store.Task, handler string) (input json.RawMessage, done bool, err error) {
	if handler == "" {
		return json.RawMessage(t.Payload), false, nil
	}
	err = w.holding(ctx, t, func(s session) error {
		e, err := s.call(handler, t.Payload)
		if err != nil {
			return err
		}
		input, done = e.Payload, e.ValidationFailure != ""
		if done {
			now := w.rt.Now()
			s.add(w.rt.Store.AppendTaskError(t.ID, t.Token, edge.Message(handler+": "+e.ValidationFailure), now), w.rt.Store.CompleteTask(t.ID, t.Token, now))
		}
		return nil
	})
	if input == nil {
		input = json.RawMessage("null")
	}
	return input, done, err
}

// deliver calls the sender. A panic is an error; what hangs is left behind.
func (w *Worker) deliver(ctx context.Context, t store.Task, input json.RawMessage) (json.RawMessage, []func(any) error, error) {
	ctx, additions := core.WithAdditions(ctx)
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, infoKey{}, w.info(t)), w.options.Timeout)
	defer cancel()
	results := make(chan any, 1)
	err := core.CallWithin(ctx, w.rt.Clock, patience, func(ctx context.Context) error {
		result, err := w.options.Senders[t.Type](ctx, input)
		results <- result
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	raw, err := edge.Marshal("result", <-results, 0)
	if err != nil {
		raw = unstorable(err)
	}
	return raw, additions.Close(), nil
}

func (w *Worker) info(t store.Task) Info {
	return Info{
		ID: t.ID, Type: t.Type, Key: fmt.Sprintf("task-%d-%d", t.ID, t.Enqueued.UnixMicro()), Attempt: t.Attempts + 1, Crashes: t.Crashes,
		Enqueued: t.Enqueued.UTC(), Scheduled: t.Scheduled.UTC(),
	}
}
