package upgrade_test

import (
	"encoding/json"
	"regexp"
	"testing"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/actor"
	"github.com/perdure/perdure/alarm"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/hook"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/outbox"
	"github.com/perdure/perdure/retry"
	"github.com/perdure/perdure/statechart"
	"github.com/perdure/perdure/task"
)

// The forms in which both releases show their work, as in the generator.
type (
	hookItem struct {
		Record   hook.Record
		Attempts []retry.Attempt
	}
	alarmItem struct {
		Record   alarm.Record
		Attempts []retry.Attempt
	}
	instance struct {
		Record   fsm.Instance
		Attempts []retry.Attempt
		History  []fsm.Transition
	}
	taskItem struct {
		Record   task.Record
		Attempts []retry.Attempt
	}
	actorItem struct {
		Record  actor.Record
		Timers  []actor.Timer
		Pending []statechart.InvokeOp
	}
	contents struct {
		Hooks     []hookItem
		Alarms    []alarmItem
		Instances []instance
		Schedules []fsm.ScheduleStatus
		Tasks     []taskItem
		Actors    []actorItem
		Outbox    []outbox.Entry
	}
)

// UnmarshalJSON reads a task of the version before, whose id was a number in Go.
func (i *taskItem) UnmarshalJSON(raw []byte) error {
	type plain taskItem
	number := regexp.MustCompile(`"ID":\s*(\d+)`)
	return json.Unmarshal(number.ReplaceAll(raw, []byte(`"ID":"$1"`)), (*plain)(i))
}

// must returns a function that returns a value, and ends the test if there is an error.
func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		enginetest.NoError(t, err)
		return v
	}
}

// hookItems returns all hooks, found by the list and read by their ids.
func (p *process) hookItems() (all []hookItem) {
	p.t.Helper()
	ctx, admin := enginetest.Context(p.t), must[*hook.Admin](p.t)(hook.NewAdmin(p.eng))
	list, _, err := admin.List(ctx, hook.Filter{}, "", hook.MaxLimit)
	enginetest.NoError(p.t, err)
	for _, r := range list {
		all = append(all, hookItem{must[hook.Record](p.t)(admin.Get(ctx, r.ID)), must[[]retry.Attempt](p.t)(admin.Attempts(ctx, r.ID))})
	}
	return all
}

func (p *process) alarmItems() (all []alarmItem) {
	p.t.Helper()
	ctx := enginetest.Context(p.t)
	list, _, err := p.alarms.List(ctx, alarm.Filter{}, "", alarm.MaxLimit)
	enginetest.NoError(p.t, err)
	for _, r := range list {
		all = append(all, alarmItem{must[alarm.Record](p.t)(p.alarms.Get(ctx, r.Key)), must[[]retry.Attempt](p.t)(p.alarms.Attempts(ctx, r.Key))})
	}
	return all
}

func (p *process) instances() (all []instance) {
	p.t.Helper()
	ctx := enginetest.Context(p.t)
	list, _, err := p.fsm.List(ctx, fsm.Filter{}, "", fsm.MaxLimit)
	enginetest.NoError(p.t, err)
	for _, r := range list {
		history, _, err := p.fsm.History(ctx, r.ID, "", fsm.MaxLimit)
		enginetest.NoError(p.t, err)
		i := must[fsm.Instance](p.t)(p.fsm.Get(ctx, r.ID))
		i.State, i.Result = value(i.State), value(i.Result)
		all = append(all, instance{i, must[[]retry.Attempt](p.t)(p.fsm.Attempts(ctx, r.ID)), history})
	}
	return all
}

func (p *process) taskItems() (all []taskItem) {
	p.t.Helper()
	ctx, admin := enginetest.Context(p.t), must[*task.Admin](p.t)(task.NewAdmin(p.eng))
	list, _, err := admin.List(ctx, task.Filter{}, "", task.MaxLimit)
	enginetest.NoError(p.t, err)
	for _, r := range list {
		i := must[task.Record](p.t)(admin.Get(ctx, r.ID))
		i.Outcome = value(i.Outcome)
		all = append(all, taskItem{i, must[[]retry.Attempt](p.t)(admin.Attempts(ctx, r.ID))})
	}
	return all
}

func (p *process) actorItems() (all []actorItem) {
	p.t.Helper()
	ctx := enginetest.Context(p.t)
	list, _, err := p.actors.List(ctx, actor.Filter{}, "", actor.MaxLimit)
	enginetest.NoError(p.t, err)
	for _, r := range list {
		all = append(all, actorItem{
			must[actor.Record](p.t)(p.actors.Get(ctx, r.Ref)),
			must[[]actor.Timer](p.t)(p.actors.Timers(ctx, r.Ref)),
			must[[]statechart.InvokeOp](p.t)(p.actors.Pending(ctx, r.Ref)),
		})
	}
	return all
}

// value returns a JSON value, nil if there is none.
func value(v json.RawMessage) json.RawMessage {
	if len(v) == 0 {
		return nil
	}
	return v
}

// labelOf returns the label of an instance.
func labelOf(i fsm.Instance) string {
	var state item
	_ = json.Unmarshal(i.State, &state) // the generator has written it
	return state.Label
}

// balances returns the rows of the user's table, by their owners.
func (p *process) balances() map[string]int64 {
	p.t.Helper()
	all := map[string]int64{}
	enginetest.NoError(p.t, p.eng.View(enginetest.Context(p.t), func(tx *perdure.Tx) error {
		rows, err := tx.Find(accounts, nil)
		for _, row := range rows {
			all[row.String("owner")] = row.Int("balance")
		}
		return err
	}))
	return all
}
