package inspect

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/perdure/perdure/hook"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/task"
)

// walkFor returns the walk that meets all rows of some statuses and the fewest others;
// pending says that it is over pending rows, in the order of their due times.
func walkFor[S ~string](statuses []S) (walk string, pending bool) {
	only := func(allowed ...S) bool {
		return len(statuses) > 0 && !slices.ContainsFunc(statuses, func(s S) bool { return !slices.Contains(allowed, s) })
	}
	switch {
	case only("pending"):
		return "", true
	case only("failed", "quarantined"):
		return store.Died, false
	case only("processing"):
		return store.Running, false
	}
	return store.Everywhere, false
}

// before is later than every time that is stored.
var before = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// Hooks returns the ids of a page of hooks, newest first, or if only pending ones are
// asked for, the first to be due first; and the cursor of the next page.
func (i *Inspector) Hooks(ctx context.Context, f hook.Filter, cursor string, limit int) ([]string, string, error) {
	at, err := decodePosition(cursor)
	if err != nil {
		return nil, "", err
	}
	walk, pending := walkFor(f.Statuses)
	ids, next, err := i.page(ctx, at, limit, func(ctx context.Context, at position, size int) (found []candidate, err error) {
		add := func(p store.HookPlace) {
			ok := (f.Namespace == "" || f.Namespace == p.Namespace) && (f.Name == "" || f.Name == p.Name) &&
				(len(f.Statuses) == 0 || slices.Contains(f.Statuses, hook.Status(p.Status)))
			found = append(found, candidate{id: p.ID, at: position{ID: p.Item, Due: p.At}, matches: ok})
		}
		if pending {
			return i.pendingHooks(ctx, f, at, size)
		}
		from := store.HookPlace{At: at.Due, Item: cmp.Or(at.ID, oldest)}
		if at.isZero() {
			from.At = before
		}
		err = i.read(ctx, i.rt.Store.HooksIn(walk, from, size, add))
		return found, err
	})
	if err != nil {
		return nil, "", fmt.Errorf("list hooks: %w", err)
	}
	return ids, next, nil
}

func (i *Inspector) pendingHooks(ctx context.Context, f hook.Filter, at position, size int) (found []candidate, err error) {
	err = i.view(ctx, func(run sqldb.Runner) error {
		groups, err := i.hookGroups(ctx, run)
		if err != nil {
			return err
		}
		var stmts []sqldb.Stmt
		for _, g := range groups {
			if (f.Namespace == "" || f.Namespace == g.Namespace) && (f.Name == "" || f.Name == g.Name) {
				stmts = append(stmts, i.rt.Store.PendingHooks(g, store.HookPlace{At: at.from(), Item: cmp.Or(at.ID, oldest)}, size, func(p store.HookPlace) {
					found = append(found, candidate{id: p.ID, at: position{ID: p.Item, Due: p.At}, matches: true})
				}))
			}
		}
		return run.Run(ctx, stmts...)
	})
	return inOrder(found, size), err
}

// from is the due time that a walk goes on after.
func (p position) from() time.Time {
	if p.Due.IsZero() {
		return time.Unix(0, 0).UTC()
	}
	return p.Due
}

// inOrder returns the first candidates by their positions.
func inOrder(found []candidate, size int) []candidate {
	slices.SortFunc(found, func(a, b candidate) int {
		if c := a.at.Due.Compare(b.at.Due); c != 0 {
			return c
		}
		if a.at.Seq != b.at.Seq {
			return int(max(-1, min(1, a.at.Seq-b.at.Seq)))
		}
		return strings.Compare(a.at.ID, b.at.ID)
	})
	return found[:min(size, len(found))]
}

// Tasks returns the ids of a page of tasks, as Hooks does.
func (i *Inspector) Tasks(ctx context.Context, f task.Filter, cursor string, limit int) ([]int64, string, error) {
	var at position
	if err := decode(cursor, &at); err != nil {
		return nil, "", err
	}
	walk, pending := walkFor(f.Statuses)
	ids, next, err := i.page(ctx, at, limit, func(ctx context.Context, at position, size int) (found []candidate, err error) {
		if pending {
			return i.pendingTasks(ctx, f, at, size)
		}
		from := at.Seq
		if at.isZero() {
			from = math.MaxInt64
		}
		err = i.read(ctx, i.rt.Store.TasksIn(walk, from, size, func(p store.TaskPlace) {
			ok := (f.Type == "" || f.Type == p.Type) && (len(f.Statuses) == 0 || slices.Contains(f.Statuses, task.Status(p.Status)))
			found = append(found, candidate{id: strconv.FormatInt(p.ID, 10), at: position{Seq: p.ID}, matches: ok})
		}))
		return found, err
	})
	if err != nil {
		return nil, "", fmt.Errorf("list tasks: %w", err)
	}
	numbers := make([]int64, len(ids))
	for n, id := range ids {
		numbers[n], _ = strconv.ParseInt(id, 10, 64) // it is one
	}
	return numbers, next, nil
}

func (i *Inspector) pendingTasks(ctx context.Context, f task.Filter, at position, size int) (found []candidate, err error) {
	err = i.view(ctx, func(run sqldb.Runner) error {
		types, err := i.taskGroups(ctx, run)
		if err != nil {
			return err
		}
		var stmts []sqldb.Stmt
		for _, t := range types {
			if f.Type == "" || f.Type == t {
				stmts = append(stmts, i.rt.Store.PendingTasks(t, store.TaskPlace{At: at.from(), ID: at.Seq}, size, func(p store.TaskPlace) {
					found = append(found, candidate{id: strconv.FormatInt(p.ID, 10), at: position{Seq: p.ID, Due: p.At}, matches: true})
				}))
			}
		}
		return run.Run(ctx, stmts...)
	})
	return inOrder(found, size), err
}
