package actor_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/actor"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/statechart"
)

// The text that actors are built after has a scheduler that goes wrong in ways
// that the design corrects (section 10, numbers 15 to 17). seed is that scheduler
// as the text has it, on the same interpreter; each test shows what it does, and
// beside it what we do.

// seed is one durable object of the text.
type seed struct {
	machine *statechart.Machine
	tree    *statechart.Tree
	session int // of the actors in this process
	alarms  []seedAlarm
}

// seedAlarm is a row of its table of alarms.
type seedAlarm struct {
	id          string
	scheduledAt int64
	timer       statechart.Timer
}

func newSeed(t *testing.T, document string) *seed {
	t.Helper()
	m, err := statechart.Parse([]byte(document), nil, nil)
	enginetest.NoError(t, err)
	s := &seed{machine: m, session: 1}
	tree, step, err := m.Start(0, nil)
	enginetest.NoError(t, err)
	s.tree = tree
	s.schedule(step)
	return s
}

// schedule is createAlarmScheduler: ids are session ids and send ids.
func (s *seed) schedule(step *statechart.Step) {
	for _, o := range step.Timers {
		id := fmt.Sprintf("xstate-session-%d.%s", s.session, o.Timer.ID)
		switch o.Kind {
		case statechart.Schedule:
			if !slices.ContainsFunc(s.alarms, func(a seedAlarm) bool { return a.id == id }) { // a plain INSERT whose error is swallowed
				s.alarms = append(s.alarms, seedAlarm{id: id, scheduledAt: o.Timer.Due, timer: o.Timer})
			}
		case statechart.Cancel:
			s.alarms = slices.DeleteFunc(s.alarms, func(a seedAlarm) bool { return a.id == id })
		case statechart.CancelAll: // walks a map of this process's memory
		}
	}
}

func (s *seed) send(t *testing.T, now int64, event string) {
	t.Helper()
	step, err := s.tree.Send(now, statechart.Event{Type: event})
	enginetest.NoError(t, err)
	s.schedule(step)
}

// hibernate loses what is in memory. The stored snapshot is getSnapshot(), which
// has the children's ids only.
func (s *seed) hibernate(t *testing.T) {
	t.Helper()
	raw, err := s.tree.Snapshot()
	enginetest.NoError(t, err)
	var snapshot map[string]any
	enginetest.NoError(t, json.Unmarshal(raw, &snapshot))
	snapshot["children"] = map[string]any{}
	raw, err = json.Marshal(snapshot)
	enginetest.NoError(t, err)
	s.tree, err = s.machine.Restore(raw)
	enginetest.NoError(t, err)
	s.session++
}

// alarm is handleDueAlarms: each due row is deleted, then handled, and relayed to
// the root whoever it was for.
func (s *seed) alarm(t *testing.T, now int64, crash bool) {
	t.Helper()
	due := slices.DeleteFunc(slices.Clone(s.alarms), func(a seedAlarm) bool { return a.scheduledAt > now })
	slices.SortStableFunc(due, func(a, b seedAlarm) int { return int(a.scheduledAt - b.scheduledAt) })
	for _, a := range due {
		s.alarms = slices.DeleteFunc(s.alarms, func(other seedAlarm) bool { return other.id == a.id })
		if crash {
			return
		}
		root := statechart.Timer{Event: a.timer.Event, TargetGeneration: s.tree.State().Generation}
		step, err := s.tree.Fire(now, root)
		enginetest.NoError(t, err)
		s.schedule(step)
	}
}

func (s *seed) value() string { return fmt.Sprint(s.tree.State().Value) }

func sqliteFixture(t *testing.T, document string) *fixture {
	t.Helper()
	return timed(t, enginetest.New(t, enginetest.SQLite), document)
}

func TestCorrection15ACrashInTheHandlerDoesNotLoseTheDelay(t *testing.T) {
	t.Parallel()
	s := newSeed(t, waiter)
	s.alarm(t, 1000, true)
	s.alarm(t, 5000, false)
	equal(t, "the text's actor", s.value(), "a") // for ever: the row was deleted first

	f := sqliteFixture(t, waiter)
	f.clock.Advance(time.Second)
	log := f.db.Table("perdure", "actor_log")
	f.db.Exec(t, "alter table "+log+" rename to elsewhere") // the step fails when it is written
	_, err := f.actors.Process(enginetest.Context(t))
	equal(t, "failed", err != nil, true)
	f.db.Exec(t, "alter table elsewhere rename to "+log)
	f.restart(t)
	f.process(t)
	f.is(t, w1, "fired")
}

func TestCorrection15ARestartDoesNotChangeTheIDsOfDelays(t *testing.T) {
	t.Parallel()
	s := newSeed(t, waiter)
	s.hibernate(t)
	s.send(t, 900, "OUT")
	s.send(t, 900, "BACK")
	s.alarm(t, 1000, false)
	equal(t, "the text's actor", s.value(), "fired") // 900 ms early: the cancel missed

	f := sqliteFixture(t, waiter)
	f.clock.Advance(900 * time.Millisecond)
	f.restart(t)
	f.send(t, w1, "OUT")
	f.send(t, w1, "BACK")
	f.pass(t, 100)
	f.is(t, w1, "a")
	f.pass(t, 900)
	f.is(t, w1, "fired")
}

func TestCorrection15ADelayOfAChildIsNotTheRoots(t *testing.T) {
	t.Parallel()
	s := newSeed(t, parent)
	s.alarm(t, 100, false)
	equal(t, "the text's actor", s.value(), "a") // the child heard nothing

	f := sqliteFixture(t, parent)
	f.pass(t, 100)
	f.is(t, w1, "heard")
}

func TestCorrection15AnEarlierDelayCanCancelALaterOne(t *testing.T) {
	t.Parallel()
	s := newSeed(t, rival)
	s.alarm(t, 10, false)
	late, _ := statechart.Float(s.tree.State().Context["late"])
	equal(t, "late events of the text's actor", late, 1.0) // the batch was read once

	f := sqliteFixture(t, rival)
	f.pass(t, 10)
	state, err := f.actors.State(enginetest.Context(t), w1)
	enginetest.NoError(t, err)
	equal(t, "late events", state.Context["late"], any(int64(0)))
}

func TestCorrection15TheNotationsOfTheTextDoNotFireAtOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t, enginetest.New(t, enginetest.SQLite), nil)
	err := f.actors.Register("object", []byte(`{"initial": "a", "states": {"a": {"after": {"delay": 1000, "target": "b"}}, "b": {}}}`), nil)
	enginetest.As[*fault.Invalid](t, err)
	f.register(t, "w", `{"id": "w", "initial": "a", "states": {"a": {"after": [{"delay": 1000, "target": "b"}]}, "b": {}}}`, nil)
	f.spawn(t, w1)
	equal(t, "fired at 999", f.pass(t, 999), 0)
	equal(t, "fired at 1000", f.pass(t, 1), 1)
}

func TestCorrection17ForgedEventsDoNotReachTheMachine(t *testing.T) {
	t.Parallel()
	forged := statechart.Event{Type: "xstate.after.1000.w.a"}
	s := newSeed(t, waiter)
	_, err := s.tree.Fire(0, statechart.Timer{Event: forged, TargetGeneration: s.tree.State().Generation}) // actor.send(event)
	enginetest.NoError(t, err)
	equal(t, "the text's actor", s.value(), "fired") // a second early, by any client

	f := sqliteFixture(t, waiter)
	_, err = f.actors.Send(enginetest.Context(t), w1, alice, forged, nil)
	enginetest.As[*fault.Invalid](t, err)
	f.is(t, w1, "a")
}

func TestCorrection17ChildrenAreStored(t *testing.T) {
	t.Parallel()
	s := newSeed(t, parent)
	s.hibernate(t)
	equal(t, "children of the text's actor", len(s.tree.State().Children), 0)

	f := sqliteFixture(t, parent)
	f.restart(t)
	state, err := f.actors.State(enginetest.Context(t), w1)
	enginetest.NoError(t, err)
	equal(t, "children", len(state.Children), 1)
	f.pass(t, 100)
	f.is(t, w1, "heard")
}

func TestCorrection17TheChecksumIsVerified(t *testing.T) {
	t.Parallel()
	s := newSeed(t, toggle)
	raw, err := s.tree.Snapshot()
	enginetest.NoError(t, err)
	tree, err := s.machine.Restore([]byte(strings.NewReplacer(`"off"`, `"on"`, "toggle.off", "toggle.on").Replace(string(raw))))
	enginetest.NoError(t, err)
	equal(t, "the text's actor", fmt.Sprint(tree.State().Value), "on") // nobody noticed

	var told []actor.Damage
	options := &actor.Options{OnDamage: func(d actor.Damage) { told = append(told, d) }}
	f := newFixture(t, enginetest.New(t, enginetest.SQLite), options)
	f.register(t, "toggle", toggle, nil)
	f.spawn(t, lamp)
	f.damage(t, lamp)
	f.reopen(t, options)
	f.register(t, "toggle", toggle, nil)
	equal(t, "value", f.send(t, lamp, "FLIP").View.Value, any("on"))
	equal(t, "damages", len(told), 1)
}
