package pull

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/core"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/tracing"
	"github.com/perdure/perdure/internal/work"
)

// errSilent is the result of an outcome of which it is not known whether it was committed.
var errSilent = errors.New("the outcome may not be committed")

// verdict is the decision of a worker, or of its end, about a task.
type verdict struct {
	outcome any
	digest  string
	err     error
}

// task is a claimed item that a worker does. The lock of the broker guards session, cancelled,
// digest, handed and missing.
type task struct {
	broker *Broker
	runner string // the runner that claimed it
	key    string // the name under which it is served
	item   *work.Item
	work   Work
	// decode checks an outcome and returns it.
	decode func(body json.RawMessage) (any, error)

	session   *session
	cancelled string // why the worker must stop it
	digest    string // of the outcome that the worker has sent
	handed    time.Time
	missing   int

	decided chan verdict  // receives the verdict
	ended   chan struct{} // is closed when the claim has ended
	err     error         // of the end, after ended is closed
}

// finish sends the verdict about a task. Only the first counts.
func (t *task) finish(v verdict) bool {
	select {
	case t.decided <- v:
		return true
	default:
		return false
	}
}

// do offers an item to the workers, waits for its outcome, and returns it. The outcome is committed
// with a receipt.
func (b *Broker) do(ctx context.Context, runner, key string, w Work, decode func(json.RawMessage) (any, error)) (any, error) {
	item := work.ItemOf(ctx)
	if item == nil {
		return nil, errors.New("the handler has no item")
	}
	w.Token = item.Token + "." + item.ID
	if trace := tracing.Of(ctx); trace != nil {
		w.Trace = *trace
	}
	t := &task{
		broker: b, runner: runner, key: key, item: item, work: w, decode: decode,
		decided: make(chan verdict, 1), ended: make(chan struct{}),
	}
	item.Claim.Ended = t.end
	if !b.offer(t) {
		return nil, work.ErrReturned
	}
	return t.await(ctx)
}

// await waits for the verdict.
func (t *task) await(ctx context.Context) (any, error) {
	timer := clock.System.NewTimer(patience)
	defer timer.Stop()
	for {
		select {
		case v := <-t.decided:
			return t.accept(v)
		case <-timer.C():
			if t.broker.withdraw(t) {
				return nil, &work.LaterError{Reason: fmt.Sprintf("no worker for %s is free", t.key), Delay: patience}
			}
		case <-ctx.Done():
			return t.interrupted(ctx)
		}
	}
}

func (t *task) accept(v verdict) (any, error) {
	if v.err == nil || v.digest != "" {
		t.item.Receipt = &store.Receipt{Token: t.work.Token, Digest: v.digest}
	}
	return v.outcome, v.err
}

// interrupted tells the worker that the work was cancelled or lost. Work that was cancelled waits
// for a short time until the worker has stopped it.
func (t *task) interrupted(ctx context.Context) (any, error) {
	cause := context.Cause(ctx)
	if t.broker.withdraw(t) {
		return nil, ctx.Err()
	}
	reason := "lost"
	switch {
	case errors.Is(cause, core.ErrTaken):
		reason = "cancelled"
	case errors.Is(cause, core.ErrStopping):
		reason = "stopping"
	}
	t.broker.cancel(t, reason)
	if reason != "cancelled" {
		return nil, ctx.Err()
	}
	timer := clock.System.NewTimer(farewell)
	defer timer.Stop()
	select {
	case <-t.decided:
	case <-timer.C():
	}
	return nil, ctx.Err()
}

// end is called when the claim has ended.
func (t *task) end(err error) {
	t.broker.forget(t)
	t.err = err
	close(t.ended)
}

// result returns the status of the outcome after the claim has ended.
func (t *task) result() (string, error) {
	switch {
	case t.err == nil && t.item.Receipt != nil:
		return Accepted, nil
	case t.err == nil, errors.Is(t.err, core.ErrLost):
		return Stale, nil
	}
	return "", errSilent
}

// crash returns the verdict for a task whose worker has crashed, together with others.
func crash(s *session, t *task, with []*task) verdict {
	c := &work.CrashError{Program: "worker " + s.name}
	for _, other := range with {
		switch {
		case other.runner != t.runner:
		case other.item.Suspect():
			c.Suspects++
		default:
			c.Others++
		}
	}
	return verdict{err: c}
}
