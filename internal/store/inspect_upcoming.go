package store

import (
	"time"

	"github.com/perdure/perdure/internal/sqldb"
)

// Span is the time after one moment up to another.
type Span struct{ After, Until time.Time }

// Upcoming is something that will be due.
type Upcoming struct {
	At       time.Time
	ID, Name string
	Why      string
	Kind     string
	// Timer says that it is a delay of an actor.
	Timer bool
}

// upcoming returns a statement that reads what will be due, of one kind.
func (s *Store) upcoming(name, kind string, found func(Upcoming), args ...any) sqldb.Stmt {
	return read(s.stmt(name, args...), func(u Upcoming) {
		u.Kind = kind
		u.At, u.Timer = u.At.UTC(), u.Why == "delay"
		found(u)
	}, func(u *Upcoming) []any { return []any{&u.At, &u.ID, &u.Name, &u.Why} })
}

// The kinds of durable work, as the resources of the API are called.
const (
	InstanceKind = "instances"
	ScheduleKind = "schedules"
	HookKind     = "hooks"
	TaskKind     = "tasks"
	AlarmKind    = "alarms"
	ActorKind    = "actors"
)

// UpcomingInstances returns the statements that read which instances will be woken
// by time: those of the groups, and those that wait until a time at most.
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

// UpcomingSchedules returns the statement that reads which schedules will fire.
func (s *Store) UpcomingSchedules(in Span, limit int, found func(Upcoming)) sqldb.Stmt {
	return s.upcoming("UpcomingSchedules", ScheduleKind, found, in.After, in.Until, limit)
}

// UpcomingAlarms returns the statement that reads which alarms will fire, the delays
// of actors included.
func (s *Store) UpcomingAlarms(in Span, limit int, found func(Upcoming)) sqldb.Stmt {
	return s.upcoming("UpcomingAlarms", AlarmKind, found, in.After, in.Until, limit, in.After, in.Until, limit, limit)
}

// HookGroup is a hook and an urgency: pending hooks of one group are in the order of
// their due times.
type HookGroup struct {
	Namespace, Name string
	Suspect         bool
	Priority        int
}

// lane returns the lane of the group, which is empty if the group has no hook: before
// all others.
func (g HookGroup) lane() string {
	if g.Namespace == "" {
		return ""
	}
	return HookLane(g.Namespace, g.Name)
}

// NextHookGroup returns the statement that finds the group of pending hooks after
// one, if there is any.
func (s *Store) NextHookGroup(after HookGroup, found func(HookGroup)) sqldb.Stmt {
	return threeColumns(s.stmt("UpcomingHookGroup", after.lane(), after.Suspect, after.Priority), func(lane string, suspect bool, priority int) {
		_, namespace, name := ParseLane(lane)
		found(HookGroup{Namespace: namespace, Name: name, Suspect: suspect, Priority: priority})
	})
}

// UpcomingHooks returns the statement that reads which hooks of a group will be due.
func (s *Store) UpcomingHooks(g HookGroup, in Span, limit int, found func(Upcoming)) sqldb.Stmt {
	return s.upcoming("UpcomingHooks", HookKind, found, g.lane(), g.Suspect, g.Priority, in.After, in.Until, limit)
}

// NextTaskGroup returns the statement that finds the type of pending tasks after
// one, if there is any.
func (s *Store) NextTaskGroup(after string, found func(string)) sqldb.Stmt {
	return oneColumn(s.stmt("UpcomingTaskGroup", after), found)
}

// UpcomingTasks returns the statement that reads which tasks of a type will be due.
func (s *Store) UpcomingTasks(taskType string, in Span, limit int, found func(Upcoming)) sqldb.Stmt {
	return s.upcoming("UpcomingTasks", TaskKind, found, taskType, in.After, in.Until, limit)
}

// count returns a statement that counts what is due in a span; found gets the
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

// CountPlaces returns the statement that counts, up to limit, what is in each place
// where work can be.
func (s *Store) CountPlaces(limit int, found func(place string, n int)) sqldb.Stmt {
	return twoColumns(s.stmt("CountPlaces", limit), found)
}
