//go:build ignore

package main

import (
	"encoding/json"

	"github.com/perdure/perdure/actor"
	"github.com/perdure/perdure/alarm"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/hook"
	"github.com/perdure/perdure/outbox"
	"github.com/perdure/perdure/retry"
	"github.com/perdure/perdure/statechart"
	"github.com/perdure/perdure/task"
)

// The forms in which the old release shows its work.
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
		Pending []statechart.TaskOp
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

// contents returns all data of the database, in the order of the lists.
func (p *process) contents() (c contents) {
	hooks := hook.NewAdmin(p.eng)
	list, _, err := hooks.List(ctx, hook.Filter{}, "", 1000)
	check(err)
	for _, r := range list {
		c.Hooks = append(c.Hooks, hookItem{must(hooks.Get(ctx, r.ID)), must(hooks.Attempts(ctx, r.ID))})
	}
	c.Outbox = must(p.eng.Outbox().List(ctx, outbox.Stamp{}, 1000))
	if !p.whole {
		return c
	}
	alarms, _, err := p.alarms.List(ctx, alarm.Filter{}, "", 1000)
	check(err)
	for _, r := range alarms {
		c.Alarms = append(c.Alarms, alarmItem{must(p.alarms.Get(ctx, r.Key)), must(p.alarms.Attempts(ctx, r.Key))})
	}
	instances, _, err := p.fsm.List(ctx, fsm.Filter{}, "", 1000)
	check(err)
	for _, r := range instances {
		history, _, err := p.fsm.History(ctx, r.ID, "", 1000)
		check(err)
		i := must(p.fsm.Get(ctx, r.ID))
		i.State, i.Result = value(i.State), value(i.Result)
		c.Instances = append(c.Instances, instance{i, must(p.fsm.Attempts(ctx, r.ID)), history})
	}
	c.Schedules = must(p.fsm.Schedules(ctx))
	admin := must(task.NewAdmin(p.eng))
	tasks, _, err := admin.List(ctx, task.Filter{}, "", 1000)
	check(err)
	for _, r := range tasks {
		t := must(admin.Get(ctx, r.ID))
		t.Outcome = value(t.Outcome)
		c.Tasks = append(c.Tasks, taskItem{t, must(admin.Attempts(ctx, r.ID))})
	}
	actors, _, err := p.actors.List(ctx, actor.Filter{}, "", 1000)
	check(err)
	for _, r := range actors {
		c.Actors = append(c.Actors, actorItem{must(p.actors.Get(ctx, r.Ref)), must(p.actors.Timers(ctx, r.Ref)), must(p.actors.Pending(ctx, r.Ref))})
	}
	return c
}

// value returns a JSON value, nil if there is none.
func value(v json.RawMessage) json.RawMessage {
	if len(v) == 0 {
		return nil
	}
	return v
}
