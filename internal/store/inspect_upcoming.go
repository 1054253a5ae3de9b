package store

import (
	"time"

	"github.com/perdure/perdure/internal/sqldb"
)

// Span is the time after After, up to and including Until.
type Span struct{ After, Until time.Time }

// Upcoming is a work item that will be due.
type Upcoming struct {
	At       time.Time
	ID, Name string
	Why      string
	Kind     string
	// Timer is true for a timer of an actor.
	Timer bool
}

// upcoming returns a statement that reads upcoming work of one kind.
func (s *Store) upcoming(name, kind string, found func(Upcoming), args ...any) sqldb.Stmt {
	return read(s.stmt(name, args...), func(u Upcoming) {
		u.Kind = kind
		u.At, u.Timer = u.At.UTC(), u.Why == "delay"
		found(u)
	}, func(u *Upcoming) []any { return []any{&u.At, &u.ID, &u.Name, &u.Why} })
}

// The kinds of durable work, named like the resources of the API.
const (
	InstanceKind = "instances"
	ScheduleKind = "schedules"
	HookKind     = "hooks"
	TaskKind     = "tasks"
	AlarmKind    = "alarms"
	ActorKind    = "actors"
	ConsumerKind = "consumers"
)

// UpcomingInstances returns the statements that read the instances that will be woken by time:
// instances of the groups, and waiting instances with a time limit.
func (s *Store) UpcomingInstances(groups []ReadyGroup, in Span, limit int, found func(Upcoming)) []sqldb.Stmt {
	var stmts []sqldb.Stmt
	for _, g := range groups {
		stmts = append(stmts, s.upcoming("UpcomingReady", InstanceKind, found, g.Queue, g.Suspect, g.Priority, in.After, in.Until, limit))
	}
	for _, name := range []string{"UpcomingSignalTimeouts", "UpcomingJoinTimeouts", "UpcomingDeadlines"} {
		stmts = append(stmts, s.upcoming(name, InstanceKind, found, in.After, in.Until, limit))
	}
	return stmts
}

// UpcomingSchedules returns the statement that reads the schedules that will fire.
func (s *Store) UpcomingSchedules(in Span, limit int, found func(Upcoming)) sqldb.Stmt {
	return s.upcoming("UpcomingSchedules", ScheduleKind, found, in.After, in.Until, limit)
}

// UpcomingAlarms returns the statement that reads the alarms and timers that will fire.
func (s *Store) UpcomingAlarms(in Span, limit int, found func(Upcoming)) sqldb.Stmt {
	return s.upcoming("UpcomingAlarms", AlarmKind, found, in.After, in.Until, limit, in.After, in.Until, limit, limit)
}

// HookGroup is a hook, a suspect flag and a priority. Waiting hooks of one group are ordered by
// due time.
type HookGroup struct {
	Namespace, Name string
	Suspect         bool
	Priority        int
}

// lane returns the lane of the group. It is empty, and sorts before all others, if the group
// has no hook name.
func (g HookGroup) lane() string {
	if g.Namespace == "" {
		return ""
	}
	return HookLane(g.Namespace, g.Name)
}

// NextHookGroup returns the statement that finds the next group of waiting hooks, if there is
// one.
func (s *Store) NextHookGroup(after HookGroup, found func(HookGroup)) sqldb.Stmt {
	return threeColumns(s.stmt("UpcomingHookGroup", after.lane(), after.Suspect, after.Priority), func(lane string, suspect bool, priority int) {
		_, namespace, name := ParseLane(lane)
		found(HookGroup{Namespace: namespace, Name: name, Suspect: suspect, Priority: priority})
	})
}

// UpcomingHooks returns the statement that reads the hooks of a group that will be due.
func (s *Store) UpcomingHooks(g HookGroup, in Span, limit int, found func(Upcoming)) sqldb.Stmt {
	return s.upcoming("UpcomingHooks", HookKind, found, g.lane(), g.Suspect, g.Priority, in.After, in.Until, limit)
}

// NextTaskGroup returns the statement that finds the next type of waiting tasks, if there is
// one.
func (s *Store) NextTaskGroup(after string, found func(string)) sqldb.Stmt {
	return oneColumn(s.stmt("UpcomingTaskGroup", after), found)
}

// UpcomingTasks returns the statement that reads the tasks of a type that will be due.
func (s *Store) UpcomingTasks(taskType string, in Span, limit int, found func(Upcoming)) sqldb.Stmt {
	return s.upcoming("UpcomingTasks", TaskKind, found, taskType, in.After, in.Until, limit)
}

// count returns a statement that counts the work that is due in a span. found receives the
// number, which is limit if there are more, and the earliest due time, if any.
func (s *Store) count(name string, found func(n int, first *time.Time), args ...any) sqldb.Stmt {
	return twoColumns(s.stmt(name, args...), found)
}

// CountDueInstances counts the instances of a group that are due in a span.
func (s *Store) CountDueInstances(g ReadyGroup, in Span, limit int, found func(int, *time.Time)) sqldb.Stmt {
	return s.count("CountDueReady", found, g.Queue, g.Suspect, g.Priority, in.After, in.Until, limit)
}

// CountDueHooks counts the hooks of a group that are due in a span.
func (s *Store) CountDueHooks(g HookGroup, in Span, limit int, found func(int, *time.Time)) sqldb.Stmt {
	return s.count("CountDueReady", found, g.lane(), g.Suspect, g.Priority, in.After, in.Until, limit)
}

// CountDueTasks counts the tasks of a type that are due in a span.
func (s *Store) CountDueTasks(taskType string, in Span, limit int, found func(int, *time.Time)) sqldb.Stmt {
	return s.count("CountDueTasks", found, taskType, in.After, in.Until, limit)
}

// CountDueAlarms counts the alarms that are due in a span.
func (s *Store) CountDueAlarms(in Span, limit int, found func(int, *time.Time)) sqldb.Stmt {
	return s.count("CountDueAlarms", found, in.After, in.Until, limit, in.After, in.Until, limit, limit)
}

// CountPlaces returns the statement that counts the rows in each place that holds work, up to
// limit.
func (s *Store) CountPlaces(limit int, found func(place string, n int)) sqldb.Stmt {
	return twoColumns(s.stmt("CountPlaces", limit), found)
}
