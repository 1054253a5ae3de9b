package store

import (
	"time"

	"github.com/perdure/perdure/internal/sqldb"
)

// Waiting is due work of one kind that the same process could run: the number of items, and the
// due time of the oldest.
type Waiting struct {
	// Queue is the queue of instances or the namespace of hooks.
	Queue string
	// Name is the definition, the hook, the type or the schedule.
	Name    string
	Version int
	Step    string
	Count   int
	Oldest  time.Time
}

// UnroutedInstances returns the statement that groups the instances that were parked by a
// process that does not know them.
func (s *Store) UnroutedInstances(limit int, found func(Waiting)) sqldb.Stmt {
	return read(s.stmt("UnservedUnrouted", limit), func(w Waiting) {
		w.Oldest = w.Oldest.UTC()
		found(w)
	}, func(w *Waiting) []any { return []any{&w.Queue, &w.Name, &w.Version, &w.Step, &w.Count, &w.Oldest} })
}

// DueAlarms returns the statement that groups the alarms and timers that have been due since a
// time.
func (s *Store) DueAlarms(until time.Time, limit int, found func(w Waiting, delay bool)) sqldb.Stmt {
	stmt := s.stmt("UnservedAlarms", moment(until), limit, moment(until), limit)
	stmt.Row = func(scan sqldb.Scan) error {
		var w Waiting
		var kind string
		err := scan(&kind, &w.Name, &w.Count, &w.Oldest)
		if err == nil {
			w.Oldest = w.Oldest.UTC()
			found(w, kind == "timer")
		}
		return err
	}
	return stmt
}

// StartingSchedule is a schedule that is not paused.
type StartingSchedule struct {
	Name, FSM string
	Version   int
	Next      time.Time
	// Recorded is true if a process has served the definition at some time.
	Recorded bool
}

// StartingSchedules returns the statement that reads the definitions that schedules start.
func (s *Store) StartingSchedules(limit int, found func(StartingSchedule)) sqldb.Stmt {
	return read(s.stmt("UnservedSchedules", limit), func(v StartingSchedule) {
		v.Next = v.Next.UTC()
		found(v)
	}, func(v *StartingSchedule) []any { return []any{&v.Name, &v.FSM, &v.Version, &v.Next, &v.Recorded} })
}

// claims are the statements that find unexpired claims.
var claims = map[string]string{InstanceKind: "ClaimedInstances", HookKind: "ClaimedHooks", TaskKind: "TaskClaimed", AlarmKind: "ClaimedAlarms"}

// Claimed returns the statement that reports whether some of the work is claimed at a time. It
// returns false for a kind without claims.
func (s *Store) Claimed(kind string, w Waiting, now time.Time, claimed *bool) (sqldb.Stmt, bool) {
	name, ok := claims[kind]
	if !ok {
		return sqldb.Stmt{}, false
	}
	args := []any{w.Name, moment(now)}
	switch kind {
	case InstanceKind:
		args[0] = w.Queue
	case HookKind:
		args = []any{HookQueue(w.Queue), w.Name, moment(now)}
	case AlarmKind:
		args = []any{AlarmQueue, w.Name, moment(now)}
	}
	stmt := oneColumn(s.stmt(name, args...), func(n int) {
		*claimed = n > 0
	})
	return stmt, true
}

// moment returns a time in the precision of the database.
func moment(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

// Watches reports whether the database records running processes.
func (s *Store) Watches() bool { return s.text("NodeList") != "" }
