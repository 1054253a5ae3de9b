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

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/hook"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/task"
)

// walkFor returns the walk that visits all rows of some statuses and the fewest others.
// waiting is true if it visits the waiting rows, by due time.
func walkFor(statuses []perdure.Status) (walk string, waiting bool) {
	switch {
	case len(statuses) == 0:
		return store.Everywhere, false
	case only(statuses, perdure.Status.Waits):
		return "", true
	case only(statuses, func(s perdure.Status) bool { return s == perdure.StatusFailed || s == perdure.StatusQuarantined }):
		return store.Died, false
	case only(statuses, func(s perdure.Status) bool { return s == perdure.StatusRunning }):
		return store.Running, false
	}
	return store.Everywhere, false
}

// only reports whether all statuses meet a condition.
func only(statuses []perdure.Status, met func(perdure.Status) bool) bool {
	return !slices.ContainsFunc(statuses, func(s perdure.Status) bool { return !met(s) })
}

// asked reports whether a status is requested.
func asked(statuses []perdure.Status, status string) bool {
	return len(statuses) == 0 || slices.Contains(statuses, perdure.Status(status))
}

// waitingSpan returns the due times that a walk over waiting rows of some statuses visits
// after a position.
func waitingSpan(statuses []perdure.Status, at position, now time.Time) store.Span {
	span := store.Span{After: at.from(), Until: endOfTime}
	if at.isZero() && only(statuses, func(s perdure.Status) bool { return s == perdure.StatusScheduled }) {
		span.After = now
	}
	if only(statuses, func(s perdure.Status) bool { return s == perdure.StatusReady }) {
		span.Until = now
	}
	return span
}

// before is later than every stored time.
var before = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// Hooks returns the ids of a page of hooks, newest first, and the cursor of the next page.
// If only waiting hooks are requested, the page is ordered by due time.
func (i *Inspector) Hooks(ctx context.Context, f hook.Filter, cursor string, limit int) ([]string, string, error) {
	at, err := decodePosition(cursor)
	if err != nil {
		return nil, "", err
	}
	walk, waiting := walkFor(f.Statuses)
	ids, next, err := i.page(ctx, at, limit, func(ctx context.Context, at position, size int) (found []candidate, err error) {
		if waiting {
			return i.waitingHooks(ctx, f, at, size)
		}
		from := store.HookPlace{At: at.Due, Item: cmp.Or(at.ID, oldest)}
		if at.isZero() {
			from.At = before
		}
		err = i.view(ctx, func(run sqldb.Runner) error {
			now, err := i.now(ctx, run)
			if err != nil {
				return err
			}
			return run.Run(ctx, i.rt.Store.HooksIn(walk, from, size, func(p store.HookPlace) { found = append(found, hookCandidate(f, p, now)) }))
		})
		return found, err
	})
	if err != nil {
		return nil, "", fmt.Errorf("list hooks: %w", err)
	}
	return ids, next, nil
}

func hookCandidate(f hook.Filter, p store.HookPlace, now time.Time) candidate {
	ok := (f.Namespace == "" || f.Namespace == p.Namespace) && (f.Name == "" || f.Name == p.Name) &&
		asked(f.Statuses, store.Refine(p.Status, p.Attempts, p.Due, now))
	return candidate{id: p.ID, at: position{ID: p.Item, Due: p.At}, matches: ok}
}

func (i *Inspector) waitingHooks(ctx context.Context, f hook.Filter, at position, size int) (found []candidate, err error) {
	var span store.Span
	err = i.view(ctx, func(run sqldb.Runner) error {
		now, err := i.now(ctx, run)
		if err != nil {
			return err
		}
		groups, err := i.hookGroups(ctx, run)
		if err != nil {
			return err
		}
		span = waitingSpan(f.Statuses, at, now)
		var stmts []sqldb.Stmt
		for _, g := range groups {
			if (f.Namespace == "" || f.Namespace == g.Namespace) && (f.Name == "" || f.Name == g.Name) {
				stmts = append(stmts, i.rt.Store.WaitingHooks(g, store.HookPlace{At: span.After, Item: cmp.Or(at.ID, oldest)}, size, func(p store.HookPlace) {
					found = append(found, hookCandidate(f, p, now))
				}))
			}
		}
		return run.Run(ctx, stmts...)
	})
	return inOrder(found, span.Until, size), err
}

// from returns the due time after which a walk continues.
func (p position) from() time.Time {
	if p.Due.IsZero() {
		return time.Unix(0, 0).UTC()
	}
	return p.Due
}

// inOrder returns the first candidates by their positions, up to a due time.
func inOrder(found []candidate, until time.Time, size int) []candidate {
	found = slices.DeleteFunc(found, func(c candidate) bool { return c.at.Due.After(until) })
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

// Tasks returns the ids of a page of tasks, like Hooks.
func (i *Inspector) Tasks(ctx context.Context, f task.Filter, cursor string, limit int) ([]string, string, error) {
	var at position
	if err := decode(cursor, &at); err != nil {
		return nil, "", err
	}
	walk, waiting := walkFor(f.Statuses)
	ids, next, err := i.page(ctx, at, limit, func(ctx context.Context, at position, size int) (found []candidate, err error) {
		if waiting {
			return i.waitingTasks(ctx, f, at, size)
		}
		from := at.Seq
		if at.isZero() {
			from = math.MaxInt64
		}
		err = i.view(ctx, func(run sqldb.Runner) error {
			now, err := i.now(ctx, run)
			if err != nil {
				return err
			}
			return run.Run(ctx, i.rt.Store.TasksIn(walk, from, size, func(p store.TaskPlace) {
				c := taskCandidate(f, p, now)
				c.at.Due = time.Time{} // the walk is by number
				found = append(found, c)
			}))
		})
		return found, err
	})
	if err != nil {
		return nil, "", fmt.Errorf("list tasks: %w", err)
	}
	return ids, next, nil
}

// TaskErrors returns the last errors of tasks, by the ids of the tasks that have one.
func (i *Inspector) TaskErrors(ctx context.Context, ids []string) (map[string]string, error) {
	last := map[string]string{}
	err := i.read(ctx, i.rt.Store.LastTaskErrors(ids, func(id, message string) { last[id] = message }))
	if err != nil {
		return nil, fmt.Errorf("read errors of tasks: %w", err)
	}
	return last, nil
}

func taskCandidate(f task.Filter, p store.TaskPlace, now time.Time) candidate {
	ok := (f.Type == "" || f.Type == p.Type) && asked(f.Statuses, store.Refine(p.Status, p.Attempts, p.At, now))
	return candidate{id: strconv.FormatInt(p.ID, 10), at: position{Seq: p.ID, Due: p.At}, matches: ok}
}

func (i *Inspector) waitingTasks(ctx context.Context, f task.Filter, at position, size int) (found []candidate, err error) {
	var span store.Span
	err = i.view(ctx, func(run sqldb.Runner) error {
		now, err := i.now(ctx, run)
		if err != nil {
			return err
		}
		types, err := i.taskGroups(ctx, run)
		if err != nil {
			return err
		}
		span = waitingSpan(f.Statuses, at, now)
		var stmts []sqldb.Stmt
		for _, t := range types {
			if f.Type == "" || f.Type == t {
				stmts = append(stmts, i.rt.Store.WaitingTasks(t, store.TaskPlace{At: span.After, ID: at.Seq}, size, func(p store.TaskPlace) {
					found = append(found, taskCandidate(f, p, now))
				}))
			}
		}
		return run.Run(ctx, stmts...)
	})
	return inOrder(found, span.Until, size), err
}
