// Package kinds tests what every kind of work must do alike. Each test is
// generated over the kinds: a kind that differs fails its row.
package kinds

import (
	"context"
	"encoding/json"
	"maps"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/actor"
	"github.com/perdure/perdure/alarm"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/hook"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/retry"
	"github.com/perdure/perdure/task"
)

// start is the time at which all work of a test is due.
var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// subject is one work item of a kind whose code is a function of the test.
type subject struct {
	t      *testing.T
	eng    *perdure.Engine
	policy retry.Policy
	// run is the user's code. attempt is the number that the kind passes to it.
	run func(ctx context.Context, attempt int) error
	// joins is true if the work is there: this is a further process.
	joins bool
	// add is what the user's code commits with its success. nil: nothing.
	add func(tx *perdure.Tx) error
}

// handle is the code of a handler.
func (s subject) handle(ctx context.Context, attempt int) error {
	if s.add != nil {
		if err := perdure.CommitWith(ctx, s.add); err != nil {
			return err
		}
	}
	return s.run(ctx, attempt)
}

// kind starts a work item and returns the Processor that runs it.
type kind struct {
	start func(s subject) dispatch.Processor
	on    []string
	// lease and since are the columns of the end of a claim and of an earlier time,
	// in the table that has the claims.
	schema, table, lease, since string
}

var (
	everywhere = enginetest.Names
	whole      = []string{enginetest.SQLite, enginetest.Postgres}
)

// kinds are all kinds of work that call functions of users.
var kinds = map[string]kind{
	"hook":       {startHook, everywhere, "perdure", "leases", "expires_at", "claimed_at"},
	"alarm":      {startAlarm, everywhere, "perdure", "leases", "expires_at", "claimed_at"},
	"step":       {startStep, everywhere, "perdure", "leases", "expires_at", "claimed_at"},
	"effect":     {startEffect, everywhere, "perdure", "leases", "expires_at", "claimed_at"},
	"invocation": {startInvocation, everywhere, "perdure", "leases", "expires_at", "claimed_at"},
}

// function is a function of a business process. It has a Tx of its own.
var function = kind{startFunction, []string{enginetest.SQLite}, "queues", "task", "lease_expires_at", "enqueued_at"}

// sender is the sender of a task. Its errors are outcomes of the business process.
var sender = kind{startSender, whole, "queues", "task", "lease_expires_at", "enqueued_at"}

// and returns the kinds and one more.
func and(name string, k kind) map[string]kind {
	all := maps.Clone(kinds)
	all[name] = k
	return all
}

// each runs test once for each kind of work and database.
func each(t *testing.T, kinds map[string]kind, test func(t *testing.T, db enginetest.Database, k kind)) {
	t.Parallel()
	for name, k := range kinds {
		for _, database := range k.on {
			t.Run(name+"/"+database, func(t *testing.T) {
				t.Parallel()
				test(t, enginetest.New(t, database), k)
			})
		}
	}
}

// update commits a unit of work.
func (s subject) update(fn func(tx *perdure.Tx) error) {
	s.t.Helper()
	enginetest.NoError(s.t, s.eng.Update(s.t.Context(), fn))
}

// drained drains the Processor when the test ends.
func (s subject) drained(p interface{ Drain(context.Context) error }) {
	s.t.Cleanup(func() { enginetest.NoError(s.t, p.Drain(context.Background())) })
}

func startHook(s subject) dispatch.Processor {
	hooks, err := hook.New(s.eng, "shop", nil)
	enginetest.NoError(s.t, err)
	s.drained(hooks)
	h, err := hook.Define(hooks, "send", func(ctx context.Context, _ int) error { return s.handle(ctx, hook.FromContext(ctx).Attempt) }, nil)
	enginetest.NoError(s.t, err)
	if !s.joins {
		s.update(func(tx *perdure.Tx) error {
			_, err := h.TriggerIn(tx, 1, &hook.TriggerOptions{Retry: s.policy})
			return err
		})
	}
	return hooks
}

func startAlarm(s subject) dispatch.Processor {
	alarms, err := alarm.New(s.eng, nil)
	enginetest.NoError(s.t, err)
	s.drained(alarms)
	remind, err := alarm.Handle(alarms, "remind", func(ctx context.Context, _ int) error { return s.handle(ctx, alarm.FromContext(ctx).Attempt) }, nil)
	enginetest.NoError(s.t, err)
	if s.joins {
		return alarms
	}
	enginetest.NoError(s.t, remind.Schedule(s.t.Context(), alarm.ID("ada"), 1, &alarm.ScheduleOptions{At: start, Retry: s.policy}))
	return alarms
}

func startStep(s subject) dispatch.Processor {
	machines, err := fsm.New(s.eng, nil)
	enginetest.NoError(s.t, err)
	s.drained(machines)
	d := fsm.Define("order", 1, &fsm.DefinitionOptions[int]{Retry: s.policy}, fsm.Step("pay", func(ctx context.Context, r *fsm.Run[int]) (fsm.Outcome, error) {
		outcome := r.Next("ship")
		if s.add != nil {
			outcome = outcome.With(s.add)
		}
		return outcome, s.run(ctx, r.Attempt)
	}, nil), fsm.Step("ship", func(_ context.Context, r *fsm.Run[int]) (fsm.Outcome, error) { return r.Done(nil), nil }, nil))
	enginetest.NoError(s.t, machines.Register(d))
	if s.joins {
		return machines
	}
	_, err = fsm.Start(s.t.Context(), s.eng, d, 1, nil)
	enginetest.NoError(s.t, err)
	return machines
}

func startEffect(s subject) dispatch.Processor {
	run := func(ctx context.Context, c actor.Call) error { return s.handle(ctx, c.Attempt) }
	return s.actor(`{"initial": "a", "states": {"a": {"entry": {"type": "send"}}}}`, &actor.TypeOptions{
		Effects: map[string]actor.Effect{"send": {Run: run, Retry: s.policy}},
	})
}

func startInvocation(s subject) dispatch.Processor {
	run := func(ctx context.Context, c actor.Call) (any, error) { return nil, s.handle(ctx, c.Attempt) }
	return s.actor(`{"initial": "a", "states": {"a": {"invoke": {"src": "pay"}}}}`, &actor.TypeOptions{
		Invocations: map[string]actor.Invocation{"pay": {Run: run, Retry: s.policy}},
	})
}

func (s subject) actor(document string, o *actor.TypeOptions) dispatch.Processor {
	actors, err := actor.New(s.eng, nil)
	enginetest.NoError(s.t, err)
	s.drained(actors)
	enginetest.NoError(s.t, actors.Register("cart", []byte(document), o))
	if s.joins {
		return actors
	}
	_, err = actors.Spawn(s.t.Context(), actor.Ref{Type: "cart", ID: "1"}, actor.Caller{Kind: actor.System}, nil, nil)
	enginetest.NoError(s.t, err)
	return actors
}

func startSender(s subject) dispatch.Processor {
	worker, err := task.NewWorker(s.eng, &task.Options{Retry: s.policy, Senders: map[string]task.Sender{
		"ship": func(ctx context.Context, _ json.RawMessage) (any, error) {
			return nil, s.handle(ctx, task.FromContext(ctx).Attempt)
		},
	}})
	enginetest.NoError(s.t, err)
	s.drained(worker)
	if !s.joins {
		s.update(func(tx *perdure.Tx) error {
			_, err := task.EnqueueIn(tx, "ship", map[string]string{"task_type": "ship"}, nil)
			return err
		})
	}
	return worker
}

func startFunction(s subject) dispatch.Processor {
	attempt := 0 // functions of the database are not told
	worker, err := task.NewWorker(s.eng, &task.Options{Retry: s.policy, Functions: map[string]task.Function{
		"shop.pay": func(ctx context.Context, _ *perdure.Tx, _ json.RawMessage) (task.Envelope, error) {
			attempt++
			return task.Envelope{Success: true}, s.run(ctx, attempt)
		},
	}})
	enginetest.NoError(s.t, err)
	s.drained(worker)
	s.update(func(tx *perdure.Tx) error {
		_, err := task.EnqueueIn(tx, "db_function", map[string]string{"task_type": "db_function", "db_function": "shop.pay"}, nil)
		return err
	})
	return worker
}
