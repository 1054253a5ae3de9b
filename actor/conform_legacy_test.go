package actor_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/perdure/perdure/actor"
	"github.com/perdure/perdure/actor/boltkv"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/statechart"
)

// kv opens a storage of actor-kit with some actors.
func kv(t *testing.T, actors map[actor.Ref]map[string]string) *boltkv.KV {
	t.Helper()
	store, err := boltkv.Open(filepath.Join(t.TempDir(), "kv.db"))
	enginetest.NoError(t, err)
	t.Cleanup(func() { _ = store.Close() })
	for ref, values := range actors {
		for key, value := range values {
			enginetest.NoError(t, store.Put(enginetest.Context(t), ref, key, []byte(value)))
		}
	}
	return store
}

func legacyActor(ref actor.Ref) map[string]string {
	return map[string]string{
		actor.KeyType: ref.Type, actor.KeyID: `"` + ref.ID + `"`, actor.KeyCaller: `{"type":"client","id":"alice"}`, actor.KeyInput: `{"n":1}`,
		actor.KeySnapshot: `{"status":"active","value":"on","context":{"public":{"count":7}},"historyValue":{},"children":{}}`,
	}
}

func (Conformance) Case52ActorsOfActorKitAreImportedOnce(t *testing.T, db enginetest.Database) {
	options := &actor.Options{Legacy: kv(t, map[actor.Ref]map[string]string{lamp: legacyActor(lamp)})}
	f := newFixture(t, db, options)
	f.register(t, "toggle", toggle, nil)
	ctx := enginetest.Context(t)
	view, err := f.actors.Snapshot(ctx, lamp, alice)
	enginetest.NoError(t, err)
	equal(t, "public", *jsonOf(t, view.Public), `{"count":7}`)
	equal(t, "value", f.send(t, lamp, "FLIP").View.Value, any("off"))
	equal(t, "value", f.send(t, lamp, "FLIP").View.Value, any("on"))
	f.reopen(t, options)
	f.register(t, "toggle", toggle, nil)
	f.is(t, lamp, "on") // and not what the storage says
	record, err := f.actors.Get(ctx, lamp)
	enginetest.NoError(t, err)
	equal(t, "origin", record.Origin, "import")
	equal(t, "caller", record.Caller, alice)
	_, err = f.actors.Replay(ctx, lamp)
	enginetest.NoError(t, err)
	_, err = f.actors.Spawn(ctx, lamp, alice, nil, nil)
	enginetest.As[*fault.Duplicate](t, err)
	enginetest.NoError(t, f.actors.Delete(ctx, lamp))
	_, err = f.actors.Snapshot(ctx, lamp, alice)
	enginetest.As[*fault.NotFound](t, err) // nothing is imported twice
}

// The value is what actor-kit's JSON.stringify makes of a snapshot of XState 5 that
// has visited a history state.
func (Conformance) TheSnapshotThatActorKitStoresKeepsItsContext(t *testing.T, db enginetest.Database) {
	const counter = `{"id": "c", "initial": "a", "context": {"public": {"n": 0}}, "states": {"a": {"on": {"GO": "b", "AGAIN": "b.hist"}},
		"b": {"initial": "p", "states": {"p": {}, "hist": {"type": "history"}}, "on": {"BACK": "a"}}}}`
	const stored = `{"status":"active","context":{"public":{"n":41}},"value":"a","children":{},
		"historyValue":{"c.b.hist":[{"id":"c.b.p","key":"p","type":"atomic","states":{},"on":{},"transitions":[],"order":3,"invoke":[],"tags":[]}]},"tags":[]}`
	text := *jsonOf(t, stored) // as a storage keeps a text: a JSON string
	for i, snapshot := range []string{stored, text} {
		ref := actor.Ref{Type: "c", ID: fmt.Sprint(i)}
		values := legacyActor(ref)
		values[actor.KeySnapshot] = snapshot
		f := newFixture(t, enginetest.New(t, db.Name), &actor.Options{Legacy: kv(t, map[actor.Ref]map[string]string{ref: values})})
		f.register(t, "c", counter, nil)
		receipt, err := f.actors.Spawn(enginetest.Context(t), ref, alice, nil, &actor.SpawnOptions{IfAbsent: true})
		enginetest.NoError(t, err)
		equal(t, "public", *jsonOf(t, receipt.View.Public), `{"n":41}`)
		equal(t, "value", f.send(t, ref, "GO").View.Value != any("a"), true)
	}
}

func (Conformance) WhatCannotBeReadIsAnErrorAndNeverANewActor(t *testing.T, db enginetest.Database) {
	broken := map[string]func(map[string]string){
		"no snapshot":        func(v map[string]string) { delete(v, actor.KeySnapshot) },
		"no input":           func(v map[string]string) { delete(v, actor.KeyInput) },
		"no caller":          func(v map[string]string) { delete(v, actor.KeyCaller) },
		"no type":            func(v map[string]string) { delete(v, actor.KeyType) },
		"only a snapshot":    func(v map[string]string) { s := v[actor.KeySnapshot]; clear(v); v[actor.KeySnapshot] = s },
		"another id":         func(v map[string]string) { v[actor.KeyID] = "other" },
		"half a caller":      func(v map[string]string) { v[actor.KeyCaller] = `{"type":` },
		"half an input":      func(v map[string]string) { v[actor.KeyInput] = `{"n":` },
		"half a snapshot":    func(v map[string]string) { v[actor.KeySnapshot] = `{"status":"active","value":"on","context":{"n":` },
		"a snapshot of null": func(v map[string]string) { v[actor.KeySnapshot] = `null` },
		"no context":         func(v map[string]string) { v[actor.KeySnapshot] = `{"status":"active","value":"on","children":{}}` },
		"no value":           func(v map[string]string) { v[actor.KeySnapshot] = `{"status":"active","context":{},"children":{}}` },
		"an unknown state":   func(v map[string]string) { v[actor.KeySnapshot] = `{"status":"active","value":"dim","context":{}}` },
		"a child reference": func(v map[string]string) {
			v[actor.KeySnapshot] = `{"status":"active","value":"on","context":{},"children":{"kid":{"xstate$$type":1,"id":"kid"}}}`
		},
	}
	actors := map[actor.Ref]map[string]string{}
	for name, spoil := range broken {
		ref := actor.Ref{Type: "toggle", ID: name}
		actors[ref] = legacyActor(ref)
		spoil(actors[ref])
	}
	f := newFixture(t, db, &actor.Options{Legacy: kv(t, actors)})
	f.register(t, "toggle", toggle, nil)
	ctx := enginetest.Context(t)
	for ref := range actors {
		_, err := f.actors.Spawn(ctx, ref, alice, nil, &actor.SpawnOptions{IfAbsent: true})
		enginetest.As[*actor.ImportError](t, err)
		_, err = f.actors.Send(ctx, ref, alice, statechart.Event{Type: "FLIP"}, nil)
		enginetest.As[*actor.ImportError](t, err)
		_, err = f.actors.Snapshot(ctx, ref, alice)
		enginetest.As[*actor.ImportError](t, err)
	}
	equal(t, "actors", db.Rows(t, "perdure", "actors"), 0)
}

// countedKV counts look-ups.
type countedKV struct {
	actor.KVReader
	lookups atomic.Int64
}

func (c *countedKV) GetAll(ctx context.Context, ref actor.Ref, keys []string) (map[string][]byte, error) {
	c.lookups.Add(1)
	return c.KVReader.GetAll(ctx, ref, keys)
}

func (Conformance) AnActorThatExistsIsNotLookedUp(t *testing.T, db enginetest.Database) {
	counted := &countedKV{KVReader: kv(t, nil)}
	f := newFixture(t, db, &actor.Options{Legacy: counted})
	f.register(t, "toggle", toggle, nil)
	ctx := enginetest.Context(t)
	for range 5 {
		_, err := f.actors.Spawn(ctx, lamp, alice, nil, &actor.SpawnOptions{IfAbsent: true})
		enginetest.NoError(t, err)
		f.send(t, lamp, "FLIP")
		f.value(t, lamp)
	}
	equal(t, "look-ups", counted.lookups.Load(), 1)
}

func (Conformance) Case52AnImportedActorGoesOn(t *testing.T, db enginetest.Database) {
	h := &handlers{}
	snapshots := map[string]string{
		"1": `{"status":"active","value":"a","context":{},"historyValue":{},"children":{}}`,
		"2": `{"status":"active","value":"charging","context":{"paid":null},"historyValue":{},
			"children":{"charge":{"src":"charge","syncSnapshot":false,"snapshot":{"status":"active","input":{"amount":5}}}}}`,
	}
	actors := map[actor.Ref]map[string]string{}
	for id, typ := range map[string]string{"1": "w", "2": "shop"} {
		ref := actor.Ref{Type: typ, ID: id}
		actors[ref] = legacyActor(ref)
		actors[ref][actor.KeySnapshot] = snapshots[id]
	}
	f := newFixture(t, db, &actor.Options{Legacy: kv(t, actors)})
	f.register(t, "w", waiter, nil)
	f.register(t, "shop", shop, h.options())
	f.is(t, w1, "a")
	f.pending(t, w1, 1000) // XState does not store delays: they begin again
	shopping := actor.Ref{Type: "shop", ID: "2"}
	f.is(t, shopping, "charging")
	f.pass(t, 1000)
	f.is(t, w1, "fired")
	f.is(t, shopping, "shipping") // the task was started again
	equal(t, "charges", len(h.charges), 1)
	equal(t, "input", string(h.charges[0].Params), `{"amount":5}`)
}
