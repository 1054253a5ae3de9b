package inspect

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
)

// Failing is a group of unfinished work items of one kind and name whose last attempts failed
// with errors that differ only in numbers and quoted text.
type Failing struct {
	Kind, Name, Fingerprint string
	// Namespace is set for hooks, Queue for instances.
	Namespace, Queue string
	// Example is the newest error.
	Example string
	// Count is the number of items. Capped is true if there may be more.
	Count  int
	Capped bool
	// IDs are some of the items, Workers the processes of the newest attempts.
	IDs, Workers []string
	// Since is the time of the first failure that is known, Latest that of the last.
	Since, Latest time.Time
}

const (
	// failingFor is the age at which a failure is not read. It exceeds the delays of usual retry
	// policies.
	failingFor = 6 * time.Hour
	// maxFailures is the number of failures that are read.
	maxFailures = 2000
)

// failure is the newest failure of an item.
type failure struct {
	store.FailedAttempt
	first time.Time
}

// Failing returns the work that fails now and is tried again, grouped by error, the largest group
// first. It reads the newest failures, so its cost does not depend on the number of rows.
func (i *Inspector) Failing(ctx context.Context) ([]Failing, error) {
	var groups failingGroups
	err := i.view(ctx, func(run sqldb.Runner) error {
		now, err := i.now(ctx, run)
		if err != nil {
			return err
		}
		read, newest := 0, map[store.Tried]failure{}
		attempts := i.rt.Store.FailedAttempts(now.Add(-failingFor), maxFailures, func(a store.FailedAttempt) {
			read++
			f, known := newest[a.Tried]
			if !known {
				f.FailedAttempt = a
			}
			f.first = a.Ended
			newest[a.Tried] = f
		})
		errs := 0
		tasks := i.rt.Store.FailingTasks(now.Add(-failingFor), maxFailures, func(t store.FailingTask) {
			errs++
			groups.addTask(t)
		})
		if err := run.Run(ctx, append(tasks, attempts)...); err != nil {
			return err
		}
		groups.capped = map[string]bool{store.TaskKind: errs == maxFailures}
		for _, kind := range []string{store.InstanceKind, store.HookKind, store.AlarmKind} {
			groups.capped[kind] = read == maxFailures
		}
		return i.unfinished(ctx, run, newest, &groups)
	})
	if err != nil {
		return nil, fmt.Errorf("find failing work: %w", err)
	}
	return groups.sorted(), nil
}

// unfinished adds the items with a failure that are tried again.
func (i *Inspector) unfinished(ctx context.Context, run sqldb.Runner, newest map[store.Tried]failure, groups *failingGroups) error {
	st := i.rt.Store
	byKind := map[string][]string{}
	for tried := range newest {
		byKind[tried.Kind] = append(byKind[tried.Kind], tried.ID)
	}
	var stmts []sqldb.Stmt
	for part := range slices.Chunk(byKind["instance"], batch) {
		stmts = append(stmts, st.InstanceStatuses(part, i.rt.Now(), func(s store.InstanceStatus) {
			f := newest[store.TriedInstance(s.ID)]
			if status := fsm.Status(s.Status); f.Step == s.Step && (status == fsm.Retrying || status == fsm.Running || status == fsm.Ready) {
				groups.add(Failing{Kind: store.InstanceKind, Name: s.FSM, Queue: s.Queue}, s.ID, f)
			}
		}))
	}
	for part := range slices.Chunk(byKind["hook"], batch) {
		stmts = append(stmts, st.FailingHooks(part, func(h store.FailingItem) {
			groups.add(Failing{Kind: store.HookKind, Name: h.Name, Namespace: h.Namespace}, h.Public, newest[store.TriedHook(h.Item)])
		}))
	}
	for part := range slices.Chunk(byKind["alarm"], batch) {
		stmts = append(stmts, st.FailingAlarms(part, func(a store.FailingItem) {
			groups.add(Failing{Kind: store.AlarmKind, Name: a.Name}, a.Public, newest[store.TriedAlarm(a.Item)])
		}))
	}
	return run.Run(ctx, stmts...)
}

// failingGroups groups failures.
type failingGroups struct {
	all    []*Failing
	tasks  map[string]bool
	capped map[string]bool
}

// add counts an item with its newest failure in the group of its name and error.
func (g *failingGroups) add(of Failing, id string, f failure) {
	of.Fingerprint = Fingerprint(f.Error)
	at := slices.IndexFunc(g.all, func(o *Failing) bool {
		return o.Kind == of.Kind && o.Name == of.Name && o.Namespace == of.Namespace && o.Fingerprint == of.Fingerprint
	})
	if at < 0 {
		at = len(g.all)
		of.Since = f.first
		g.all = append(g.all, &of)
	}
	group := g.all[at]
	group.Count++
	if f.Ended.After(group.Latest) {
		group.Latest, group.Example = f.Ended, f.Error
	}
	if f.first.Before(group.Since) {
		group.Since = f.first
	}
	if len(group.IDs) < shownIDs {
		group.IDs = append(group.IDs, id)
	}
	if f.Worker != "" && len(group.Workers) < shownIDs && !slices.Contains(group.Workers, f.Worker) {
		group.Workers = append(group.Workers, f.Worker)
	}
}

// addTask counts a task with its newest error. Its older errors follow.
func (g *failingGroups) addTask(t store.FailingTask) {
	if g.tasks[t.ID] {
		return
	}
	if g.tasks == nil {
		g.tasks = map[string]bool{}
	}
	g.tasks[t.ID] = true
	g.add(Failing{Kind: store.TaskKind, Name: t.Type}, t.ID, failure{FailedAttempt: store.FailedAttempt{Error: t.Error, Ended: t.At}, first: t.At})
}

// sorted returns the groups, the largest first.
func (g *failingGroups) sorted() []Failing {
	all := make([]Failing, len(g.all))
	for n, group := range g.all {
		group.Capped = g.capped[group.Kind]
		all[n] = *group
	}
	slices.SortFunc(all, func(a, b Failing) int {
		return cmp.Or(b.Count-a.Count, strings.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name), strings.Compare(a.Fingerprint, b.Fingerprint))
	})
	return all
}
