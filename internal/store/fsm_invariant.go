package store

import "github.com/perdure/perdure/internal/sqldb"

// Violation is a broken invariant of state machines.
type Violation struct {
	// Rule is the name of the statement that found the violation.
	Rule string
	// ID is the instance. Detail describes the violation.
	ID, Detail string
}

// invariants are the statements whose invariants must hold in every snapshot.
var invariants = []string{
	"InvariantPlace", "InvariantEnded", "InvariantKept", "InvariantReady", "InvariantWake", "InvariantWaiting", "InvariantBarrier",
	"InvariantUnique", "InvariantPartition", "InvariantDeadline", "InvariantInterrupt", "InvariantTree",
}

// Invariants returns the statements that find violations of the invariants of state machines.
// They must run in one snapshot.
func (s *Store) Invariants(found func(Violation)) []sqldb.Stmt {
	stmts := make([]sqldb.Stmt, len(invariants))
	for i, rule := range invariants {
		stmts[i] = twoColumns(s.stmt(rule), func(id, detail string) { found(Violation{Rule: rule, ID: id, Detail: detail}) })
	}
	return stmts
}
