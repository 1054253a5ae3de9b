package inspect

import (
	"context"
	"fmt"
	"time"

	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
)

// Overview is how much there is of one kind of work. Numbers stop at Cap: one that
// is greater means that there are more.
type Overview struct {
	Kind string
	// Due could run now, Scheduled later.
	Due, Scheduled int
	// Running is claimed by processes, Waiting waits for something else than time.
	Running, Waiting int
	Failed           int
	// OldestDue is since when the oldest of those that are due is.
	OldestDue time.Time
	// Total is how many there are in all, of kinds that are not run.
	Total int
}

// Overview returns how much there is of every kind of work, on one snapshot.
func (i *Inspector) Overview(ctx context.Context) ([]Overview, error) {
	var all []Overview
	err := i.view(ctx, func(run sqldb.Runner) error {
		now, err := i.now(ctx, run)
		if err != nil {
			return err
		}
		all, err = i.overview(ctx, run, now)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("count work: %w", err)
	}
	executing, more, err := i.CountInstances(ctx, Instances{Status: fsm.Running})
	if err != nil {
		return nil, fmt.Errorf("count work: %w", err)
	}
	all[0].Running = executing
	if more {
		all[0].Running = Cap + 1
	}
	return all, nil
}

func (i *Inspector) overview(ctx context.Context, run sqldb.Runner, now time.Time) ([]Overview, error) {
	instances, hooks, tasks := Overview{Kind: store.InstanceKind}, Overview{Kind: store.HookKind}, Overview{Kind: store.TaskKind}
	alarms, actors, schedules := Overview{Kind: store.AlarmKind}, Overview{Kind: store.ActorKind}, Overview{Kind: store.ScheduleKind}
	places := map[string]int{}
	stmts := []sqldb.Stmt{i.rt.Store.CountPlaces(Cap+1, func(place string, n int) { places[place] = n })}
	for kind, count := range map[*Overview]func(context.Context, sqldb.Runner, *Overview, time.Time) ([]sqldb.Stmt, error){
		&instances: i.countInstances, &hooks: i.countHooks, &tasks: i.countTasks, &alarms: i.countAlarms,
	} {
		more, err := count(ctx, run, kind, now)
		if err != nil {
			return nil, err
		}
		stmts = append(stmts, more...)
	}
	if err := run.Run(ctx, stmts...); err != nil {
		return nil, err
	}
	instances.Waiting = atMost(places["instance.waiting"] + places["instance.joining"] + places["instance.queued"] + places["instance.unrouted"])
	instances.Failed = places["instance.failed"]
	hooks.Running, hooks.Failed = places["hook.running"], places["hook.failed"]
	tasks.Running, tasks.Failed = places["task.running"], places["task.failed"]
	alarms.Running, alarms.Failed = places["alarm.running"], places["alarm.failed"]
	actors.Total, actors.Failed = places["actor.total"], places["actor.failed"]
	schedules.Total = places["schedule.total"]
	return []Overview{instances, hooks, tasks, alarms, actors, schedules}, nil
}

// atMost stops a sum at the number that means more than Cap.
func atMost(n int) int { return min(n, Cap+1) }

// spans are what is due and what will be.
func spans(now time.Time) (due, later store.Span) {
	return store.Span{After: time.Unix(0, 0).UTC(), Until: now}, store.Span{After: now, Until: endOfTime}
}

// addDue and addLater count what a statement has found.
func (o *Overview) addDue(n int, first *time.Time) {
	o.Due = atMost(o.Due + n)
	if first != nil && (o.OldestDue.IsZero() || first.Before(o.OldestDue)) {
		o.OldestDue = first.UTC()
	}
}

func (o *Overview) addLater(n int, _ *time.Time) { o.Scheduled = atMost(o.Scheduled + n) }

func (i *Inspector) countInstances(ctx context.Context, run sqldb.Runner, o *Overview, now time.Time) (stmts []sqldb.Stmt, err error) {
	due, later := spans(now)
	groups, err := i.readyGroups(ctx, run)
	for _, g := range groups {
		stmts = append(stmts, i.rt.Store.CountDueInstances(g, due, Cap+1, o.addDue), i.rt.Store.CountDueInstances(g, later, Cap+1, o.addLater))
	}
	return stmts, err
}

func (i *Inspector) countHooks(ctx context.Context, run sqldb.Runner, o *Overview, now time.Time) (stmts []sqldb.Stmt, err error) {
	due, later := spans(now)
	groups, err := i.hookGroups(ctx, run)
	for _, g := range groups {
		stmts = append(stmts, i.rt.Store.CountDueHooks(g, due, Cap+1, o.addDue), i.rt.Store.CountDueHooks(g, later, Cap+1, o.addLater))
	}
	return stmts, err
}

func (i *Inspector) countTasks(ctx context.Context, run sqldb.Runner, o *Overview, now time.Time) (stmts []sqldb.Stmt, err error) {
	due, later := spans(now)
	types, err := i.taskGroups(ctx, run)
	for _, t := range types {
		stmts = append(stmts, i.rt.Store.CountDueTasks(t, due, Cap+1, o.addDue), i.rt.Store.CountDueTasks(t, later, Cap+1, o.addLater))
	}
	return stmts, err
}

func (i *Inspector) countAlarms(_ context.Context, _ sqldb.Runner, o *Overview, now time.Time) ([]sqldb.Stmt, error) {
	due, later := spans(now)
	return []sqldb.Stmt{i.rt.Store.CountDueAlarms(due, Cap+1, o.addDue), i.rt.Store.CountDueAlarms(later, Cap+1, o.addLater)}, nil
}
