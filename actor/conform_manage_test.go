package actor_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/actor"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/statechart"
)

func (Conformance) ListsAreCompleteInPagesAndNarrowed(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	f.register(t, "toggle", toggle, nil)
	f.register(t, "w", waiter, nil)
	for i := range 25 {
		ref := actor.Ref{Type: []string{"toggle", "w"}[i%2], ID: fmt.Sprintf("%02d", i)}
		f.spawn(t, ref)
		if i%4 == 0 {
			f.send(t, ref, "FLIP")
		}
		if i%10 == 0 {
			f.clock.Advance(time.Second)
		}
	}
	enginetest.NoError(t, f.actors.Stop(enginetest.Context(t), actor.Ref{Type: "w", ID: "01"}, system))
	for name, c := range map[string]struct {
		filter actor.Filter
		want   int
	}{
		"all":     {actor.Filter{}, 25},
		"type":    {actor.Filter{Type: "toggle"}, 13},
		"status":  {actor.Filter{Statuses: []actor.Status{actor.Stopped, actor.Failed}}, 1},
		"state":   {actor.Filter{State: "on"}, 7},
		"nothing": {actor.Filter{State: "o"}, 0},
	} {
		seen := map[actor.Ref]bool{}
		cursor, last := "", time.Time{}
		for {
			records, next, err := f.actors.List(enginetest.Context(t), c.filter, cursor, 4)
			enginetest.NoError(t, err)
			for _, r := range records {
				if seen[r.Ref] || !last.IsZero() && r.Created.After(last) {
					t.Fatalf("%s: %s is out of order", name, r.Ref)
				}
				seen[r.Ref], last = true, r.Created
			}
			if cursor = next; cursor == "" {
				break
			}
		}
		equal(t, name, len(seen), c.want)
	}
	for _, cursor := range []string{"x", "AAAA", strings.Repeat("=", 10)} {
		_, _, err := f.actors.List(enginetest.Context(t), actor.Filter{}, cursor, 0)
		enginetest.As[*fault.Invalid](t, err)
	}
	_, _, err := f.actors.List(enginetest.Context(t), actor.Filter{Statuses: []actor.Status{"x"}}, "", 0)
	enginetest.As[*fault.Invalid](t, err)
}

func (Conformance) DelaysSayWhyTheyAreThere(t *testing.T, db enginetest.Database) {
	f := timed(t, db, parent)
	timers := f.pending(t, w1, 100, 5000)
	equal(t, "state", timers[0].State, "kid.x")
	equal(t, "leads", fmt.Sprint(timers[0].Leads), "[kid.y]")
	equal(t, "state", timers[1].State, "w.a")
	equal(t, "leads", fmt.Sprint(timers[1].Leads), "[w.late]")
	equal(t, "delay", timers[1].Delay, 5*time.Second)
	all, err := f.actors.Upcoming(enginetest.Context(t), "w", noon.Add(time.Second), 0)
	enginetest.NoError(t, err)
	equal(t, "upcoming", len(all), 1)
	equal(t, "actor", all[0].Actor, w1)
}

func (Conformance) OperatorsMoveSkipAndFireDelays(t *testing.T, db enginetest.Database) {
	f := timed(t, db, waiter)
	ctx := enginetest.Context(t)
	id := f.pending(t, w1, 1000)[0].ID
	enginetest.NoError(t, f.actors.MoveTimer(ctx, w1, system, id, noon.Add(2*time.Second)))
	f.pending(t, w1, 2000)
	equal(t, "fired at 1000", f.pass(t, 1000), 0)
	f.restart(t)
	enginetest.NoError(t, f.actors.SkipTimer(ctx, w1, system, id))
	f.pending(t, w1)
	enginetest.As[*fault.NotFound](t, f.actors.FireTimer(ctx, w1, system, id))
	equal(t, "fired at 3000", f.pass(t, 2000), 0)
	f.is(t, w1, "a")
	f.send(t, w1, "AGAIN")
	id = f.pending(t, w1, 4000)[0].ID
	operator := actor.Caller{Kind: actor.Service, ID: "ann"}
	enginetest.NoError(t, f.actors.FireTimer(ctx, w1, operator, id))
	f.is(t, w1, "fired")
	f.pending(t, w1)
	var audit []string
	for _, e := range f.log(t, w1, 1) {
		audit = append(audit, string(e.Kind))
	}
	equal(t, "audit", fmt.Sprint(audit), "[move skip event fire]")
	equal(t, "operator", *f.log(t, w1, 4)[0].Caller, operator)
	_, err := f.actors.Replay(ctx, w1)
	enginetest.NoError(t, err)
	enginetest.As[*fault.Invalid](t, f.actors.MoveTimer(ctx, w1, system, id, time.Time{}))
}

// What operators do in a unit of work is committed with it, or did not happen.
func (Conformance) OperatorsActInAUnitOfWorkOrNotAtAll(t *testing.T, db enginetest.Database) {
	f := timed(t, db, waiter)
	id := f.pending(t, w1, 1000)[0].ID
	later, stop := noon.Add(time.Hour), errors.New("the unit is given up")
	for _, c := range []struct {
		name string
		act  func(tx *perdure.Tx) error
		done func()
	}{
		{"move", func(tx *perdure.Tx) error { return f.actors.MoveTimerIn(tx, w1, system, id, later) }, func() { f.pending(t, w1, 3600_000) }},
		{"fire", func(tx *perdure.Tx) error { return f.actors.FireTimerIn(tx, w1, system, id) }, func() { f.is(t, w1, "fired") }},
		{"stop", func(tx *perdure.Tx) error { return f.actors.StopIn(tx, w1, system) }, func() { f.pending(t, w1) }},
	} {
		before := len(f.log(t, w1, 0))
		err := f.eng.Update(enginetest.Context(t), func(tx *perdure.Tx) error { return errors.Join(c.act(tx), stop) })
		enginetest.Is(t, err, stop)
		equal(t, c.name+" in a unit that is given up", len(f.log(t, w1, 0)), before)
		enginetest.NoError(t, f.eng.Update(enginetest.Context(t), c.act))
		equal(t, c.name+" in a unit that is committed", len(f.log(t, w1, 0)), before+1)
		c.done()
	}
	for name, act := range map[string]func(tx *perdure.Tx) error{
		"skip":   func(tx *perdure.Tx) error { return f.actors.SkipTimerIn(tx, w1, system, id) },
		"resume": func(tx *perdure.Tx) error { return f.actors.ResumeIn(tx, w1, system) },
	} {
		err := f.eng.Update(enginetest.Context(t), func(tx *perdure.Tx) error { _ = act(tx); return nil })
		if err == nil {
			t.Errorf("a %s that is refused does not fail the unit", name)
		}
	}
}

func (Conformance) StopEndsAnActorAndItsDelaysAndTasks(t *testing.T, db enginetest.Database) {
	f, h := newFixture(t, db, nil), &handlers{}
	f.register(t, "w", shop, h.options())
	f.spawn(t, w1)
	f.send(t, w1, "PAY")
	enginetest.NoError(t, f.actors.Stop(enginetest.Context(t), w1, system))
	equal(t, "processed", f.process(t), 0)
	finished(t, f.actors.Stop(enginetest.Context(t), w1, system))
	r := f.send(t, w1, "GIVE_UP")
	equal(t, "dropped", r.Dropped, true)
	equal(t, "status", r.View.Status, actor.Stopped)
}

func (Conformance) DeleteLeavesNothingAndTheNameIsFree(t *testing.T, db enginetest.Database) {
	f, h := newFixture(t, db, nil), &handlers{}
	f.register(t, "w", shop, h.options())
	f.spawn(t, w1)
	f.send(t, w1, "PAY")
	enginetest.NoError(t, f.actors.Delete(enginetest.Context(t), w1))
	equal(t, "processed", f.process(t), 0)
	for _, table := range []string{"actors", "actor_log", "actor_keys", "checkpoints", "timers"} {
		equal(t, table, db.Rows(t, "perdure", table), 0)
	}
	f.spawn(t, w1)
	f.send(t, w1, "PAY")
	f.process(t)
	f.is(t, w1, "shipping")
	equal(t, "charges", len(h.charges), 1)
}

func (Conformance) PeopleResolveAndRejectTasks(t *testing.T, db enginetest.Database) {
	f, h := newFixture(t, db, nil), &handlers{}
	o := h.options()
	o.Invocations, o.Registry = nil, &statechart.Registry{Actors: map[string]statechart.Actor{"charge": statechart.Promise{}}}
	f.register(t, "w", shop, o)
	w2 := actor.Ref{Type: "w", ID: "2"}
	for _, ref := range []actor.Ref{w1, w2} {
		f.spawn(t, ref)
		f.send(t, ref, "PAY")
	}
	equal(t, "processed", f.process(t), 0) // nobody here can
	pending, err := f.actors.Pending(enginetest.Context(t), w1)
	enginetest.NoError(t, err)
	equal(t, "pending", pending[0].Path, "charge")
	enginetest.NoError(t, f.actors.Resolve(enginetest.Context(t), w1, system, "charge", "by hand"))
	enginetest.NoError(t, f.actors.Reject(enginetest.Context(t), w2, system, "charge", "no"))
	f.is(t, w1, "shipping")
	f.is(t, w2, "failed")
	finished(t, f.actors.Resolve(enginetest.Context(t), w1, system, "charge", "again"))
	equal(t, "ship", f.process(t), 1)
}

func (Conformance) Case63TheLogLeadsToTheSameSnapshots(t *testing.T, db enginetest.Database) {
	f, h := newFixture(t, db, nil), &handlers{}
	f.register(t, "w", shop, h.options())
	f.spawn(t, w1)
	f.send(t, w1, "PAY")
	f.send(t, w1, "GIVE_UP")
	f.send(t, w1, "PAY")
	f.process(t)
	replayed, err := f.actors.Replay(enginetest.Context(t), w1)
	enginetest.NoError(t, err)
	record, err := f.actors.Get(enginetest.Context(t), w1)
	enginetest.NoError(t, err)
	equal(t, "checksum", replayed.Checksum, record.Checksum)
	equal(t, "to", replayed.To, record.Version)
	db.Exec(t, "update "+db.Table("perdure", "actor_log")+" set checksum = 'x' where sequence = 2")
	_, err = f.actors.Replay(enginetest.Context(t), w1)
	equal(t, "a changed log is found", err != nil, true)
}

func (Conformance) Case64AForkGoesItsOwnWay(t *testing.T, db enginetest.Database) {
	f := timed(t, db, waiter)
	f.pass(t, 400)
	f.send(t, w1, "OUT")
	before, err := f.actors.Get(enginetest.Context(t), w1)
	enginetest.NoError(t, err)
	fork, err := f.actors.Fork(enginetest.Context(t), w1, 1, "other", alice)
	enginetest.NoError(t, err)
	f.is(t, fork.Ref, "a")
	f.pending(t, fork.Ref, 1000)
	f.pass(t, 600)
	f.is(t, fork.Ref, "fired")
	after, err := f.actors.Get(enginetest.Context(t), w1)
	enginetest.NoError(t, err)
	equal(t, "original", *jsonOf(t, after), *jsonOf(t, before))
	_, err = f.actors.Replay(enginetest.Context(t), fork.Ref)
	enginetest.NoError(t, err)
	_, err = f.actors.Fork(enginetest.Context(t), w1, 99, "", alice)
	enginetest.As[*fault.Invalid](t, err)
	_, err = f.actors.Fork(enginetest.Context(t), w1, 1, "other", alice)
	enginetest.As[*fault.Duplicate](t, err)
}

func (Conformance) Case65WhatIsAheadIsWhatHappens(t *testing.T, db enginetest.Database) {
	f := timed(t, db, `{"id": "w", "type": "parallel", "states": {
		"x": {"initial": "a", "states": {"a": {"after": {"1000": "b"}}, "b": {"after": {"86400000": "a"}}}},
		"y": {"initial": "a", "states": {"a": {"after": {"90000000": "b"}}, "b": {"entry": "ring"}}}
	}}`, func(o *actor.TypeOptions) {
		o.Effects = map[string]actor.Effect{"ring": {Run: func(context.Context, actor.Call) error { return nil }}}
	})
	ahead, err := f.actors.Forecast(enginetest.Context(t), w1, noon.Add(7*24*time.Hour))
	enginetest.NoError(t, err)
	f.clock.Advance(7 * 24 * time.Hour)
	f.process(t)
	happened := f.log(t, w1, 1)
	equal(t, "delays", len(ahead), len(happened))
	rings := 0
	for i, a := range ahead {
		equal(t, "time", a.Timer.Due, happened[i].At)
		equal(t, "value", *jsonOf(t, a.Value), *jsonOf(t, happened[i].Value))
		equal(t, "delay", a.Timer.ID, happened[i].Key)
		rings += len(a.Effects)
	}
	equal(t, "effects", rings, 1)
}

func (Conformance) TheLogIsKeptAsFarAsItIsWanted(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	f.register(t, "toggle", toggle, &actor.TypeOptions{LogRetention: 10})
	f.spawn(t, lamp)
	for i := range 57 {
		f.send(t, lamp, "FLIP")
		if n := len(f.log(t, lamp, 0)); n > 20 || i > 20 && n < 10 {
			t.Fatalf("after %d events the log has %d entries", i, n)
		}
	}
	replayed, err := f.actors.Replay(enginetest.Context(t), lamp)
	enginetest.NoError(t, err)
	equal(t, "from", replayed.From, int64(50))
	equal(t, "to", replayed.To, int64(58))
	f.damage(t, lamp)
	f.reopen(t, &actor.Options{OnDamage: func(actor.Damage) {}})
	f.register(t, "toggle", toggle, &actor.TypeOptions{LogRetention: 10})
	equal(t, "value after a repair", f.send(t, lamp, "FLIP").View.Value, any("off"))
}

// finished ends the test unless err says that the actor is finished.
func finished(t testing.TB, err error) {
	t.Helper()
	if state := enginetest.As[*perdure.StateError](t, err); state.Kind != "actor" || !state.Finished {
		t.Fatalf("error is %+v, want a finished actor", state)
	}
}
