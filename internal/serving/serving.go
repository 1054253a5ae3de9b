// Package serving finds due work that no live process serves.
//
// A process serves work if it has sent a heartbeat recently, does not drain, and reports
// that it claims work of that queue and name. A process without a server sends no
// heartbeats and is known only by its claims. So work is also served if some work of its
// queue and name is claimed now.
package serving

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
)

const (
	// Lost is the time after which a process without a heartbeat is not live.
	Lost = 30 * time.Second
	// Grace is the time for which work may be due before it is reported.
	Grace = time.Minute
	// Cap is the number of work items up to which each finding is counted.
	Cap = 1000
)

// Unserved is work that no live process serves.
type Unserved struct {
	// Kind is the kind of work, as named in package store.
	Kind string
	store.Waiting
	// Schedule is the schedule that starts instances of the definition, if the definition is
	// not served.
	Schedule string
}

// Live reports whether a process is live by its last heartbeat.
func Live(n store.Node, now time.Time) bool { return now.Sub(n.Seen) <= Lost }

// search is one run of Find.
type search struct {
	st    *store.Store
	run   sqldb.Runner
	now   time.Time
	takes []store.NodeQueue // of live processes
	found []Unserved
}

// Find returns the work that no live process serves: instances, hooks, tasks, alarms and
// timers of actors that have been due for longer than Grace. It also returns instances with
// status no_worker, and schedules whose definition is not served.
func Find(ctx context.Context, rt *host.Runtime) ([]Unserved, error) {
	if !rt.Store.Watches() {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, rt.Timeout)
	defer cancel()
	tx, err := rt.DB.Begin(ctx, sqldb.Read)
	if err != nil {
		return nil, fmt.Errorf("find unserved work: %w", err)
	}
	defer tx.Rollback()
	s := &search{st: rt.Store, run: tx}
	err = tx.Run(ctx, rt.Store.ReadTime(rt.Now(), func(t time.Time) { s.now = t }), rt.Store.Nodes(rt.Now(), s.node))
	for _, look := range []func(context.Context) error{s.instances, s.unrouted, s.hooks, s.tasks, s.alarms, s.schedules} {
		if err == nil {
			err = look(ctx)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("find unserved work: %w", err)
	}
	return s.found, nil
}

// node records the queues of a process, if it is live.
func (s *search) node(n store.Node, now time.Time) {
	if n.Draining || !Live(n, now) {
		return
	}
	for _, q := range n.Running {
		if !q.Idle {
			s.takes = append(s.takes, q)
		}
	}
}

// taken reports whether a live process claims work of a queue with a name. An empty name
// matches any.
func (s *search) taken(kind, queue, name string) bool {
	return slices.ContainsFunc(s.takes, func(q store.NodeQueue) bool {
		return q.Kind == kind && q.Queue == queue && (name == "" || q.Serves == nil || slices.Contains(q.Serves, name))
	})
}

// add records work that no live process claims, unless some of it is claimed.
func (s *search) add(ctx context.Context, kind string, w store.Waiting) error {
	claimed := false
	if stmt, ok := s.st.Claimed(kind, w, s.now, &claimed); ok {
		if err := s.run.Run(ctx, stmt); err != nil {
			return err
		}
	}
	if !claimed {
		s.found = append(s.found, Unserved{Kind: kind, Waiting: w})
	}
	return nil
}

// overdue returns the span of due times that are reported.
func (s *search) overdue() store.Span {
	return store.Span{After: time.Unix(0, 0).UTC(), Until: s.now.Add(-Grace)}
}

// more returns a function that adds counted work to w.
func more(w *store.Waiting) func(n int, first *time.Time) {
	return func(n int, first *time.Time) {
		w.Count = min(w.Count+n, Cap+1)
		if first != nil && (w.Oldest.IsZero() || first.Before(w.Oldest)) {
			w.Oldest = first.UTC()
		}
	}
}

// addAll adds the work that is due.
func (s *search) addAll(ctx context.Context, kind string, all []*store.Waiting) error {
	for _, w := range all {
		if w.Count == 0 {
			continue
		}
		if err := s.add(ctx, kind, *w); err != nil {
			return err
		}
	}
	return nil
}

// last returns the last of the groups if it has the queue and name, or a new group. Groups
// arrive in order, and groups of several priorities are merged.
func last(all *[]*store.Waiting, queue, name string) *store.Waiting {
	if n := len(*all); n > 0 && (*all)[n-1].Queue == queue && (*all)[n-1].Name == name {
		return (*all)[n-1]
	}
	w := &store.Waiting{Queue: queue, Name: name}
	*all = append(*all, w)
	return w
}

func (s *search) instances(ctx context.Context) error {
	groups, err := sqldb.Walk(ctx, s.run, store.ReadyGroup{Priority: -100}, s.st.NextReadyGroup)
	if err != nil {
		return err
	}
	var all []*store.Waiting
	for _, g := range groups {
		queue := store.QueueOf(g.Queue) // its lanes follow it
		if s.taken("instance", queue, "") {
			continue
		}
		w := last(&all, queue, "")
		if err := s.run.Run(ctx, s.st.CountDueInstances(g, s.overdue(), Cap+1, more(w))); err != nil {
			return err
		}
	}
	return s.addAll(ctx, store.InstanceKind, all)
}

// unrouted finds instances with status no_worker. A process that knows their definition
// claims them, so as long as there are any, no process serves them.
func (s *search) unrouted(ctx context.Context) error {
	return s.run.Run(ctx, s.st.UnroutedInstances(Cap+1, func(w store.Waiting) {
		s.found = append(s.found, Unserved{Kind: store.InstanceKind, Waiting: w})
	}))
}

func (s *search) hooks(ctx context.Context) error {
	groups, err := sqldb.Walk(ctx, s.run, store.HookGroup{Priority: -100}, s.st.NextHookGroup)
	if err != nil {
		return err
	}
	var all []*store.Waiting
	for _, g := range groups {
		if s.taken("hook", g.Namespace, g.Name) || s.taken("actor", g.Namespace, g.Name) { // effects of actors
			continue
		}
		w := last(&all, g.Namespace, g.Name)
		if err := s.run.Run(ctx, s.st.CountDueHooks(g, s.overdue(), Cap+1, more(w))); err != nil {
			return err
		}
	}
	return s.addAll(ctx, store.HookKind, all)
}

func (s *search) tasks(ctx context.Context) error {
	types, err := sqldb.Walk(ctx, s.run, "", s.st.NextTaskGroup)
	if err != nil {
		return err
	}
	var all []*store.Waiting
	for _, t := range types {
		if s.taken("task", "tasks", t) {
			continue
		}
		w := last(&all, "", t)
		if err := s.run.Run(ctx, s.st.CountDueTasks(t, s.overdue(), Cap+1, more(w))); err != nil {
			return err
		}
	}
	return s.addAll(ctx, store.TaskKind, all)
}

func (s *search) alarms(ctx context.Context) error {
	var alarms, delays []*store.Waiting
	err := s.run.Run(ctx, s.st.DueAlarms(s.overdue().Until, Cap+1, func(w store.Waiting, delay bool) {
		switch {
		case delay && !s.taken("actor", "delays", w.Name):
			delays = append(delays, &w)
		case !delay && !s.taken("alarm", "", w.Name):
			alarms = append(alarms, &w)
		}
	}))
	if err == nil {
		err = s.addAll(ctx, store.AlarmKind, alarms)
	}
	if err == nil {
		err = s.addAll(ctx, store.ActorKind, delays)
	}
	return err
}

// schedules finds schedules whose definition no live process knows. If no live process
// reports that it claims instances, the processes that do send no heartbeats. In that case
// a definition that was ever recorded counts as served.
func (s *search) schedules(ctx context.Context) error {
	known := slices.ContainsFunc(s.takes, func(q store.NodeQueue) bool { return q.Kind == "instance" })
	return s.run.Run(ctx, s.st.StartingSchedules(Cap+1, func(v store.StartingSchedule) {
		if v.Recorded && (!known || s.knows(v.FSM, v.Version)) {
			return
		}
		s.found = append(s.found, Unserved{
			Kind: store.ScheduleKind, Schedule: v.Name, Waiting: store.Waiting{Name: v.FSM, Version: v.Version, Count: 1, Oldest: v.Next},
		})
	}))
}

// knows reports whether a live process has a definition, in any queue.
func (s *search) knows(fsm string, version int) bool {
	return slices.ContainsFunc(s.takes, func(q store.NodeQueue) bool {
		return q.Kind == "instance" && (q.Serves == nil || slices.Contains(q.Serves, store.Definition{FSM: fsm, Version: version}.String()))
	})
}
