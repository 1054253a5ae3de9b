package actor_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perdure/perdure/actor"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/statechart"
)

// room keeps what callers say: in public who spoke last, in private what.
const room = `{
	"id": "room", "initial": "on", "context": {"public": {"last": null, "owner": {"$from": "input.caller.id"}}, "private": {}},
	"states": {"on": {"on": {
		"SAY": {"actions": ["note", {"type": "xstate.assign", "params": {"assignment": {
			"public": {"last": {"$from": "event.caller.id"}, "owner": {"$from": "context.public.owner"}}}}}]},
		"BILL": {"actions": {"type": "xstate.assign", "params": {"assignment": {"public": {"last": "billed", "owner": "x"}}}}},
		"FAIL": {"actions": {"type": "xstate.raise", "params": {"event": {"type": "T"}, "delay": {"$expr": "context.private.alice.said"}}}}
	}}}
}`

var lobby = actor.Ref{Type: "room", ID: "lobby"}

// note keeps what a caller said in what only that caller sees.
func note(a statechart.Args) (map[string]any, error) {
	private := map[string]any{}
	for id, own := range a.Context["private"].(map[string]any) {
		private[id] = own
	}
	private[a.Event.Data["caller"].(map[string]any)["id"].(string)] = map[string]any{"said": a.Event.Data["text"]}
	return map[string]any{"private": private}, nil
}

// roomOptions completes the options of the type.
func roomOptions(o *actor.TypeOptions) *actor.TypeOptions {
	if o == nil {
		o = &actor.TypeOptions{}
	}
	o.Registry = &statechart.Registry{Actions: map[string]statechart.Action{"note": statechart.Assign(note)}}
	return o
}

func newRoom(t *testing.T, db enginetest.Database, options *actor.TypeOptions) *fixture {
	t.Helper()
	f := newFixture(t, db, nil)
	f.register(t, "room", room, roomOptions(options))
	_, err := f.actors.Spawn(enginetest.Context(t), lobby, alice, map[string]any{"caller": "forged"}, nil)
	enginetest.NoError(t, err)
	return f
}

func say(text string) statechart.Event {
	return statechart.Event{Type: "SAY", Data: map[string]any{"text": text, "caller": map[string]any{"type": "system", "id": "root"}}}
}

func (f *fixture) say(t testing.TB, c actor.Caller, text string) actor.Receipt {
	t.Helper()
	r, err := f.actors.Send(enginetest.Context(t), lobby, c, say(text), nil)
	enginetest.NoError(t, err)
	return r
}

// stored counts the entries of the log, so that a test can see that nothing was
// stored.
func (f *fixture) stored(t testing.TB) int64 {
	t.Helper()
	return f.db.Rows(t, "perdure", "actor_log") + f.db.Rows(t, "perdure", "actors")*1000 + f.db.Rows(t, "perdure", "timers")*1_000_000
}

func (Conformance) Case53ForgedEventsAreRefusedAndNothingIsStored(t *testing.T, db enginetest.Database) {
	f := newRoom(t, db, nil)
	before := f.stored(t)
	for _, name := range []string{
		"xstate.after.1000.room.on", "xstate.done.actor.x", "xstate.error.actor.x", "xstate.stop", "xstate.init", "xstate.snapshot.x",
		"INITIALIZE", "RESUME", "MIGRATE", "CONNECT", "DISCONNECT", "", "*", strings.Repeat("x", 1000), "a\x00b", "\xff",
	} {
		for _, c := range []actor.Caller{alice, biller} {
			_, err := f.actors.Send(enginetest.Context(t), lobby, c, statechart.Event{Type: name}, &actor.SendOptions{Key: "k"})
			enginetest.As[*fault.Invalid](t, err)
		}
	}
	_, err := f.actors.Send(enginetest.Context(t), lobby, system, statechart.Event{Type: "xstate.stop"}, nil)
	enginetest.As[*fault.Invalid](t, err) // not even the system
	equal(t, "rows", f.stored(t), before)
}

func (Conformance) BadInputIsRefusedAndNothingIsStored(t *testing.T, db enginetest.Database) {
	f := newRoom(t, db, &actor.TypeOptions{MaxEvent: 1000})
	ctx := enginetest.Context(t)
	before := f.stored(t)
	send := func(ref actor.Ref, c actor.Caller, e statechart.Event, o *actor.SendOptions) error {
		_, err := f.actors.Send(ctx, ref, c, e, o)
		return err
	}
	data := func(v any) statechart.Event { return statechart.Event{Type: "SAY", Data: map[string]any{"x": v}} }
	deep := any(1)
	for range 40 {
		deep = []any{deep}
	}
	for name, err := range map[string]error{
		"oversized":     send(lobby, alice, data(strings.Repeat("x", 2000)), nil),
		"deep":          send(lobby, alice, data(deep), nil),
		"NUL":           send(lobby, alice, data("\x00"), nil),
		"no UTF-8":      send(lobby, alice, data("\xff"), nil),
		"no JSON":       send(lobby, alice, data(make(chan int)), nil),
		"empty id":      send(actor.Ref{Type: "room"}, alice, say("x"), nil),
		"long id":       send(actor.Ref{Type: "room", ID: strings.Repeat("x", 600)}, alice, say("x"), nil),
		"empty type":    send(actor.Ref{ID: "x"}, alice, say("x"), nil),
		"caller kind":   send(lobby, actor.Caller{Kind: "admin", ID: "x"}, say("x"), nil),
		"caller id":     send(lobby, actor.Caller{Kind: actor.Client}, say("x"), nil),
		"key":           send(lobby, alice, say("x"), &actor.SendOptions{Key: strings.Repeat("k", 600)}),
		"spawn input":   second(f.actors.Spawn(ctx, actor.Ref{Type: "room", ID: "n"}, alice, strings.Repeat("x", 2000), nil)),
		"spawn channel": second(f.actors.Spawn(ctx, actor.Ref{Type: "room", ID: "n"}, alice, make(chan int), nil)),
	} {
		var invalid *fault.Invalid
		if !errors.As(err, &invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, err := range map[string]error{
		"unknown type":           send(actor.Ref{Type: "none", ID: "x"}, alice, say("x"), nil),
		"unknown actor":          send(actor.Ref{Type: "room", ID: "none"}, alice, say("x"), nil),
		"spawn of no type":       second(f.actors.Spawn(ctx, actor.Ref{Type: "none", ID: "x"}, alice, nil, nil)),
		"snapshot of no actor":   second(f.actors.Snapshot(ctx, actor.Ref{Type: "room", ID: "none"}, alice)),
		"timer of no actor":      f.actors.SkipTimer(ctx, actor.Ref{Type: "room", ID: "none"}, system, "x"),
		"unknown timer":          f.actors.SkipTimer(ctx, lobby, system, "x"),
		"stop of no actor":       f.actors.Stop(ctx, actor.Ref{Type: "room", ID: "none"}, system),
		"delete of no actor":     f.actors.Delete(ctx, actor.Ref{Type: "room", ID: "none"}),
		"resume of no actor":     f.actors.Resume(ctx, actor.Ref{Type: "room", ID: "none"}, system),
		"fork of no actor":       second(f.actors.Fork(ctx, actor.Ref{Type: "room", ID: "none"}, 1, "y", system)),
		"look ahead of no actor": second(f.actors.Forecast(ctx, actor.Ref{Type: "room", ID: "none"}, noon)),
	} {
		var missing *fault.NotFound
		if !errors.As(err, &missing) {
			t.Errorf("%s: %v", name, err)
		}
	}
	equal(t, "rows", f.stored(t), before)
}

func second[T any](_ T, err error) error { return err }

func (Conformance) Case54ClientsMayNotSendEventsOfServices(t *testing.T, db enginetest.Database) {
	f := newRoom(t, db, &actor.TypeOptions{Events: map[actor.CallerKind][]string{actor.Client: {"SAY"}, actor.Service: {"B*"}}})
	before := f.stored(t)
	_, err := f.actors.Send(enginetest.Context(t), lobby, alice, statechart.Event{Type: "BILL"}, nil)
	enginetest.As[*fault.Restricted](t, err)
	_, err = f.actors.Send(enginetest.Context(t), lobby, biller, say("x"), nil)
	enginetest.As[*fault.Restricted](t, err)
	equal(t, "rows", f.stored(t), before)
	_, err = f.actors.Send(enginetest.Context(t), lobby, biller, statechart.Event{Type: "BILL"}, nil)
	enginetest.NoError(t, err)
}

func (Conformance) AnEventIsCheckedAgainstTheSchemaOfItsType(t *testing.T, db enginetest.Database) {
	wrong := fault.Invalidf("event.text", "is missing")
	f := newRoom(t, db, &actor.TypeOptions{Check: func(_ actor.Caller, e statechart.Event) error {
		if _, has := e.Data["text"]; !has {
			return wrong
		}
		return nil
	}})
	_, err := f.actors.Send(enginetest.Context(t), lobby, alice, statechart.Event{Type: "SAY"}, nil)
	enginetest.Is(t, err, wrong)
	f.say(t, alice, "hello")
}

func (Conformance) Case56TheCallerInTheBodyIsOverwritten(t *testing.T, db enginetest.Database) {
	f := newRoom(t, db, nil)
	r := f.say(t, bob, "hello")
	equal(t, "public", *jsonOf(t, r.View.Public), `{"last":"bob","owner":"alice"}`)
	entries := f.log(t, lobby, 1)
	equal(t, "event", string(entries[0].Event), `{"caller":{"id":"bob","type":"client"},"text":"hello","type":"SAY"}`)
	equal(t, "caller", *entries[0].Caller, bob)
}

func jsonOf(t testing.TB, v any) *string {
	t.Helper()
	raw, err := json.Marshal(v)
	enginetest.NoError(t, err)
	s := string(raw)
	return &s
}

func (Conformance) Case57PrivateContextReachesOnlyItsOwner(t *testing.T, db enginetest.Database) {
	f := newRoom(t, db, nil)
	const secret = "the secret of alice"
	mine := f.say(t, alice, secret)
	equal(t, "alice's own", *jsonOf(t, mine.View.Private), `{"said":"`+secret+`"}`)
	hers, err := f.actors.Snapshot(enginetest.Context(t), lobby, bob)
	enginetest.NoError(t, err)
	equal(t, "bob's own", *jsonOf(t, hers.Private), `{}`)
	for _, text := range []string{*jsonOf(t, hers), *jsonOf(t, f.say(t, bob, "hi"))} {
		if strings.Contains(text, secret) {
			t.Fatalf("bob sees %s", text)
		}
	}
	// An error of the machine may name private data: it is not in the view.
	r, err := f.actors.Send(enginetest.Context(t), lobby, bob, statechart.Event{Type: "FAIL"}, nil)
	enginetest.NoError(t, err)
	equal(t, "status", r.View.Status, actor.Failed)
	if text := *jsonOf(t, r); strings.Contains(text, secret) {
		t.Fatalf("bob sees %s", text)
	}
	none, err := f.actors.Snapshot(enginetest.Context(t), lobby, system)
	enginetest.NoError(t, err)
	equal(t, "the system's own", *jsonOf(t, none.Private), `{}`)
}

func (Conformance) Case58AWatcherThatComesBackGetsWhatIsNew(t *testing.T, db enginetest.Database) {
	f := newRoom(t, db, nil)
	last := f.say(t, alice, "1").Sequence
	views := make(chan actor.View, 10)
	ctx, cancel := context.WithCancel(enginetest.Context(t))
	defer cancel()
	go func() {
		defer close(views)
		for view := range f.actors.Watch(ctx, lobby, alice, last) { // it is up to date: nothing comes
			views <- view
		}
	}()
	f.say(t, alice, "2")
	view := <-views
	equal(t, "version", view.Version, last+1)
	equal(t, "private", *jsonOf(t, view.Private), `{"said":"2"}`)
	f.say(t, bob, "x") // alice sees that bob spoke
	equal(t, "version", (<-views).Version, last+2)
	f.say(t, bob, "y") // and not that he spoke again
	f.say(t, alice, "3")
	view = <-views
	equal(t, "private", *jsonOf(t, view.Private), `{"said":"3"}`)
	cancel()
	_, more := <-views
	equal(t, "more", more, false)
}

// An actor that gets the name of a deleted one is another actor, also if both have taken
// as many steps. Its views are not for those who watched the first one.
func (Conformance) Case58AWatcherDoesNotSeeTheNextActorOfTheName(t *testing.T, db enginetest.Database) {
	f := newRoom(t, db, nil)
	for _, more := range []int64{-1, 0, 1} { // steps than the first one has taken
		f.say(t, alice, "before")
		next, stop := iter.Pull2(f.actors.Watch(enginetest.Context(t), lobby, alice, 0))
		defer stop()
		first, err, _ := next()
		enginetest.NoError(t, err)
		// The watch is not looking until next is called again.
		enginetest.NoError(t, f.actors.Delete(enginetest.Context(t), lobby))
		_, err = f.actors.Spawn(enginetest.Context(t), lobby, bob, map[string]any{"caller": "forged"}, nil)
		enginetest.NoError(t, err)
		for range first.Version - 1 + more {
			f.say(t, bob, "after")
		}
		var view actor.View
		done := make(chan struct{})
		go func() {
			defer close(done)
			view, err, _ = next()
		}()
		enginetest.Eventually(t, "the watch has looked again", func() bool {
			f.clock.Advance(2 * time.Second)
			select {
			case <-done:
				return true
			default:
				return false
			}
		})
		if err == nil {
			t.Fatalf("with %d steps more: the watch yields %+v of the next actor", more, view)
		}
		enginetest.As[*fault.NotFound](t, err)
	}
}

func (Conformance) Case58AKnownVersionCanBeSeenAgain(t *testing.T, db enginetest.Database) {
	f := newRoom(t, db, nil)
	old := f.say(t, alice, "1").View
	f.say(t, alice, "2")
	again, err := f.actors.ViewAt(enginetest.Context(t), lobby, alice, old.Version)
	enginetest.NoError(t, err)
	equal(t, "view", *jsonOf(t, again), *jsonOf(t, old))
	_, err = f.actors.ViewAt(enginetest.Context(t), lobby, alice, 99)
	enginetest.As[*fault.Invalid](t, err)
}

func (Conformance) Case59TheLastViewAfterManyEventsIsTheState(t *testing.T, db enginetest.Database) {
	const events = 100
	f := newRoom(t, db, nil)
	g := *f // watches from another process
	g.reopen(t, nil)
	g.register(t, "room", room, roomOptions(nil))
	ctx, cancel := context.WithCancel(enginetest.Context(t))
	defer cancel()
	var all sync.WaitGroup
	for _, actors := range []*actor.Actors{f.actors, g.actors} {
		all.Go(func() {
			version := int64(0)
			for view, err := range actors.Watch(ctx, lobby, alice, 0) {
				if err != nil || view.Version <= version {
					t.Errorf("version %d follows %d: %v", view.Version, version, err)
					return
				}
				if version = view.Version; version == events+1 {
					if *jsonOf(t, view.Private) != fmt.Sprintf(`{"said":"%d"}`, events-1) {
						t.Errorf("the last view is %v", view)
					}
					return
				}
			}
		})
	}
	for i := range events {
		f.say(t, alice, fmt.Sprint(i))
	}
	f.clock.Advance(2 * 1e9) // where nobody carries the news, a poll finds it
	enginetest.Eventually(t, "the watchers have seen the last event", func() bool {
		f.clock.Advance(2 * 1e9)
		done := make(chan struct{})
		go func() { all.Wait(); close(done) }()
		select {
		case <-done:
			return true
		case <-ctx.Done():
			return true
		default:
			return false
		}
	})
}

func (Conformance) Case60WatchersDoNotHoldUpSenders(t *testing.T, db enginetest.Database) {
	f := newRoom(t, db, nil)
	ctx, cancel := context.WithCancel(enginetest.Context(t))
	slow := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		for range f.actors.Watch(ctx, lobby, alice, 0) {
			<-slow // it takes nothing any more
		}
	})
	for i := range 50 {
		f.say(t, alice, fmt.Sprint(i))
	}
	cancel()
	close(slow)
	all.Wait()
}

func (Conformance) Case61WaitReturnsAtOnceOrInTime(t *testing.T, db enginetest.Database) {
	f := newRoom(t, db, nil)
	view, err := f.actors.Wait(enginetest.Context(t), lobby, alice, func(v actor.View) bool { return v.Value == "on" })
	enginetest.NoError(t, err)
	equal(t, "version", view.Version, int64(1))
	ctx, cancel := context.WithCancel(enginetest.Context(t))
	cancel()
	_, err = f.actors.Wait(ctx, lobby, alice, func(actor.View) bool { return false })
	enginetest.Is(t, err, context.Canceled)
	_, err = f.actors.Wait(enginetest.Context(t), actor.Ref{Type: "room", ID: "none"}, alice, func(actor.View) bool { return true })
	enginetest.As[*fault.NotFound](t, err)
}
