package actor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/effect"
	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/statechart"
)

// handle registers the effects and invocations of a machine for which this process has
// handlers. Other effects and invocations wait for a process that has their handlers.
//
// Versions of a stored statechart may name different handlers, so the handlers of all versions
// are registered.
func (a *Actors) handle(k *kind) {
	if a.runner == nil { // this process only administers actors
		return
	}
	a.handleEvents(k)
	effects, tasks := k.machine.Effects(), k.machine.Invocations()
	if k.data {
		effects, tasks = slices.Collect(maps.Keys(k.effects)), slices.Collect(maps.Keys(k.tasks))
	}
	for _, name := range effects {
		if e, has := k.effects[name]; has {
			a.runner.Handle(k.hookName(effectPrefix, name), effect.Handler{Run: runEffect(name, e), Timeout: e.Timeout})
		}
	}
	for _, name := range tasks {
		if t, has := k.tasks[name]; has {
			a.runner.Handle(k.hookName(taskPrefix, name), effect.Handler{Run: k.runTask(name, t), Timeout: t.Timeout, Finish: a.finish})
		}
	}
}

func runEffect(name string, e Effect) func(context.Context, store.Hook) (any, error) {
	return func(ctx context.Context, row store.Hook) (any, error) {
		call, _, err := callOf(name, row)
		if err != nil {
			return nil, err
		}
		return nil, e.Run(ctx, call)
	}
}

func (k *kind) runTask(name string, t Invocation) func(context.Context, store.Hook) (any, error) {
	return func(ctx context.Context, row store.Hook) (any, error) {
		call, _, err := callOf(name, row)
		if err != nil {
			return nil, err
		}
		output, err := t.Run(ctx, call)
		if err != nil {
			return nil, err
		}
		return result("output of invocation "+name, output, k.options.MaxEvent)
	}
}

// result converts the output of an invocation to the canonical values of machines.
func result(field string, v any, most int) (any, error) {
	raw, err := edge.Marshal(field, v, most)
	if err != nil {
		return nil, err
	}
	return decoded(raw)
}

func callOf(name string, row store.Hook) (Call, work, error) {
	var w work
	if err := json.Unmarshal([]byte(row.Payload), &w); err != nil {
		return Call{}, w, fmt.Errorf("decode payload: %w", err)
	}
	return Call{
		Actor: w.Actor, Path: w.Path, Name: name, Params: w.Params, Key: row.ID, Attempt: row.Attempts + 1,
		MaxAttempts: row.MaxAttempts, Crashes: row.Crashes, Created: row.Created.UTC(),
	}, w, nil
}

// finish commits the result of an invocation and the transition that it causes. As in all
// transactions, it locks the actor's row first.
func (a *Actors) finish(ctx context.Context, end effect.Ending) error {
	_, w, err := callOf("", end.Row)
	if err != nil {
		return err
	}
	j := &job{ref: w.Actor, trace: end.Row.Trace}
	j.run = func(t *turn) error { return t.finish(w, end, nil) }
	var b *batch
	err = a.eng.Update(ctx, func(tx *perdure.Tx) error {
		b = a.newBatch(host.In(tx))
		if err := b.lock([]*job{j}); err != nil {
			return err
		}
		if err := end.Record(b.run); err != nil {
			return err
		}
		if err := end.Add(tx); err != nil {
			return err
		}
		if err := b.perform(j); !expected(err, b.turns[j.ref]) {
			return err
		}
		if t := b.turns[j.ref]; t != nil { // the invocation has finished and need not be stopped
			t.stops = slices.DeleteFunc(t.stops, func(id string) bool { return id == end.Row.ID })
		}
		return b.write()
	})
	if err == nil {
		b.remember()
	}
	return err
}

// expected reports whether the result of an invocation may be committed although no actor
// received it. That is the case if the actor no longer exists or was quarantined because of the
// result.
func expected(err error, t *turn) bool {
	var missing *fault.NotFound
	return err == nil || t == nil && errors.As(err, &missing) || t != nil && t.reason != nil
}

// finish passes the result of an invocation to the machine.
func (t *turn) finish(w work, end effect.Ending, by *Caller) error {
	t.advance(t.nowMillis())
	if end.Err == nil {
		e := entry{kind: EntryDone, event: end.Result, path: w.Path, generation: w.Generation, caller: by}
		_, err := t.step(e, func(now int64) (*statechart.Step, error) {
			return t.tree.Complete(now, w.Path, w.Generation, end.Result)
		})
		return t.quarantineOn(err)
	}
	reason := rejection(end.Err, t.kind.options.MaxEvent)
	e := entry{kind: EntryError, event: reason, path: w.Path, generation: w.Generation, caller: by}
	_, err := t.step(e, func(now int64) (*statechart.Step, error) { return t.tree.Fail(now, w.Path, w.Generation, reason) })
	return t.quarantineOn(err)
}

// rejection returns an error as the value that the machine receives.
func rejection(err error, most int) any {
	var own *Rejection
	if errors.As(err, &own) {
		if v, bad := result("error of invocation", own.Value, most); bad == nil {
			return v
		}
	}
	return map[string]any{"$error": edge.Message(err.Error())}
}
