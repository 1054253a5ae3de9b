package actor_test

import (
	"fmt"
	"testing"

	"github.com/perdure/perdure/actor"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/statechart"
)

// broken returns an actor whose snapshot is damaged, and whose log from a step on.
func broken(t *testing.T, db enginetest.Database, step int) *fixture {
	t.Helper()
	f := newFixture(t, db, &actor.Options{OnDamage: func(actor.Damage) {}})
	f.register(t, "w", waiter, nil)
	f.spawn(t, w1)         // 1: a
	f.send(t, w1, "INNER") // 2: a
	f.send(t, w1, "OUT")   // 3: b
	f.send(t, w1, "BACK")  // 4: a
	f.db.Exec(t, "update "+db.Table("perdure", "actors")+" set checksum = 'x' where id = '1'")
	f.db.Exec(t, fmt.Sprintf("update %s set checksum = 'x' where actor_id = '1' and sequence >= %d", db.Table("perdure", "actor_log"), step))
	f.reopen(t, &actor.Options{OnDamage: func(actor.Damage) {}})
	f.register(t, "w", waiter, nil)
	_, err := f.actors.Send(enginetest.Context(t), w1, alice, statechart.Event{Type: "OUT"}, nil)
	enginetest.As[*actor.QuarantinedError](t, err)
	enginetest.As[*actor.QuarantinedError](t, f.actors.Resume(enginetest.Context(t), w1, system))
	return f
}

func (Conformance) ADamagedActorIsResetToAStepOfItsLog(t *testing.T, db enginetest.Database) {
	ctx := enginetest.Context(t)
	for step, want := range map[int64]struct {
		state string
		used  int64
		due   []int64
	}{0: {"b", 3, nil}, 2: {"a", 2, []int64{1000}}, 3: {"b", 3, nil}} {
		f := broken(t, enginetest.New(t, db.Name), 4)
		enginetest.As[*actor.QuarantinedError](t, f.actors.Reset(ctx, w1, biller, 4))
		enginetest.As[*fault.Invalid](t, f.actors.Reset(ctx, w1, biller, 5))
		enginetest.NoError(t, f.actors.Reset(ctx, w1, biller, step))
		f.is(t, w1, want.state)
		f.pending(t, w1, want.due...)
		entries := f.log(t, w1, 4)
		equal(t, "entries", len(entries), 1)
		equal(t, "kind", entries[0].Kind, actor.EntryReset)
		equal(t, "by", *entries[0].Caller, biller)
		equal(t, "event", string(entries[0].Event), fmt.Sprintf(`{"step":%d}`, want.used))
		record, err := f.actors.Get(ctx, w1)
		enginetest.NoError(t, err)
		equal(t, "status", record.Status, actor.Active)
		equal(t, "reason", record.Reason, "")
		f.restartWith(t, "w", waiter, nil)
		_, err = f.actors.Replay(ctx, w1)
		enginetest.NoError(t, err)
		if want.state == "b" {
			f.send(t, w1, "BACK")
		}
		f.pass(t, 1000)
		f.is(t, w1, "fired")
	}
}

func (Conformance) ResetRunsTheTasksOfTheStepAgain(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	h := &handlers{}
	f.register(t, "w", `{"initial": "charging", "states": {"charging": {"invoke": {"src": "charge", "onDone": "paid"}}, "paid": {}}}`, &actor.TypeOptions{Invocations: h.options().Invocations})
	f.spawn(t, w1)
	f.process(t)
	f.is(t, w1, "paid")
	equal(t, "charges", len(h.charges), 1)
	enginetest.NoError(t, f.actors.Reset(enginetest.Context(t), w1, system, 1))
	f.is(t, w1, "charging")
	f.process(t)
	f.is(t, w1, "paid")
	equal(t, "charges", len(h.charges), 2)
	if h.charges[0].Key == h.charges[1].Key {
		t.Error("the task has the idempotency key of the first run")
	}
}

func (Conformance) AFailedActorIsReset(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	f.register(t, "w", runaway, nil)
	f.spawn(t, w1)
	_, err := f.actors.Send(enginetest.Context(t), w1, alice, statechart.Event{Type: "GO"}, nil)
	enginetest.Is(t, err, statechart.ErrRunaway)
	enginetest.NoError(t, f.actors.Reset(enginetest.Context(t), w1, system, 1))
	f.pending(t, w1, 60_000)
	f.send(t, w1, "SAFE")
	f.is(t, w1, "b")
	enginetest.NoError(t, f.actors.Stop(enginetest.Context(t), w1, system))
	finished(t, f.actors.Reset(enginetest.Context(t), w1, system, 1))
}

func (Conformance) TheStateOfAQuarantinedActorSaysSo(t *testing.T, db enginetest.Database) {
	ctx := enginetest.Context(t)
	f := broken(t, db, 4)
	_, err := f.actors.State(ctx, w1)
	reason := enginetest.As[*actor.QuarantinedError](t, err).Reason
	record, err := f.actors.Get(ctx, w1)
	enginetest.NoError(t, err)
	equal(t, "reason", reason, record.Reason)

	g := newFixture(t, enginetest.New(t, db.Name), &actor.Options{OnDamage: func(actor.Damage) {}})
	g.register(t, "w", waiter, nil)
	g.spawn(t, w1)
	g.reopen(t, &actor.Options{OnDamage: func(actor.Damage) {}})
	g.register(t, "w", waiter, &actor.TypeOptions{Version: 2, Migrate: func(int64, []byte) ([]byte, error) { return nil, fmt.Errorf("not yet") }})
	_, err = g.actors.Send(ctx, w1, alice, statechart.Event{Type: "OUT"}, nil)
	enginetest.As[*actor.QuarantinedError](t, err)
	state, err := g.actors.State(ctx, w1)
	enginetest.NoError(t, err)
	equal(t, "status", string(state.Status), string(actor.Quarantined))
	equal(t, "error", fmt.Sprint(state.Error), "map[$error:migration from version 1: not yet]")
	equal(t, "value", state.Value, any("a"))
}

// AResumeOfAnEarlierVersionIsReadAndReplayed: it was stored as a release.
func (Conformance) AResumeOfAnEarlierVersionIsReadAndReplayed(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	f.register(t, "toggle", toggle, nil)
	f.spawn(t, lamp)
	f.db.Exec(t, "update "+db.Table("perdure", "actors")+" set status = 'quarantined', reason = 'a look' where id = 'lamp'")
	f.reopen(t, nil)
	f.register(t, "toggle", toggle, nil)
	enginetest.NoError(t, f.actors.Resume(enginetest.Context(t), lamp, system))
	f.send(t, lamp, "FLIP")
	equal(t, "entries that are a resume", db.Int(t, "select count(*) from "+db.Table("perdure", "actor_log")+" where kind = 'resume'"), 1)
	f.db.Exec(t, "update "+db.Table("perdure", "actor_log")+" set kind = 'release' where kind = 'resume'")
	entries, err := f.actors.Log(enginetest.Context(t), lamp, 0, 10)
	enginetest.NoError(t, err)
	equal(t, "entries", len(entries), 3)
	equal(t, "kind", entries[1].Kind, actor.EntryResume)
	replayed, err := f.actors.Replay(enginetest.Context(t), lamp)
	enginetest.NoError(t, err)
	equal(t, "replayed", replayed.To, entries[2].Sequence)
}
