package actor_test

import (
	"strings"
	"testing"

	"github.com/perdure/perdure/actor"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/statechart"
)

func (Conformance) ARunawayEventFailsItsActorWithATypedError(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	f.register(t, "w", runaway, nil)
	f.spawn(t, w1)
	ctx := enginetest.Context(t)
	_, err := f.actors.Send(ctx, w1, alice, statechart.Event{Type: "GO"}, &actor.SendOptions{Key: "once"})
	enginetest.Is(t, err, statechart.ErrRunaway)
	equal(t, "limit", enginetest.As[*statechart.LimitError](t, err).Limit, statechart.LimitEvents)
	f.failed(t, w1, "machine exceeds the limit of 10000 events")
	f.is(t, w1, "a") // the state before the event
	f.pending(t, w1)
	entries := f.log(t, w1, 1)
	equal(t, "entries", len(entries), 1)
	equal(t, "kind", entries[0].Kind, actor.EntryLimit)
	receipt, err := f.actors.Send(ctx, w1, alice, statechart.Event{Type: "GO"}, &actor.SendOptions{Key: "once"})
	enginetest.NoError(t, err)
	equal(t, "duplicate", receipt.Duplicate, true)
	equal(t, "dropped", f.send(t, w1, "SAFE").Dropped, true)
	f.reopen(t, nil)
	f.register(t, "w", runaway, nil)
	_, err = f.actors.Replay(ctx, w1)
	enginetest.NoError(t, err)
}

func (Conformance) ARunawayDelayFailsItsActorAlone(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	f.register(t, "w", runaway, nil)
	f.register(t, "toggle", chain, nil)
	f.spawn(t, w1)
	f.spawn(t, lamp)
	f.pass(t, 60_000)
	f.is(t, lamp, "d")
	f.failed(t, w1, "machine exceeds the limit of 10000 events")
	f.pending(t, w1)
}

func (Conformance) AMachineThatGrowsFailsItsActorAlone(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, &actor.Options{Limits: actor.Limits{MaxContext: 100_000}})
	f.register(t, "w", `{"context": {"s": "x"}, "on": {"E": {"actions": [
		{"type": "xstate.assign", "params": {"assignment": {"s": {"$expr": "context.s + context.s"}}}}, {"type": "xstate.raise", "params": {"event": {"type": "E"}}}]}}}`, nil)
	f.register(t, "toggle", toggle, nil)
	f.spawn(t, w1)
	f.spawn(t, lamp)
	_, err := f.actors.Send(enginetest.Context(t), w1, alice, statechart.Event{Type: "E"}, nil)
	equal(t, "limit", enginetest.As[*statechart.LimitError](t, err).Limit, statechart.LimitContext)
	f.failed(t, w1, "machine exceeds the limit of a context of 100000 bytes")
	f.send(t, lamp, "FLIP")
	f.is(t, lamp, "on")
	_, err = f.actors.Replay(enginetest.Context(t), w1)
	enginetest.NoError(t, err)
}

func (Conformance) AMachineThatExceedsALimitWhenItStartsIsNotCreated(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	f.register(t, "w", `{"entry": {"type": "xstate.raise", "params": {"event": {"type": "E"}}}, "on": {"E": {"actions":
		{"type": "xstate.sendTo", "params": {"actorRef": "#_self", "event": {"type": "E"}}}}}}`, nil)
	_, err := f.actors.Spawn(enginetest.Context(t), w1, alice, nil, nil)
	enginetest.As[*statechart.LimitError](t, err)
	equal(t, "actors", db.Rows(t, "perdure", "actors"), 0)
}

func (Conformance) AStepHasATimeLimit(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	stop := &actor.TypeOptions{Machine: statechart.Options{Interrupt: func() func() bool { return func() bool { return true } }}}
	f.register(t, "w", `{"on": {"E": {"actions": [`+strings.Repeat(`{"type": "xstate.log", "params": {"message": "x"}},`, 50)+`{"type": "xstate.log", "params": {"message": "x"}}]}}}`, stop)
	f.spawn(t, w1)
	_, err := f.actors.Send(enginetest.Context(t), w1, alice, statechart.Event{Type: "E"}, nil)
	equal(t, "limit", enginetest.As[*statechart.LimitError](t, err).Limit, statechart.LimitTime)
	f.failed(t, w1, "machine exceeds the time limit of a step")
}

// runaway has two actors that answer each other without end.
const runaway = `{
	"id": "w", "initial": "a",
	"invoke": {"src": "echo", "id": "echo"},
	"states": {"a": {"after": {"60000": {"actions": {"type": "xstate.sendTo", "params": {"to": "echo", "event": {"type": "PING"}}}}}, "on": {"SAFE": "b"}}, "b": {}},
	"on": {"GO": {"actions": {"type": "xstate.sendTo", "params": {"to": "echo", "event": {"type": "PING"}}}}, "PONG": {"actions": {"type": "xstate.sendTo", "params": {"to": "echo", "event": {"type": "PING"}}}}},
	"machines": {"echo": {"id": "echo", "initial": "x", "states": {"x": {"on": {"PING": {"actions": {"type": "xstate.sendTo", "params": {"to": "#_parent", "event": {"type": "PONG"}}}}}}}}}
}`

// failed ends the test unless an actor has failed with a reason.
func (f *fixture) failed(t testing.TB, ref actor.Ref, reason string) {
	t.Helper()
	record, err := f.actors.Get(enginetest.Context(t), ref)
	enginetest.NoError(t, err)
	if record.Status != actor.Failed || !strings.HasPrefix(record.Reason, reason) {
		t.Fatalf("actor is %s: %q, want error: %q", record.Status, record.Reason, reason)
	}
}
