package actor_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/actor"
	"github.com/perdure/perdure/internal/test/enginetest"
)

func (Conformance) ADelayOfAnotherLengthIsPendingAfterAMigration(t *testing.T, db enginetest.Database) {
	longer := strings.ReplaceAll(waiter, `"1000"`, `"5000"`)
	for policy, want := range map[actor.TimerPolicy]int64{actor.KeepTimers: 5000, actor.RestartTimers: 5400, actor.DropTimers: 5400} {
		f := newFixture(t, enginetest.New(t, db.Name), nil)
		f.register(t, "w", waiter, nil)
		f.spawn(t, w1)
		f.clock.Advance(400 * time.Millisecond)
		f.reopen(t, nil)
		f.register(t, "w", longer, &actor.TypeOptions{Version: 2, MigrateTimers: policy})
		f.send(t, w1, "UNKNOWN")
		f.pending(t, w1, want)
		f.pass(t, want-401)
		f.is(t, w1, "a")
		f.pass(t, 1)
		f.is(t, w1, "fired")
		_, err := f.actors.Replay(enginetest.Context(t), w1)
		enginetest.NoError(t, err)
	}
}

func (Conformance) AnOverdueDelayOfTheEarlierVersionDoesNotFireIntoNothing(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	f.register(t, "w", waiter, nil)
	f.spawn(t, w1)
	f.reopen(t, nil)
	f.register(t, "w", strings.ReplaceAll(waiter, `"1000"`, `"5000"`), &actor.TypeOptions{Version: 2})
	f.pass(t, 1000) // the delay of version 1 is due: it migrates the actor
	f.is(t, w1, "a")
	f.pending(t, w1, 5000)
	f.pass(t, 4000)
	f.is(t, w1, "fired")
}

func (Conformance) AnUpgradeGivesAnActorTheDelaysOfTheNewDocument(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	ctx := enginetest.Context(t)
	for i, ms := range []string{"1000", "5000"} {
		_, err := f.actors.StoreStatechart(ctx, "w", []byte(strings.ReplaceAll(waiter, `"1000"`, `"`+ms+`"`)), nil)
		enginetest.NoError(t, err)
		if i == 0 {
			f.spawn(t, w1)
		}
	}
	f.clock.Advance(400 * time.Millisecond)
	f.pending(t, w1, 1000)
	enginetest.NoError(t, f.actors.Upgrade(ctx, w1, system))
	f.pending(t, w1, 5000)
	f.pass(t, 4600)
	f.is(t, w1, "fired")
	_, err := f.actors.Replay(ctx, w1)
	enginetest.NoError(t, err)
}

// drawVersion draws a version of a machine with the states of family, and the delays
// of each state.
func drawVersion(rnd *rand.Rand) (document string, delays map[string][]string) {
	delays = map[string][]string{}
	after := func(id string) string {
		var keys []string
		for range rnd.IntN(3) {
			if key := fmt.Sprint(1000 * (1 + rnd.IntN(20))); !slices.Contains(delays[id], key) {
				delays[id] = append(delays[id], key)
				keys = append(keys, `"`+key+`": {"target": "z"}`)
			}
		}
		return `"after": {` + strings.Join(keys, ", ") + `}`
	}
	states := func(id string) string {
		return `"initial": "a", "states": {"a": {` + after(id+".a") + `, "on": {"NEXT": "b", "END": "z"}}, "b": {` + after(id+".b") + `, "on": {"NEXT": "a"}}, "z": {"on": {"NEXT": "a"}}}`
	}
	return `{"id": "w", "type": "parallel", "invoke": {"src": "kid", "id": "kid"}, "states": {"p": {` + states("w.p") + `}, "q": {` + states("w.q") + `}},
		"on": {"KID": {"actions": {"type": "xstate.sendTo", "params": {"to": "kid", "event": {"type": "NEXT"}}}}},
		"machines": {"kid": {"id": "kid", ` + states("kid") + `}}}`, delays
}

func (Conformance) RandomMigrationsLeaveEachDelayOnce(t *testing.T, db enginetest.Database) {
	ctx := enginetest.Context(t)
	for seed := range uint64(5 * enginetest.Soak()) {
		rnd := rand.New(rand.NewPCG(seed, 16))
		first, _ := drawVersion(rnd)
		second, delays := drawVersion(rnd)
		f := newFixture(t, enginetest.New(t, db.Name), nil)
		f.register(t, "w", first, nil)
		f.spawn(t, w1)
		for range rnd.IntN(5) {
			f.send(t, w1, []string{"NEXT", "KID", "END"}[rnd.IntN(3)])
			f.pass(t, int64(rnd.IntN(1500)))
		}
		f.reopen(t, nil)
		policy := []actor.TimerPolicy{actor.KeepTimers, actor.RestartTimers, actor.DropTimers}[rnd.IntN(3)]
		f.register(t, "w", second, &actor.TypeOptions{Version: 2, MigrateTimers: policy})
		f.send(t, w1, "UNKNOWN")
		state, err := f.actors.State(ctx, w1)
		enginetest.NoError(t, err)
		var want []string
		for _, s := range append(state.Children, state) {
			for _, id := range s.Active {
				for _, key := range delays[id] {
					want = append(want, "xstate.after."+key+"."+id)
				}
			}
		}
		timers, err := f.actors.Timers(ctx, w1)
		enginetest.NoError(t, err)
		var got []string
		for _, timer := range timers {
			got = append(got, timer.Event.Type)
			equal(t, timer.ID+" leads to", len(timer.Leads), 1)
		}
		slices.Sort(got)
		slices.Sort(want)
		equal(t, fmt.Sprintf("seed %d, %s: delays", seed, policy), fmt.Sprint(got), fmt.Sprint(want))
		f.pass(t, 20_000)
		f.pending(t, w1) // each of them led to z, which has no delay
	}
}
