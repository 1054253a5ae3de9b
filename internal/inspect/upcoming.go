package inspect

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/perdure/perdure/internal/edge"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
)

// UpcomingKinds are the kinds of work with a due time.
var UpcomingKinds = []string{store.InstanceKind, store.ScheduleKind, store.HookKind, store.TaskKind, store.AlarmKind}

// Upcoming returns work that becomes due until a time (the zero time: no limit), of one
// kind or of all, by due time. It does not return work that is already due. more is true if
// limit cut the result short.
func (i *Inspector) Upcoming(ctx context.Context, kind string, until time.Time, limit int) (found []store.Upcoming, more bool, err error) {
	if kind != "" {
		if err := edge.OneOf("kind", kind, UpcomingKinds); err != nil {
			return nil, false, err
		}
	}
	if until.IsZero() {
		until = endOfTime
	}
	err = i.view(ctx, func(run sqldb.Runner) error {
		now, err := i.now(ctx, run)
		if err != nil {
			return err
		}
		stmts, err := i.upcoming(ctx, run, kind, store.Span{After: now, Until: until}, limit+1, func(u store.Upcoming) { found = append(found, u) })
		if err != nil {
			return err
		}
		return run.Run(ctx, stmts...)
	})
	if err != nil {
		return nil, false, fmt.Errorf("list upcoming work: %w", err)
	}
	slices.SortStableFunc(found, func(a, b store.Upcoming) int { return a.At.Compare(b.At) })
	return found[:min(limit, len(found))], len(found) > limit, nil
}

func (i *Inspector) upcoming(ctx context.Context, run sqldb.Runner, kind string, in store.Span, limit int, found func(store.Upcoming)) ([]sqldb.Stmt, error) {
	st := i.rt.Store
	var stmts []sqldb.Stmt
	all := kind == ""
	if all || kind == store.InstanceKind {
		groups, err := i.readyGroups(ctx, run)
		if err != nil {
			return nil, err
		}
		stmts = append(stmts, st.UpcomingInstances(groups, in, limit, found)...)
	}
	if all || kind == store.HookKind {
		groups, err := i.hookGroups(ctx, run)
		if err != nil {
			return nil, err
		}
		for _, g := range groups {
			stmts = append(stmts, st.UpcomingHooks(g, in, limit, found))
		}
	}
	if all || kind == store.TaskKind {
		types, err := i.taskGroups(ctx, run)
		if err != nil {
			return nil, err
		}
		for _, t := range types {
			stmts = append(stmts, st.UpcomingTasks(t, in, limit, found))
		}
	}
	if all || kind == store.AlarmKind {
		stmts = append(stmts, st.UpcomingAlarms(in, limit, found))
	}
	if all || kind == store.ScheduleKind {
		stmts = append(stmts, st.UpcomingSchedules(in, limit, found))
	}
	return stmts, nil
}

func (i *Inspector) readyGroups(ctx context.Context, run sqldb.Runner) ([]store.ReadyGroup, error) {
	return sqldb.Walk(ctx, run, store.ReadyGroup{Priority: -100}, i.rt.Store.NextReadyGroup)
}

func (i *Inspector) hookGroups(ctx context.Context, run sqldb.Runner) ([]store.HookGroup, error) {
	return sqldb.Walk(ctx, run, store.HookGroup{Priority: -100}, i.rt.Store.NextHookGroup)
}

func (i *Inspector) taskGroups(ctx context.Context, run sqldb.Runner) ([]string, error) {
	return sqldb.Walk(ctx, run, "", i.rt.Store.NextTaskGroup)
}
