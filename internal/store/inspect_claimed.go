package store

import (
	"time"

	"github.com/perdure/perdure/internal/sqldb"
)

// HookPlace holds the fields by which a list of hooks is filtered, and the position of a hook
// in the list.
type HookPlace struct {
	// At is the time of creation or, in a scan of waiting hooks, the due time. Hooks with the
	// same time are ordered by Item, the id of the row.
	At   time.Time
	Item string
	// ID is the public id.
	ID, Namespace, Name string
	// Status is the place of the hook; see Refine.
	Status   string
	Attempts int
	Due      time.Time
}

// TaskPlace holds the fields by which a list of tasks is filtered, and the position of a task
// in the list.
type TaskPlace struct {
	At           time.Time // the due time
	ID           int64
	Type, Status string // Status is the place of the task; see Refine
	Attempts     int
}

// The scans of hooks and tasks: all, dead letters, and running. Waiting work is found by the
// names that a process can run.
const (
	Everywhere = ""
	Died       = "Dead"
	Running    = "Running"
)

// Inspects reports whether the database has the statements that find work by any filter within
// a bounded time. MySQL has none yet. On MySQL, work is listed by the package of its kind.
func (s *Store) Inspects() bool { return s.text("InspectHooks") != "" }

// HooksIn returns the statement that scans hooks, starting with the newest hook that is older
// than before.
func (s *Store) HooksIn(walk string, before HookPlace, limit int, found func(HookPlace)) sqldb.Stmt {
	return withRow(s.stmt(map[string]string{Everywhere: "InspectHooks", Died: "InspectDeadHooks", Running: "InspectRunningHooks"}[walk], before.At, before.Item, limit), hookPlaceRow(found))
}

// WaitingHooks returns the statement that scans the waiting hooks of a group, ordered by due
// time.
func (s *Store) WaitingHooks(g HookGroup, after HookPlace, limit int, found func(HookPlace)) sqldb.Stmt {
	return withRow(s.stmt("InspectWaitingHooks", g.lane(), g.Suspect, g.Priority, after.At, after.Item, limit), hookPlaceRow(found))
}

func hookPlaceRow(found func(HookPlace)) func(sqldb.Scan) error {
	return readRow(func(p HookPlace) {
		p.At, p.Due = p.At.UTC(), p.Due.UTC()
		found(p)
	}, func(p *HookPlace) []any {
		return []any{&p.At, &p.Item, &p.ID, &p.Namespace, &p.Name, &p.Status, &p.Attempts, &p.Due}
	})
}

// TasksIn returns the statement that scans tasks, starting with the newest task that is older
// than before.
func (s *Store) TasksIn(walk string, before int64, limit int, found func(TaskPlace)) sqldb.Stmt {
	return withRow(s.stmt(map[string]string{Everywhere: "InspectTasks", Died: "InspectDeadTasks", Running: "InspectRunningTasks"}[walk], before, limit), taskPlaceRow(found))
}

// WaitingTasks returns the statement that scans the waiting tasks of a type, ordered by due
// time.
func (s *Store) WaitingTasks(taskType string, after TaskPlace, limit int, found func(TaskPlace)) sqldb.Stmt {
	return withRow(s.stmt("InspectWaitingTasks", taskType, after.At, after.ID, limit), taskPlaceRow(found))
}

func taskPlaceRow(found func(TaskPlace)) func(sqldb.Scan) error {
	return readRow(func(p TaskPlace) {
		p.At, p.Status = p.At.UTC(), taskWords.status(p.Status)
		found(p)
	}, func(p *TaskPlace) []any { return []any{&p.At, &p.ID, &p.Type, &p.Status, &p.Attempts} })
}
