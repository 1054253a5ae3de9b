package store

import (
	"time"

	"github.com/perdure/perdure/internal/sqldb"
)

// Rule is something that must hold of the tables, as the name of a statement that
// returns what breaks it.
type Rule struct {
	Name string
	// Kind is the kind of work that it is about.
	Kind string
	// Timed says that the statement takes a time: what was over before it is too
	// old.
	Timed bool
}

// Rules are all of them.
var Rules = []Rule{
	{Name: "InvariantPlace", Kind: "instance"},
	{Name: "InvariantEnded", Kind: "instance"},
	{Name: "InvariantKept", Kind: "instance"},
	{Name: "InvariantReady", Kind: "instance"},
	{Name: "InvariantWake", Kind: "instance"},
	{Name: "InvariantWaiting", Kind: "instance"},
	{Name: "InvariantBarrier", Kind: "instance"},
	{Name: "InvariantUnique", Kind: "instance"},
	{Name: "InvariantPartition", Kind: "instance"},
	{Name: "InvariantDeadline", Kind: "instance"},
	{Name: "InvariantInterrupt", Kind: "instance"},
	{Name: "InvariantTree", Kind: "instance"},
	{Name: "InstanceDoctorUnrouted", Kind: "instance"},
	{Name: "InstanceDoctorUnread", Kind: "instance"},
	{Name: "HookDoctorPlace", Kind: "hook"},
	{Name: "HookDoctorReady", Kind: "hook"},
	{Name: "HookDoctorEnded", Kind: "hook"},
	{Name: "HookDoctorStuck", Kind: "hook", Timed: true},
	{Name: "HookDoctorUnhandled", Kind: "hook", Timed: true},
	{Name: "HookDoctorAttempts", Kind: "hook"},
	{Name: "HookDoctorKept", Kind: "hook"},
	{Name: "TaskDoctorEnded", Kind: "task"},
	{Name: "TaskDoctorStuck", Kind: "task", Timed: true},
	{Name: "TaskDoctorUnhandled", Kind: "task", Timed: true},
	{Name: "AlarmDoctorPlace", Kind: "alarm"},
	{Name: "AlarmDoctorReady", Kind: "alarm"},
	{Name: "AlarmDoctorStray", Kind: "alarm"},
	{Name: "AlarmDoctorEnded", Kind: "alarm"},
	{Name: "AlarmDoctorStuck", Kind: "alarm", Timed: true},
	{Name: "AlarmDoctorUnhandled", Kind: "alarm", Timed: true},
	{Name: "AlarmDoctorOrphan", Kind: "alarm"},
	{Name: "AlarmDoctorKept", Kind: "alarm"},
	{Name: "ActorDoctorSnapshot", Kind: "actor"},
	{Name: "ActorDoctorOrphan", Kind: "actor"},
	{Name: "ActorDoctorAhead", Kind: "actor"},
	{Name: "ActorDoctorPostponed", Kind: "actor"},
	{Name: "ActorDoctorQuarantined", Kind: "actor"},
}

// Has reports whether the database carries what the rule is about.
func (s *Store) Has(r Rule) bool { return s.text(r.Name) != "" }

// Break returns the statement that looks for what breaks a rule.
func (s *Store) Break(r Rule, before time.Time, found func(Violation)) sqldb.Stmt {
	stmt := s.stmt(r.Name)
	if r.Timed {
		stmt = s.stmt(r.Name, before.UTC().Truncate(time.Microsecond))
	}
	return twoColumns(stmt, func(id, detail string) { found(Violation{Rule: r.Name, ID: id, Detail: detail}) })
}
