package actor_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/actor"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/statechart"
)

// next is waiter after a release that calls state a something else.
var next = strings.ReplaceAll(waiter, `"a"`, `"alpha"`)

func renamed(_ int64, snapshot []byte) ([]byte, error) {
	text := strings.ReplaceAll(string(snapshot), `"w.a"`, `"w.alpha"`)
	return []byte(strings.ReplaceAll(text, `"value":"a"`, `"value":"alpha"`)), nil
}

func (Conformance) ALiveActorIsMigratedWhenItIsMoved(t *testing.T, db enginetest.Database) {
	for policy, want := range map[actor.TimerPolicy][]int64{actor.KeepTimers: {1000}, actor.RestartTimers: {1400}, actor.DropTimers: {1400}} {
		f := newFixture(t, enginetest.New(t, db.Name), nil)
		f.register(t, "w", waiter, nil)
		f.spawn(t, w1)
		f.clock.Advance(400 * time.Millisecond)
		f.reopen(t, nil)
		f.register(t, "w", next, &actor.TypeOptions{Version: 2, Migrate: renamed, MigrateTimers: policy, SystemEvents: true})
		f.send(t, w1, "UNKNOWN")
		f.is(t, w1, "alpha")
		f.pending(t, w1, want...)
		record, err := f.actors.Get(enginetest.Context(t), w1)
		enginetest.NoError(t, err)
		equal(t, "machine", record.Machine, int64(2))
		f.pass(t, want[0]-400)
		f.is(t, w1, "fired") // the delay is of the new state
		var kinds []string
		for _, e := range f.log(t, w1, 1) {
			kinds = append(kinds, string(e.Kind)+string(e.Event))
		}
		equal(t, "log", fmt.Sprint(kinds[:2]), `[migrate{"from":1,"to":2} event{"type":"MIGRATE"}]`)
		_, err = f.actors.Replay(enginetest.Context(t), w1)
		enginetest.NoError(t, err)
	}
}

func (Conformance) AnActorThatDoesNotSuitTheNewMachineIsQuarantinedAlone(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	f.register(t, "w", waiter, nil)
	w2 := actor.Ref{Type: "w", ID: "2"}
	f.spawn(t, w1)
	f.spawn(t, w2)
	f.send(t, w2, "OUT")
	quiet := &actor.Options{OnDamage: func(actor.Damage) {}}
	f.reopen(t, quiet)
	f.register(t, "w", next, &actor.TypeOptions{Version: 2})
	_, err := f.actors.Send(enginetest.Context(t), w1, system, statechart.Event{Type: "OUT"}, nil)
	enginetest.As[*actor.QuarantinedError](t, err)
	f.send(t, w2, "BACK") // its state is in both
	f.is(t, w2, "alpha")
	f.reopen(t, quiet)
	f.register(t, "w", next, &actor.TypeOptions{Version: 3, Migrate: renamed})
	enginetest.NoError(t, f.actors.Resume(enginetest.Context(t), w1, system))
	f.is(t, w1, "alpha")
	f.send(t, w1, "OUT")
	f.is(t, w1, "b")
}

func (Conformance) AnOlderReleaseLeavesNewerActorsAlone(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	f.register(t, "w", waiter, &actor.TypeOptions{Version: 2})
	f.spawn(t, w1)
	f.reopen(t, nil)
	f.register(t, "w", waiter, nil)
	_, err := f.actors.Send(enginetest.Context(t), w1, system, statechart.Event{Type: "OUT"}, nil)
	equal(t, "version", enginetest.As[*actor.VersionError](t, err).Has, int64(2))
	equal(t, "fired", f.pass(t, 5000), 0)
	at, err := f.actors.NextWakeAt(enginetest.Context(t))
	enginetest.NoError(t, err)
	equal(t, "is asked again, but not at once", at.After(f.clock.Now()), true)
	f.reopen(t, nil)
	f.register(t, "w", waiter, &actor.TypeOptions{Version: 2})
	equal(t, "fired", f.process(t), 1)
}

func (Conformance) ManyNewerActorsDoNotHideTheOthers(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	f.register(t, "w", waiter, &actor.TypeOptions{Version: 2})
	for i := range 9 {
		f.spawn(t, actor.Ref{Type: "w", ID: fmt.Sprint("new", i)})
	}
	f.clock.Advance(time.Millisecond)
	f.reopen(t, &actor.Options{Batch: 4})
	f.register(t, "w", waiter, nil)
	f.spawn(t, w1) // it is due after all of them
	equal(t, "fired", f.pass(t, 1000), 1)
	f.is(t, w1, "fired")
	f.reopen(t, nil)
	f.register(t, "w", waiter, &actor.TypeOptions{Version: 2})
	equal(t, "fired by the newer release", f.pass(t, 1001), 9)
}

func (Conformance) DocumentsOfAllVersionsRunSideBySide(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	ctx := enginetest.Context(t)
	for i, ms := range []int{1000, 2000} {
		document := strings.ReplaceAll(waiter, `"1000"`, fmt.Sprintf(`"%d"`, ms))
		d, err := f.actors.StoreStatechart(ctx, "w", []byte(document), &actor.StatechartOptions{LogRetention: 5})
		enginetest.NoError(t, err)
		equal(t, "version", d.Version, int64(i+1))
		f.spawn(t, actor.Ref{Type: "w", ID: fmt.Sprint(i)})
	}
	f.reopen(t, nil)
	equal(t, "fired at 1000", f.pass(t, 1000), 1)
	equal(t, "fired at 2000", f.pass(t, 1000), 1)
	documents, err := f.actors.Statecharts(ctx)
	enginetest.NoError(t, err)
	equal(t, "documents", len(documents), 1)
	equal(t, "retention", documents[0].Options.LogRetention, 5)
	_, err = f.actors.StoreStatechart(ctx, "w", []byte(`{"initial": "a", "states": {"a": {"entry": "unknown"}}}`), nil)
	enginetest.As[*fault.Invalid](t, err)
	equal(t, "machines", db.Rows(t, "perdure", "machines"), 2)
}

func (Conformance) AnActorOfADocumentIsUpgradedOnRequest(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	ctx := enginetest.Context(t)
	register := func(document string) {
		_, err := f.actors.StoreStatechart(ctx, "w", []byte(document), nil)
		enginetest.NoError(t, err)
	}
	register(waiter)
	f.spawn(t, w1)
	enginetest.NoError(t, f.actors.Upgrade(ctx, w1, system)) // it has the newest
	equal(t, "entries", len(f.log(t, w1, 0)), 1)
	register(next)
	enginetest.As[*fault.Invalid](t, f.actors.Upgrade(ctx, w1, system)) // which has no state a
	f.is(t, w1, "a")
	register(strings.ReplaceAll(waiter, `"b": {"on": {`, `"b": {"on": {"MORE": "fired", `))
	enginetest.NoError(t, f.actors.Upgrade(ctx, w1, system))
	f.pending(t, w1, 1000)
	f.send(t, w1, "OUT")
	f.send(t, w1, "MORE")
	f.is(t, w1, "fired")
	record, err := f.actors.Get(ctx, w1)
	enginetest.NoError(t, err)
	equal(t, "machine", record.Machine, int64(3))
	_, err = f.actors.Replay(ctx, w1)
	enginetest.NoError(t, err)
}

func (Conformance) TheRulesOfAnActorsOwnVersionCount(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	ctx := enginetest.Context(t)
	_, err := f.actors.StoreStatechart(ctx, "w", []byte(waiter), nil)
	enginetest.NoError(t, err)
	f.spawn(t, w1) // this process has seen version 1
	g := *f
	g.reopen(t, nil)
	strict := &actor.StatechartOptions{Events: map[actor.CallerKind][]string{actor.Client: {}}}
	_, err = g.actors.StoreStatechart(ctx, "w", []byte(waiter), strict)
	enginetest.NoError(t, err)
	w2 := actor.Ref{Type: "w", ID: "2"}
	g.spawn(t, w2)
	_, err = f.actors.Send(ctx, w2, alice, statechart.Event{Type: "OUT"}, nil)
	enginetest.As[*fault.Restricted](t, err)
	f.is(t, w2, "a")
}

func (Conformance) DocumentsUseTheHandlersOfTheProcess(t *testing.T, db enginetest.Database) {
	rang := 0
	options := &actor.Options{Effects: map[string]actor.Effect{"ring": {Run: func(context.Context, actor.Call) error { rang++; return nil }}}}
	f := newFixture(t, db, options)
	_, err := f.actors.StoreStatechart(enginetest.Context(t), "w", []byte(`{"initial": "a", "states": {"a": {"entry": "ring"}}}`), nil)
	enginetest.NoError(t, err)
	f.spawn(t, w1)
	f.reopen(t, options) // a process that only dispatches
	equal(t, "processed", f.process(t), 1)
	equal(t, "rang", rang, 1)
}

func (Conformance) ADocumentForOthersHoldsUpNobody(t *testing.T, db enginetest.Database) {
	ring := &actor.Options{Effects: map[string]actor.Effect{"ring": {Run: func(context.Context, actor.Call) error { return nil }}}}
	f := newFixture(t, db, ring)
	ctx := enginetest.Context(t)
	_, err := f.actors.StoreStatechart(ctx, "w", []byte(strings.ReplaceAll(waiter, `"b": {`, `"b": {"entry": "ring", `)), nil)
	enginetest.NoError(t, err)
	f.spawn(t, w1)
	reports := 0
	f.reopen(t, &actor.Options{OnError: func(error) { reports++ }})
	f.register(t, "toggle", chain, nil)
	f.spawn(t, lamp)
	f.pass(t, 1000)
	f.is(t, lamp, "d")
	f.is(t, w1, "a")
	_, err = f.actors.Send(ctx, w1, alice, statechart.Event{Type: "OUT"}, nil)
	enginetest.As[*fault.NotFound](t, err)
	equal(t, "reports", reports, 1)
	f.reopen(t, ring)
	f.process(t)
	f.is(t, w1, "fired")
}

// What is wrong with a definition is told when it is registered.
func (Conformance) Case6To12BadMachinesAreRefusedWithTheirPlace(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	for name, c := range map[string]struct{ document, place string }{
		"6 after object":   {`{"initial": "a", "states": {"a": {"after": {"delay": 1000, "target": "b"}}, "b": {}}}`, "machine.states.a.after"},
		"8 action":         {`{"initial": "a", "states": {"a": {"entry": "nope"}}}`, "machine.states.a.entry"},
		"8 guard":          {`{"initial": "a", "states": {"a": {"on": {"E": {"target": "a", "guard": "nope"}}}}}`, "machine.states.a.on.E"},
		"8 actor":          {`{"initial": "a", "states": {"a": {"invoke": {"src": "nope"}}}}`, "machine.states.a.invoke"},
		"8 delay":          {`{"initial": "a", "states": {"a": {"after": {"nope": "a"}}}}`, "machine.states.a.after"},
		"9 null":           {`{"initial": "a", "states": {"a": {"on": {"E": null}}}}`, "machine.states.a.on.E"},
		"11 unreachable":   {`{"initial": "a", "states": {"a": {}, "b": {}}}`, "machine.states.b"},
		"11 duplicate id":  {`{"initial": "a", "states": {"a": {"id": "x", "on": {"E": "b"}}, "b": {"id": "x"}}}`, "machine.states"},
		"12 cycle":         {`{"initial": "a", "states": {"a": {"always": "b"}, "b": {"always": "a"}}}`, "machine.states"},
		"unknown key":      {`{"initial": "a", "states": {"a": {"onn": {}}}}`, "machine.states.a.onn"},
		"deep":             {strings.Repeat(`{"initial": "a", "states": {"a": `, 10_000) + "{}" + strings.Repeat("}}", 10_000), ""},
		"not JSON":         {`{`, ""},
		"fractional delay": {`{"initial": "a", "states": {"a": {"after": {"0.5": "a"}}}}`, "machine.states.a.after"},
	} {
		for _, register := range []func() error{
			func() error { return f.actors.Register("bad", []byte(c.document), nil) },
			func() error {
				_, err := f.actors.StoreStatechart(enginetest.Context(t), "bad", []byte(c.document), nil)
				return err
			},
		} {
			err := register()
			var invalid *fault.Invalid
			if !errors.As(err, &invalid) || !strings.Contains(err.Error(), c.place) {
				t.Errorf("%s: %v, want a *fault.Invalid at %s", name, err, c.place)
			}
		}
	}
	equal(t, "machines", db.Rows(t, "perdure", "machines"), 0)
}

func (Conformance) Case7And10ArrayDelaysAndKeyOrder(t *testing.T, db enginetest.Database) {
	f := timed(t, db, `{"id": "w", "initial": "a", "states": {"a": {"after": [{"delay": 1000, "target": "b"}]}, "b": {}}}`)
	f.pending(t, w1, 1000)
	f.register(t, "order", `{"type": "parallel", "states": {"z": {"entry": {"type": "xstate.log", "params": {"value": "z"}}}, "2": {"entry": {"type": "xstate.log", "params": {"value": "2"}}},
		"a": {"entry": {"type": "xstate.log", "params": {"value": "a"}}}, "1": {"entry": {"type": "xstate.log", "params": {"value": "1"}}}}}`, nil)
	var order []any
	for _, l := range f.spawn(t, actor.Ref{Type: "order", ID: "x"}).Output.Logs {
		order = append(order, l.Value)
	}
	equal(t, "order", fmt.Sprint(order), "[1 2 z a]")
}
