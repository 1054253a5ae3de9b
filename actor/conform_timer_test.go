package actor_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/actor"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/statechart"
)

// waiter waits a second in a, and can be sent away and back.
const waiter = `{
	"id": "w", "initial": "a",
	"states": {
		"a": {"after": {"1000": "fired"}, "on": {"OUT": "b", "INNER": {"actions": {"type": "xstate.log", "params": {"value": "x"}}}, "AGAIN": {"target": "a", "reenter": true}}},
		"b": {"on": {"BACK": "a"}},
		"fired": {}
	}
}`

var w1 = actor.Ref{Type: "w", ID: "1"}

// timed is a fixture with one actor of a type.
func timed(t *testing.T, db enginetest.Database, document string, more ...func(*actor.TypeOptions)) *fixture {
	t.Helper()
	f := newFixture(t, db, nil)
	f.document = document
	o := &actor.TypeOptions{}
	for _, set := range more {
		set(o)
	}
	f.register(t, "w", document, o)
	f.spawn(t, w1)
	return f
}

// restart makes a new process that knows the same type.
func (f *fixture) restart(t testing.TB) {
	t.Helper()
	f.reopen(t, nil)
	f.register(t, "w", f.document, nil)
}

// pass lets time pass and runs what is due then.
func (f *fixture) pass(t testing.TB, ms int64) int {
	t.Helper()
	f.clock.Advance(time.Duration(ms) * time.Millisecond)
	return f.process(t)
}

func (f *fixture) process(t testing.TB) int {
	t.Helper()
	n, err := f.actors.Process(enginetest.Context(t))
	enginetest.NoError(t, err)
	return n
}

// is ends the test unless the actor is in the state.
func (f *fixture) is(t testing.TB, ref actor.Ref, want string) {
	t.Helper()
	equal(t, "value of "+ref.String(), fmt.Sprint(f.value(t, ref)), want)
}

// pending ends the test unless the actor has delays that are due so many
// milliseconds after noon.
func (f *fixture) pending(t testing.TB, ref actor.Ref, want ...int64) []actor.Timer {
	t.Helper()
	timers, err := f.actors.Timers(enginetest.Context(t), ref)
	enginetest.NoError(t, err)
	var got []int64
	for _, timer := range timers {
		got = append(got, timer.Due.Sub(noon).Milliseconds())
	}
	equal(t, "delays", fmt.Sprint(got), fmt.Sprint(want))
	return timers
}

// log returns the entries of an actor's log after a step.
func (f *fixture) log(t testing.TB, ref actor.Ref, after int64) []actor.Entry {
	t.Helper()
	entries, err := f.actors.Log(enginetest.Context(t), ref, after, actor.MaxLimit)
	enginetest.NoError(t, err)
	return entries
}

// times returns when entries of the log happened, in milliseconds after noon.
func times(entries []actor.Entry) (ms []int64) {
	for _, e := range entries {
		ms = append(ms, e.At.Sub(noon).Milliseconds())
	}
	return ms
}

func (Conformance) Case13ARestartDoesNotMoveADelay(t *testing.T, db enginetest.Database) {
	f := timed(t, db, waiter)
	equal(t, "fired at 400", f.pass(t, 400), 0)
	f.clock.Advance(300 * time.Millisecond)
	f.restart(t)
	equal(t, "fired at 700", f.process(t), 0)
	equal(t, "fired at 999", f.pass(t, 299), 0)
	equal(t, "fired at 1000", f.pass(t, 1), 1)
	f.is(t, w1, "fired")
}

func (Conformance) Case14AnOverdueDelayFiresOnceWithItsOwnTime(t *testing.T, db enginetest.Database) {
	f := timed(t, db, waiter)
	f.clock.Advance(5 * time.Second)
	f.restart(t)
	equal(t, "fired", f.process(t), 1)
	equal(t, "fired again", f.process(t), 0)
	f.is(t, w1, "fired")
	equal(t, "times", fmt.Sprint(times(f.log(t, w1, 1))), "[1000]")
}

func (Conformance) Case15ADelayOfAStateThatWasLeftNeverFires(t *testing.T, db enginetest.Database) {
	f := timed(t, db, waiter)
	f.send(t, w1, "OUT")
	f.pending(t, w1)
	f.restart(t)
	equal(t, "fired", f.pass(t, 5000), 0)
	f.is(t, w1, "b")
}

func (Conformance) Case16EnteringAgainStartsTheDelayAgain(t *testing.T, db enginetest.Database) {
	f := timed(t, db, waiter)
	f.pass(t, 900)
	f.send(t, w1, "OUT")
	f.send(t, w1, "BACK")
	f.pending(t, w1, 1900)
	equal(t, "fired at 1899", f.pass(t, 999), 0)
	equal(t, "fired at 1900", f.pass(t, 1), 1)
}

func (Conformance) Case17OnlyReenteringMovesADelay(t *testing.T, db enginetest.Database) {
	f := timed(t, db, waiter)
	f.pass(t, 600)
	f.send(t, w1, "INNER")
	f.pending(t, w1, 1000)
	f.send(t, w1, "AGAIN")
	f.pending(t, w1, 1600)
}

// many schedules so many delays for the same millisecond, and counts.
func many(n int) string {
	var raises []string
	for i := range n {
		raises = append(raises, fmt.Sprintf(`{"type": "xstate.raise", "params": {"event": {"type": "T", "n": %d}, "delay": 10, "id": "t%d"}}`, i, i))
	}
	return `{"id": "w", "initial": "a", "context": {"seen": []}, "states": {"a": {"entry": [` + strings.Join(raises, ",") + `],
		"on": {"T": {"actions": {"type": "xstate.assign", "params": {"assignment": {"seen": {"$expr": "concat(context.seen, [event.n])"}}}}}}}}}`
}

func (Conformance) Case18DelaysOfTheSameMillisecondFireInTheirOrder(t *testing.T, db enginetest.Database) {
	const n = 200
	f := newFixture(t, db, nil)
	f.document = many(n)
	f.register(t, "w", f.document, nil)
	for i := range 5 {
		f.spawn(t, actor.Ref{Type: "w", ID: fmt.Sprint(i)})
	}
	f.pass(t, 10)
	for i := range 5 {
		state, err := f.actors.State(enginetest.Context(t), actor.Ref{Type: "w", ID: fmt.Sprint(i)})
		enginetest.NoError(t, err)
		seen := state.Context["seen"].([]any)
		equal(t, "fired", len(seen), n)
		for i, v := range seen {
			equal(t, "delay", v, any(int64(i)))
		}
	}
}

// rival has two delays of which the first cancels the second.
const rival = `{
	"id": "w", "type": "parallel", "context": {"late": 0},
	"states": {
		"first": {"initial": "a", "states": {"a": {"after": {"10": {"target": "b", "actions": {"type": "xstate.cancel", "params": {"sendId": "late"}}}}}, "b": {}}},
		"second": {"entry": {"type": "xstate.raise", "params": {"event": {"type": "LATE"}, "delay": 10, "id": "late"}},
			"on": {"LATE": {"actions": {"type": "xstate.assign", "params": {"assignment": {"late": 1}}}}}}
	}
}`

func (Conformance) Case19ADelayThatAnEarlierOneCancelsIsNotDelivered(t *testing.T, db enginetest.Database) {
	for _, sleep := range []int64{10, 24 * 3600 * 1000} {
		f := newFixture(t, enginetest.New(t, db.Name), nil)
		f.document = rival
		f.register(t, "w", rival, nil)
		f.spawn(t, w1)
		f.pending(t, w1, 10, 10)
		f.pass(t, sleep)
		state, err := f.actors.State(enginetest.Context(t), w1)
		enginetest.NoError(t, err)
		equal(t, "late events", state.Context["late"], any(int64(0)))
		f.pending(t, w1)
	}
}

const chain = `{"id": "w", "initial": "a", "states": {"a": {"after": {"10": "b"}}, "b": {"after": {"10": "c"}}, "c": {"after": {"10": "d"}}, "d": {"on": {"E": "e"}}, "e": {}}}`

func (Conformance) Case20AChainThatWasSleptOverHasItsOwnTimes(t *testing.T, db enginetest.Database) {
	f := timed(t, db, chain)
	f.clock.Advance(time.Hour)
	f.restart(t)
	f.process(t)
	f.is(t, w1, "d")
	equal(t, "times", fmt.Sprint(times(f.log(t, w1, 1))), "[10 20 30]")
}

func (Conformance) Case20AnEventFindsTheChainBehindIt(t *testing.T, db enginetest.Database) {
	f := timed(t, db, chain)
	f.clock.Advance(time.Hour)
	f.restart(t)
	f.send(t, w1, "E")
	f.is(t, w1, "e")
	equal(t, "times", fmt.Sprint(times(f.log(t, w1, 1))), "[10 20 30 3600000]")
}

// raiser raises delayed events when it is told to.
const raiser = `{
	"id": "w", "initial": "a", "context": {"n": 0},
	"states": {"a": {"on": {
		"NAMED": {"actions": {"type": "xstate.raise", "params": {"event": {"type": "T"}, "delay": 100, "id": "x"}}},
		"NAMELESS": {"actions": {"type": "xstate.raise", "params": {"event": {"type": "T"}, "delay": 100}}},
		"CANCEL": {"actions": {"type": "xstate.cancel", "params": {"sendId": "x"}}},
		"T": {"actions": {"type": "xstate.assign", "params": {"assignment": {"n": {"$expr": "context.n + 1"}}}}}
	}}}
}`

// counted ends the test unless the context's n is that.
func (f *fixture) counted(t testing.TB, want int64) {
	t.Helper()
	state, err := f.actors.State(enginetest.Context(t), w1)
	enginetest.NoError(t, err)
	n, _ := statechart.Float(state.Context["n"])
	equal(t, "events", int64(n), want)
}

func (Conformance) Case21ADelayIsCancelledAfterARestart(t *testing.T, db enginetest.Database) {
	f := timed(t, db, raiser)
	f.send(t, w1, "NAMED")
	f.pending(t, w1, 100)
	f.restart(t)
	f.send(t, w1, "CANCEL")
	f.pending(t, w1)
	f.pass(t, 1000)
	f.counted(t, 0)
}

func (Conformance) Case22TheSameIDRaisedAgainIsOneDelivery(t *testing.T, db enginetest.Database) {
	f := timed(t, db, raiser)
	f.send(t, w1, "NAMED")
	f.clock.Advance(50 * time.Millisecond)
	f.send(t, w1, "NAMED")
	f.pending(t, w1, 150)
	f.pass(t, 50)
	f.counted(t, 0)
	f.pass(t, 50)
	f.counted(t, 1)
}

func (Conformance) Case23TwoNamelessDelaysAreBothDelivered(t *testing.T, db enginetest.Database) {
	f := timed(t, db, raiser)
	f.send(t, w1, "NAMELESS")
	f.send(t, w1, "NAMELESS")
	f.restart(t)
	f.pass(t, 100)
	f.counted(t, 2)
}

// parent has a child with a delay.
const parent = `{
	"id": "w", "initial": "a",
	"states": {
		"a": {"invoke": {"src": "kid", "id": "kid"}, "on": {"OUT": "b", "KID": "heard"}, "after": {"5000": "late"}},
		"b": {}, "heard": {"type": "final"}, "late": {}
	},
	"machines": {"kid": {"id": "kid", "initial": "x", "states": {"x": {"after": {"100": "y"}}, "y": {"entry": {"type": "xstate.sendTo", "params": {"to": "#_parent", "event": {"type": "KID"}}}}}}}
}`

func (Conformance) Case24ADelayOfAChildReachesTheChild(t *testing.T, db enginetest.Database) {
	f := timed(t, db, parent)
	timers := f.pending(t, w1, 100, 5000)
	equal(t, "target", timers[0].Target, "kid")
	f.restart(t)
	f.pass(t, 100)
	f.is(t, w1, "heard")
}

func (Conformance) Case25TheDelaysOfAStoppedChildVanish(t *testing.T, db enginetest.Database) {
	f := timed(t, db, parent)
	f.restart(t)
	f.send(t, w1, "OUT")
	f.pending(t, w1)
}

func (Conformance) Case26AFinalStateLeavesNoDelays(t *testing.T, db enginetest.Database) {
	f := timed(t, db, parent)
	f.pass(t, 100)
	f.pending(t, w1)
	r := f.send(t, w1, "OUT")
	equal(t, "dropped", r.Dropped, true)
	record, err := f.actors.Get(enginetest.Context(t), w1)
	enginetest.NoError(t, err)
	equal(t, "status", record.Status, actor.Done)
}

func (Conformance) Case27ADelayOfSixtyDays(t *testing.T, db enginetest.Database) {
	const days60 = 60 * 24 * 3600 * 1000
	f := timed(t, db, fmt.Sprintf(`{"id": "w", "initial": "a", "states": {"a": {"after": {"%d": "b"}}, "b": {}}}`, days60))
	f.pending(t, w1, days60)
	equal(t, "fired early", f.pass(t, days60-1), 0)
	equal(t, "fired", f.pass(t, 1), 1)
}

func (Conformance) Case28OddDelays(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	for name, c := range map[string]struct {
		delay string
		want  []int64
	}{
		"negative": {"-5", []int64{0}}, "fraction": {"0.5", []int64{1}},
	} {
		f.register(t, name, `{"initial": "a", "states": {"a": {"entry": {"type": "xstate.raise", "params": {"event": {"type": "T"}, "delay": {"$expr": "`+c.delay+`"}}}}}}`, nil)
		ref := actor.Ref{Type: name, ID: "1"}
		f.spawn(t, ref)
		f.pending(t, ref, c.want...)
	}
	err := f.actors.Register("NaN", []byte(`{"initial": "a", "states": {"a": {"after": {"NaN": "a"}}}}`), nil)
	enginetest.As[*fault.Invalid](t, err)
}

func (Conformance) Case30AClockThatGoesBackFiresNothingEarlyOrTwice(t *testing.T, db enginetest.Database) {
	f := timed(t, db, waiter)
	f.clock.Set(noon.Add(-time.Hour))
	equal(t, "fired after the clock went back", f.process(t), 0)
	f.send(t, w1, "OUT")
	f.send(t, w1, "BACK")
	f.pending(t, w1, 1000) // the actor's own time did not go back
	f.clock.Set(noon.Add(time.Second))
	equal(t, "fired", f.process(t), 1)
	f.clock.Set(noon.Add(-time.Hour))
	equal(t, "fired again", f.process(t), 0)
	f.clock.Set(noon.Add(time.Hour))
	equal(t, "fired again", f.process(t), 0)
	f.is(t, w1, "fired")
}

func (Conformance) DelaysOfTypesThatThisProcessDoesNotKnowAreLeftAlone(t *testing.T, db enginetest.Database) {
	f := timed(t, db, waiter)
	f.clock.Advance(time.Hour)
	f.reopen(t, nil)
	equal(t, "fired", f.process(t), 0)
	next, err := f.actors.NextWakeAt(enginetest.Context(t))
	enginetest.NoError(t, err)
	equal(t, "has a next wake", next.IsZero(), true)
	f.register(t, "w", waiter, nil)
	equal(t, "fired", f.process(t), 1)
}

func (Conformance) DisabledAlarmsStoreNoDelays(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	f.register(t, "w", waiter, &actor.TypeOptions{DisableTimers: true})
	f.spawn(t, w1)
	f.pending(t, w1)
	equal(t, "fired", f.pass(t, 5000), 0)
	f.is(t, w1, "a")
}
