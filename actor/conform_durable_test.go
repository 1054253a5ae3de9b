package actor_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/perdure/perdure/actor"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/retry"
	"github.com/perdure/perdure/statechart"
)

// damage changes a stored snapshot so that it is still JSON.
func (f *fixture) damage(t testing.TB, ref actor.Ref) {
	t.Helper()
	f.db.Exec(t, fmt.Sprintf(`update %s set snapshot = replace(concat(snapshot, ''), '"off"', '"on"')%s where id = '%s'`,
		f.db.Table("perdure", "actors"), f.cast(), ref.ID))
}

func (f *fixture) cast() string {
	if f.db.Name == enginetest.Postgres {
		return "::json"
	}
	return ""
}

func (Conformance) Case46ADamagedSnapshotIsComputedAgainFromTheLog(t *testing.T, db enginetest.Database) {
	var told []actor.Damage
	options := &actor.Options{OnDamage: func(d actor.Damage) { told = append(told, d) }}
	f := newFixture(t, db, options)
	f.register(t, "toggle", toggle, nil)
	f.spawn(t, lamp)
	f.send(t, lamp, "FLIP")
	f.send(t, lamp, "FLIP")
	f.damage(t, lamp)
	_, err := f.actors.Snapshot(enginetest.Context(t), lamp, system)
	enginetest.As[*actor.QuarantinedError](t, err) // a reader repairs nothing
	f.reopen(t, options)
	f.register(t, "toggle", toggle, nil)
	equal(t, "value", f.send(t, lamp, "FLIP").View.Value, any("on"))
	equal(t, "damages", len(told), 1)
	equal(t, "repaired", told[0].Repaired, true)
	_, err = f.actors.Replay(enginetest.Context(t), lamp)
	enginetest.NoError(t, err)
}

func (Conformance) Case46WithoutALogTheActorIsQuarantinedAlone(t *testing.T, db enginetest.Database) {
	var told []actor.Damage
	options := &actor.Options{OnDamage: func(d actor.Damage) { told = append(told, d) }}
	f := newFixture(t, db, options)
	f.register(t, "toggle", toggle, nil)
	other := actor.Ref{Type: "toggle", ID: "other"}
	f.spawn(t, lamp)
	f.spawn(t, other)
	f.damage(t, lamp)
	f.db.Exec(t, "delete from "+db.Table("perdure", "actor_log"))
	f.reopen(t, options)
	f.register(t, "toggle", toggle, nil)
	_, err := f.actors.Send(enginetest.Context(t), lamp, alice, statechart.Event{Type: "FLIP"}, nil)
	enginetest.As[*actor.QuarantinedError](t, err)
	equal(t, "damages", len(told), 1)
	f.send(t, other, "FLIP")
	record, err := f.actors.Get(enginetest.Context(t), lamp)
	enginetest.NoError(t, err)
	equal(t, "status", record.Status, actor.Quarantined)
	equal(t, "has a reason", record.Reason != "", true)
	equal(t, "value", string(record.Value), `"off"`)
	enginetest.As[*actor.QuarantinedError](t, f.actors.Resume(enginetest.Context(t), lamp, system))
	f.db.Exec(t, fmt.Sprintf(`update %s set snapshot = replace(concat(snapshot, ''), '"on"', '"off"')%s where id = 'lamp'`, db.Table("perdure", "actors"), f.cast()))
	enginetest.NoError(t, f.actors.Resume(enginetest.Context(t), lamp, system))
	equal(t, "value", f.send(t, lamp, "FLIP").View.Value, any("on"))
}

func (Conformance) QuarantinedDelaysWaitAndFireAfterTheResume(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, &actor.Options{OnDamage: func(actor.Damage) {}})
	f.register(t, "w", waiter, nil)
	f.spawn(t, w1)
	w2 := actor.Ref{Type: "w", ID: "2"}
	f.spawn(t, w2)
	f.db.Exec(t, "update "+db.Table("perdure", "actors")+" set checksum = 'x' where id = '1'")
	f.db.Exec(t, "delete from "+db.Table("perdure", "actor_log"))
	f.reopen(t, &actor.Options{OnDamage: func(actor.Damage) {}})
	f.register(t, "w", waiter, nil)
	f.pass(t, 1000)
	f.is(t, w2, "fired")
	equal(t, "fired", f.process(t), 0)
	record, err := f.actors.Get(enginetest.Context(t), w1)
	enginetest.NoError(t, err)
	equal(t, "status", record.Status, actor.Quarantined)
	sum := sha256.Sum256(record.Snapshot)
	f.db.Exec(t, "update "+db.Table("perdure", "actors")+" set checksum = ? where id = '1'", hex.EncodeToString(sum[:]))
	enginetest.NoError(t, f.actors.Resume(enginetest.Context(t), w1, system))
	f.process(t)
	f.is(t, w1, "fired")
}

func (Conformance) Case47AFailedWriteIsNotAcknowledged(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	f.register(t, "toggle", toggle, nil)
	f.spawn(t, lamp)
	home, elsewhere := db.Table("perdure", "actor_log"), db.Table("perdure", "elsewhere")
	rename := func(from, to string) {
		if _, name, in := strings.Cut(to, "."); in { // the new name is of the same schema
			to = name
		}
		f.db.Exec(t, "alter table "+from+" rename to "+to)
	}
	rename(home, elsewhere)
	_, err := f.actors.Send(enginetest.Context(t), lamp, system, statechart.Event{Type: "FLIP"}, nil)
	equal(t, "failed", err != nil, true)
	f.is(t, lamp, "off")
	rename(elsewhere, home)
	r := f.send(t, lamp, "FLIP")
	equal(t, "value", r.View.Value, any("on"))
	equal(t, "version", r.Sequence, int64(2))
}

func (Conformance) Case48TwoProcessesOnOneActorLoseNothing(t *testing.T, db enginetest.Database) {
	const senders, each = 8, 20
	f := newFixture(t, db, nil)
	f.register(t, "toggle", counter, nil)
	f.spawn(t, lamp)
	g := *f
	g.reopen(t, nil)
	g.register(t, "toggle", counter, nil)
	var all sync.WaitGroup
	var failed atomic.Int64
	for i := range senders {
		actors := []*actor.Actors{f.actors, g.actors}[i%2]
		all.Go(func() {
			for range each {
				if _, err := actors.Send(context.Background(), lamp, alice, statechart.Event{Type: "ADD"}, nil); err != nil {
					failed.Add(1)
				}
			}
		})
	}
	all.Wait()
	equal(t, "failed", failed.Load(), int64(0))
	view, err := f.actors.Snapshot(enginetest.Context(t), lamp, alice)
	enginetest.NoError(t, err)
	equal(t, "version", view.Version, int64(senders*each+1))
	equal(t, "count", fmt.Sprint(view.Public), fmt.Sprintf("map[count:%d]", senders*each))
	_, err = g.actors.Replay(enginetest.Context(t), lamp)
	enginetest.NoError(t, err)
}

// counter counts events in public.
const counter = `{"id": "toggle", "context": {"public": {"count": 0}}, "initial": "on", "states": {"on": {"on": {
	"ADD": {"actions": {"type": "xstate.assign", "params": {"assignment": {"public": {"count": {"$expr": "context.public.count + 1"}}}}}}}}}}`

// shop charges when it is paid, and ships.
const shop = `{
	"id": "w", "initial": "open", "context": {"paid": null},
	"states": {
		"open": {"on": {"PAY": "charging"}},
		"charging": {
			"invoke": {"src": "charge", "id": "charge", "input": {"amount": 5},
				"onDone": {"target": "shipping", "actions": {"type": "xstate.assign", "params": {"assignment": {"paid": {"$from": "event.output"}}}}},
				"onError": {"target": "failed", "actions": {"type": "xstate.assign", "params": {"assignment": {"paid": {"$from": "event.error"}}}}}},
			"on": {"GIVE_UP": "open"}
		},
		"shipping": {"entry": {"type": "ship", "params": {"to": {"$expr": "\"home \" + context.paid"}}}, "type": "final"},
		"failed": {}
	}
}`

// handlers counts what is charged and shipped.
type handlers struct {
	mu      sync.Mutex
	charges []actor.Call
	ships   []actor.Call
	charge  func(ctx context.Context, c actor.Call) (any, error)
}

func (h *handlers) options() *actor.TypeOptions {
	return &actor.TypeOptions{
		Effects: map[string]actor.Effect{"ship": {Run: func(_ context.Context, c actor.Call) error {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.ships = append(h.ships, c)
			return nil
		}}},
		Invocations: map[string]actor.Invocation{"charge": {Retry: retry.Fixed(3, time.Second), Run: func(ctx context.Context, c actor.Call) (any, error) {
			h.mu.Lock()
			h.charges = append(h.charges, c)
			h.mu.Unlock()
			if h.charge == nil {
				return "receipt", nil
			}
			return h.charge(ctx, c)
		}}},
	}
}

func (Conformance) TasksAndEffectsHappenAfterTheCommit(t *testing.T, db enginetest.Database) {
	f, h := newFixture(t, db, nil), &handlers{}
	f.register(t, "w", shop, h.options())
	f.spawn(t, w1)
	f.send(t, w1, "PAY")
	f.is(t, w1, "charging")
	f.process(t)
	f.is(t, w1, "shipping")
	equal(t, "charges", len(h.charges), 1)
	equal(t, "input", string(h.charges[0].Params), `{"amount":5}`)
	equal(t, "ships", len(h.ships), 1)
	equal(t, "params", string(h.ships[0].Params), `{"to":"home receipt"}`)
	equal(t, "keys differ", h.ships[0].Key != h.charges[0].Key, true)
	equal(t, "processed again", f.process(t), 0)
}

func (Conformance) FailedTasksAreTriedAgainAndThenFailTheInvoke(t *testing.T, db enginetest.Database) {
	f, h := newFixture(t, db, nil), &handlers{}
	h.charge = func(context.Context, actor.Call) (any, error) { return nil, errors.New("no funds") }
	f.register(t, "w", shop, h.options())
	f.spawn(t, w1)
	f.send(t, w1, "PAY")
	for range 3 {
		f.is(t, w1, "charging")
		f.process(t)
		f.clock.Advance(time.Second)
	}
	f.is(t, w1, "failed")
	equal(t, "charges", len(h.charges), 3)
	for i, c := range h.charges {
		equal(t, "attempt", c.Attempt, i+1)
		equal(t, "key", c.Key, h.charges[0].Key)
	}
	equal(t, "attempts that are told", f.db.Rows(t, "perdure", "attempts"), 3)
	state, err := f.actors.State(enginetest.Context(t), w1)
	enginetest.NoError(t, err)
	equal(t, "error", fmt.Sprint(state.Context["paid"]), "map[$error:no funds]")
}

func (Conformance) ARejectionIsFinalAndHasAValue(t *testing.T, db enginetest.Database) {
	f, h := newFixture(t, db, nil), &handlers{}
	h.charge = func(context.Context, actor.Call) (any, error) {
		return nil, &actor.Rejection{Value: map[string]any{"code": 51}}
	}
	f.register(t, "w", shop, h.options())
	f.spawn(t, w1)
	f.send(t, w1, "PAY")
	f.process(t)
	f.is(t, w1, "failed")
	state, err := f.actors.State(enginetest.Context(t), w1)
	enginetest.NoError(t, err)
	equal(t, "error", fmt.Sprint(state.Context["paid"]), "map[code:51]")
}

func (Conformance) ATaskWhoseStateWasLeftIsStopped(t *testing.T, db enginetest.Database) {
	f, h := newFixture(t, db, nil), &handlers{}
	f.register(t, "w", shop, h.options())
	f.spawn(t, w1)
	f.send(t, w1, "PAY")
	f.send(t, w1, "GIVE_UP")
	equal(t, "processed", f.process(t), 0)
	equal(t, "charges", len(h.charges), 0)
	f.send(t, w1, "PAY")
	f.process(t)
	equal(t, "charges", len(h.charges), 1)
	f.is(t, w1, "shipping")
}

// A process that hangs loses its invocation to another one, and comes too late.
func (Conformance) Case50ALateResultOfAnEarlierAttemptIsIgnored(t *testing.T, db enginetest.Database) {
	f, h := newFixture(t, db, nil), &handlers{}
	release := make(chan struct{})
	h.charge = func(_ context.Context, c actor.Call) (any, error) {
		if c.Crashes == 0 {
			<-release // the first process hangs beyond its lease
			return "late", nil
		}
		return "receipt", nil
	}
	lost := &actor.Options{OnError: func(error) {}}
	f.reopen(t, lost)
	f.register(t, "w", shop, h.options())
	f.spawn(t, w1)
	f.send(t, w1, "PAY")
	first := f.actors
	_, err := first.Start(enginetest.Context(t))
	enginetest.NoError(t, err)
	enginetest.Eventually(t, "the first attempt runs", func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return len(h.charges) == 1
	})
	// Another process finds the lease expired. The first one's heart is not
	// beaten by a clock that jumps.
	f.db.Exec(t, "update "+db.Table("perdure", "leases")+" set expires_at = claimed_at")
	f.reopen(t, nil)
	f.register(t, "w", shop, h.options())
	f.process(t)
	f.is(t, w1, "shipping")
	equal(t, "charges", len(h.charges), 2)
	equal(t, "key", h.charges[1].Key, h.charges[0].Key)
	equal(t, "attempt", h.charges[1].Attempt, 1)
	equal(t, "crashes", h.charges[1].Crashes, 1)
	version := f.log(t, w1, 0)
	close(release)
	enginetest.NoError(t, first.Drain(enginetest.Context(t)))
	equal(t, "entries after the late completion", len(f.log(t, w1, 0)), len(version))
	state, err := f.actors.State(enginetest.Context(t), w1)
	enginetest.NoError(t, err)
	equal(t, "paid", state.Context["paid"], any("receipt"))
	equal(t, "ships", len(h.ships), 1)
}

func (Conformance) Case51ResumeComesAfterOverdueDelays(t *testing.T, db enginetest.Database) {
	const m = `{"id": "w", "initial": "a", "states": {"a": {"after": {"10": "b"}}, "b": {"on": {"RESUME": "c"}}, "c": {"on": {"E": "d"}}, "d": {}}}`
	f := newFixture(t, db, nil)
	options := &actor.TypeOptions{SystemEvents: true}
	f.register(t, "w", m, options)
	f.spawn(t, w1)
	f.clock.Advance(time.Minute)
	f.reopen(t, nil)
	f.register(t, "w", m, options)
	f.send(t, w1, "E")
	f.is(t, w1, "d")
	var kinds []string
	for _, e := range f.log(t, w1, 0) {
		kinds = append(kinds, string(e.Kind)+" "+string(e.Event))
	}
	equal(t, "log", fmt.Sprint(kinds), `[start  event {"type":"INITIALIZE"} timer {"type":"xstate.after.10.w.a"} event {"type":"RESUME"} event {"type":"E"}]`)
	f.send(t, w1, "E")
	equal(t, "entries", len(f.log(t, w1, 0)), 6) // awake: no RESUME
}

func (f *fixture) restartWith(t testing.TB, name, document string, options *actor.TypeOptions) {
	t.Helper()
	f.reopen(t, nil)
	f.register(t, name, document, options)
}
