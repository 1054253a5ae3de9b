package store

import (
	"time"

	"github.com/perdure/perdure/internal/sqldb"
)

// Rule is an invariant of the tables. Name is the statement that returns its violations.
type Rule struct {
	Name string
	// Kind is the kind of work that the rule is about.
	Kind string
	// Timed is true if the statement takes a time. Leases that expired, and work that was due,
	// before that time violate the rule.
	Timed bool
}

// Rules lists all rules.
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
	{Name: "InstanceDoctorUnknown", Kind: "instance"},
	{Name: "InstanceDoctorStuck", Kind: "instance", Timed: true},
	{Name: "InstanceDoctorUnhandled", Kind: "instance", Timed: true},
	{Name: "HookDoctorPlace", Kind: "hook"},
	{Name: "HookDoctorReady", Kind: "hook"},
	{Name: "HookDoctorEnded", Kind: "hook"},
	{Name: "HookDoctorStuck", Kind: "hook", Timed: true},
	{Name: "HookDoctorUnhandled", Kind: "hook", Timed: true},
	{Name: "HookDoctorAttempts", Kind: "hook"},
	{Name: "HookDoctorKept", Kind: "hook"},
	{Name: "HookDoctorPolicy", Kind: "hook"},
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
	{Name: "AlarmDoctorPolicy", Kind: "alarm"},
	{Name: "ActorDoctorSnapshot", Kind: "actor"},
	{Name: "ActorDoctorOrphan", Kind: "actor"},
	{Name: "ActorDoctorAhead", Kind: "actor"},
	{Name: "ActorDoctorPostponed", Kind: "actor"},
	{Name: "ActorDoctorQuarantined", Kind: "actor"},
	{Name: "ActorDoctorGap", Kind: "actor"},
	{Name: "ActorDoctorMachine", Kind: "actor"},
	{Name: "TaskDoctorTimes", Kind: "task"},
	{Name: "TimesDoctor"},
	{Name: "FloorDoctor"},
}

// Has reports whether the database supports the work that the rule is about.
func (s *Store) Has(r Rule) bool { return s.text(r.Name) != "" }

// Break returns the statement that finds violations of a rule.
func (s *Store) Break(r Rule, before time.Time, found func(Violation)) sqldb.Stmt {
	stmt := s.stmt(r.Name)
	if r.Timed {
		stmt = s.stmt(r.Name, before.UTC().Truncate(time.Microsecond))
	}
	return twoColumns(stmt, func(id, detail string) { found(Violation{Rule: r.Name, ID: id, Detail: detail}) })
}
