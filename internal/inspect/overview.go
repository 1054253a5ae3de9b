package inspect

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
)

// Overview has the amounts of one kind of work. Numbers stop at Cap: a greater number means
// that there are more.
type Overview struct {
	Kind string
	// Due is the amount that can run now, Scheduled the amount that is due later.
	Due, Scheduled int
	// Running is the amount that processes have claimed. Waiting is the amount that waits for
	// something other than time.
	Running, Waiting int
	Failed           int
	// OldestDue is the earliest due time of due work.
	OldestDue time.Time
	// Total is the total amount, for kinds that are not run.
	Total int
	// Statuses are the numbers by status, as far as they are known.
	Statuses map[string]int
}

// Queue has the due work of one queue of state machines.
type Queue struct {
	Name      string
	Due       int
	OldestDue time.Time
}

// Everything has the amounts of all kinds of work.
type Everything struct {
	Kinds  []Overview
	Queues []Queue
}

// Overview returns the amounts of all kinds of work.
func (i *Inspector) Overview(ctx context.Context) (Everything, error) {
	var all Everything
	err := i.view(ctx, func(run sqldb.Runner) error {
		now, err := i.now(ctx, run)
		if err != nil {
			return err
		}
		all, err = i.overview(ctx, run, now)
		return err
	})
	if err != nil {
		return all, fmt.Errorf("count work: %w", err)
	}
	executing, more, err := i.CountInstances(ctx, Instances{Statuses: []fsm.Status{fsm.Running}})
	if err != nil {
		return all, fmt.Errorf("count work: %w", err)
	}
	if more {
		executing = Cap + 1
	}
	all.Kinds[0].Running, all.Kinds[0].Statuses[string(fsm.Running)] = executing, executing
	return all, nil
}

func (i *Inspector) overview(ctx context.Context, run sqldb.Runner, now time.Time) (all Everything, err error) {
	instances, hooks, tasks := Overview{Kind: store.InstanceKind}, Overview{Kind: store.HookKind}, Overview{Kind: store.TaskKind}
	alarms, actors, schedules := Overview{Kind: store.AlarmKind}, Overview{Kind: store.ActorKind}, Overview{Kind: store.ScheduleKind}
	places, queues := map[string]int{}, map[string]*Queue{}
	stmts := []sqldb.Stmt{i.rt.Store.CountPlaces(Cap+1, func(place string, n int) { places[place] = n })}
	for _, count := range []func() ([]sqldb.Stmt, error){
		func() ([]sqldb.Stmt, error) { return i.countInstances(ctx, run, &instances, queues, now) },
		func() ([]sqldb.Stmt, error) { return i.countHooks(ctx, run, &hooks, now) },
		func() ([]sqldb.Stmt, error) { return i.countTasks(ctx, run, &tasks, now) },
		func() ([]sqldb.Stmt, error) { return i.countAlarms(&alarms, now), nil },
	} {
		more, err := count()
		if err != nil {
			return all, err
		}
		stmts = append(stmts, more...)
	}
	if err := run.Run(ctx, stmts...); err != nil {
		return all, err
	}
	instances.Waiting = atMost(places["instances.waiting"] + places["instances.joining"] + places["instances.queued"] + places["instances.unrouted"] + places["instances.paused"])
	instances.Failed = places["instances.failed"]
	instances.Statuses = map[string]int{
		string(fsm.Ready): instances.Due, string(fsm.Scheduled): instances.Scheduled,
		string(fsm.Waiting):  atMost(places["instances.waiting"] + places["instances.joining"] + places["instances.queued"]),
		string(fsm.NoWorker): places["instances.unrouted"], string(fsm.Failed): instances.Failed,
	}
	hooks.claimed(places)
	tasks.claimed(places)
	alarms.claimed(places)
	actors.Total, actors.Failed = places["actors.total"], places["actors.failed"]
	actors.Statuses = map[string]int{"error": actors.Failed}
	schedules.Total, schedules.Statuses = places["schedules.total"], map[string]int{}
	all.Kinds = []Overview{instances, hooks, tasks, alarms, actors, schedules}
	for _, name := range slices.Sorted(maps.Keys(queues)) {
		all.Queues = append(all.Queues, *queues[name])
	}
	return all, nil
}

// claimed sets the numbers of a kind that is claimed row by row.
func (o *Overview) claimed(places map[string]int) {
	o.Running, o.Failed = places[o.Kind+".running"], places[o.Kind+".failed"]
	o.Statuses = map[string]int{store.StatusReady: o.Due, store.StatusScheduled: o.Scheduled, store.StatusRunning: o.Running, store.StatusFailed: o.Failed}
}

// atMost limits a sum to Cap+1, which means more than Cap.
func atMost(n int) int { return min(n, Cap+1) }

// spans returns the due times of due work and of later work.
func spans(now time.Time) (due, later store.Span) {
	return store.Span{After: time.Unix(0, 0).UTC(), Until: now}, store.Span{After: now, Until: endOfTime}
}

// addDue and addLater add the numbers that a statement has counted.
func (o *Overview) addDue(n int, first *time.Time) {
	o.Due = atMost(o.Due + n)
	if first != nil && (o.OldestDue.IsZero() || first.Before(o.OldestDue)) {
		o.OldestDue = first.UTC()
	}
}

func (o *Overview) addLater(n int, _ *time.Time) { o.Scheduled = atMost(o.Scheduled + n) }

func (i *Inspector) countInstances(ctx context.Context, run sqldb.Runner, o *Overview, queues map[string]*Queue, now time.Time) (stmts []sqldb.Stmt, err error) {
	due, later := spans(now)
	groups, err := i.readyGroups(ctx, run)
	for _, g := range groups {
		name := store.QueueOf(g.Queue)
		if queues[name] == nil {
			queues[name] = &Queue{Name: name}
		}
		q := queues[name]
		count := i.rt.Store.CountDueInstances(g, due, Cap+1, func(n int, first *time.Time) {
			o.addDue(n, first)
			q.Due = atMost(q.Due + n)
			if first != nil && (q.OldestDue.IsZero() || first.Before(q.OldestDue)) {
				q.OldestDue = first.UTC()
			}
		})
		stmts = append(stmts, count, i.rt.Store.CountDueInstances(g, later, Cap+1, o.addLater))
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

func (i *Inspector) countAlarms(o *Overview, now time.Time) []sqldb.Stmt {
	due, later := spans(now)
	return []sqldb.Stmt{i.rt.Store.CountDueAlarms(due, Cap+1, o.addDue), i.rt.Store.CountDueAlarms(later, Cap+1, o.addLater)}
}
