package actor_test

import (
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/actor"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/statechart"
)

// toggle is a switch that counts.
const toggle = `{
	"id": "toggle", "initial": "off", "context": {"public": {"count": 0}},
	"states": {
		"off": {"on": {"FLIP": {"target": "on", "actions": {"type": "xstate.assign", "params": {"assignment": {"public": {"count": {"$expr": "context.public.count + 1"}}}}}}}},
		"on": {"on": {"FLIP": "off"}}
	}
}`

var lamp = actor.Ref{Type: "toggle", ID: "lamp"}

func (Conformance) SpawnAndSendMoveAnActor(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	f.register(t, "toggle", toggle, nil)
	r := f.spawn(t, lamp)
	equal(t, "created", r.Created, true)
	equal(t, "version", r.Sequence, int64(1))
	equal(t, "value", r.View.Value, any("off"))
	equal(t, "value", f.send(t, lamp, "FLIP").View.Value, any("on"))
	r = f.send(t, lamp, "FLIP")
	equal(t, "version", r.Sequence, int64(3))
	equal(t, "stored value", f.value(t, lamp), any("off"))
}

func (Conformance) AnotherProcessSeesAndMovesTheSameActor(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	f.register(t, "toggle", toggle, nil)
	f.spawn(t, lamp)
	f.send(t, lamp, "FLIP")
	g := *f
	g.reopen(t, nil)
	g.register(t, "toggle", toggle, nil)
	equal(t, "value", g.send(t, lamp, "FLIP").View.Value, any("off"))
	equal(t, "value in the first process", f.send(t, lamp, "FLIP").View.Value, any("on"))
}

func (Conformance) SpawningTwiceIsRefusedOrTheSame(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	f.register(t, "toggle", toggle, nil)
	f.spawn(t, lamp)
	_, err := f.actors.Spawn(enginetest.Context(t), lamp, system, nil, nil)
	enginetest.As[*fault.Duplicate](t, err)
	r, err := f.actors.Spawn(enginetest.Context(t), lamp, system, nil, &actor.SpawnOptions{IfAbsent: true})
	enginetest.NoError(t, err)
	equal(t, "created", r.Created, false)
	equal(t, "version", r.Sequence, int64(1))
}

func (Conformance) AUnitOfWorkMovesActorsOrDoesNot(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	f.register(t, "toggle", toggle, nil)
	flip := func(tx *perdure.Tx) error {
		_, err := f.actors.SpawnIn(tx, lamp, system, nil, nil)
		enginetest.NoError(t, err)
		for range 3 {
			_, err = f.actors.SendIn(tx, lamp, system, statechart.Event{Type: "FLIP"}, nil)
			enginetest.NoError(t, err)
		}
		return nil
	}
	stop := fault.Invalidf("unit", "is given up")
	err := f.eng.Update(enginetest.Context(t), func(tx *perdure.Tx) error {
		_ = flip(tx)
		return stop
	})
	enginetest.Is(t, err, stop)
	_, err = f.actors.Snapshot(enginetest.Context(t), lamp, system)
	enginetest.As[*fault.NotFound](t, err)
	enginetest.NoError(t, f.eng.Update(enginetest.Context(t), flip))
	equal(t, "value", f.value(t, lamp), any("on"))
	equal(t, "value", f.send(t, lamp, "FLIP").View.Value, any("off"))
}

func (Conformance) AKeyIsHandledOnce(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	f.register(t, "toggle", toggle, nil)
	f.spawn(t, lamp)
	for i := range 3 {
		r, err := f.actors.Send(enginetest.Context(t), lamp, alice, statechart.Event{Type: "FLIP"}, &actor.SendOptions{Key: "k1"})
		enginetest.NoError(t, err)
		equal(t, "duplicate", r.Duplicate, i > 0)
		equal(t, "version", r.Sequence, int64(2))
	}
	equal(t, "value", f.value(t, lamp), any("on"))
}

func (Conformance) TypesThatAreDataAreKnownToEveryProcess(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	d, err := f.actors.StoreStatechart(enginetest.Context(t), "toggle", []byte(toggle), nil)
	enginetest.NoError(t, err)
	equal(t, "version", d.Version, int64(1))
	g := *f
	g.reopen(t, nil)
	g.spawn(t, lamp)
	equal(t, "value", f.send(t, lamp, "FLIP").View.Value, any("on"))
	d, err = g.actors.StoreStatechart(enginetest.Context(t), "toggle", []byte(toggle), nil)
	enginetest.NoError(t, err)
	equal(t, "version of the same document", d.Version, int64(1))
	d, err = g.actors.StoreStatechart(enginetest.Context(t), "toggle", []byte(`{"initial":"x","states":{"x":{}}}`), nil)
	enginetest.NoError(t, err)
	equal(t, "version of another document", d.Version, int64(2))
	equal(t, "value of an actor of version 1", f.send(t, lamp, "FLIP").View.Value, any("off"))
	r := f.spawn(t, actor.Ref{Type: "toggle", ID: "new"})
	equal(t, "value of a new actor", r.View.Value, any("x"))
}

func (Conformance) AKeyIsForOneEventOfOneCaller(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	f.register(t, "toggle", toggle, nil)
	f.spawn(t, lamp)
	ada, bob := actor.Caller{Kind: actor.Client, ID: "ada"}, actor.Caller{Kind: actor.Client, ID: "bob"}
	flip := statechart.Event{Type: "FLIP"}
	send := func(caller actor.Caller, event statechart.Event) (actor.Receipt, error) {
		return f.actors.Send(enginetest.Context(t), lamp, caller, event, &actor.SendOptions{Key: "k1"})
	}
	r, err := send(ada, flip)
	enginetest.NoError(t, err)
	equal(t, "duplicate", r.Duplicate, false)
	r, err = send(ada, flip)
	enginetest.NoError(t, err)
	equal(t, "duplicate", r.Duplicate, true)
	_, err = send(ada, statechart.Event{Type: "FLOP"})
	enginetest.As[*actor.KeyError](t, err)
	_, err = send(bob, flip)
	enginetest.As[*actor.KeyError](t, err)
	equal(t, "value", f.value(t, lamp), any("on"))
}
