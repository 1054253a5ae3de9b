package sqldb

import (
	"context"
	"errors"
)

// Certification marks the error of a transaction on a node of a cluster that conflicts with a
// transaction of another node. It was rolled back. On a cluster, locks are known only to
// their own node: conflicts with other nodes are found when a transaction commits. They are
// frequent, so the attempts are bounded by time and not by their number. It is always inside
// a *Transient.
type Certification struct{ Err error }

func (e *Certification) Error() string { return e.Err.Error() }

// Unwrap returns the database's error.
func (e *Certification) Unwrap() error { return e.Err }

// IsCertification reports whether a transaction conflicted with a transaction of another node
// of a cluster. Nothing was written.
func IsCertification(err error) bool {
	var c *Certification
	return errors.As(err, &c)
}

// Clustered is a DB that may be a node of a cluster.
type Clustered interface {
	// Fence returns the statement that makes a transaction conflict with all other
	// transactions that changed rows since it started, on any node. Drivers add it to their
	// own transactions. A transaction of a caller must run it before its COMMIT. There is
	// none if the database is not a node of a cluster.
	Fence() []Stmt
	// Guard returns a runner for the statements of a unit in a transaction of a caller. It
	// makes rows that the unit only locks conflict with transactions of other nodes that
	// lock them.
	Guard(run Runner) Runner
	// TakeTurn asks the transactions of all other processes to wait with their commits until
	// a transaction of this process has committed, but at most for a fraction of a second.
	// It is for a transaction that was overtaken several times. It has no effect if another
	// process has the turn, or if the database is not a node of a cluster.
	TakeTurn(ctx context.Context) error
	// ClusterState describes the cluster and the state of this node in it, with the problem
	// if there is one. ok is false if the database is not a node of a cluster.
	ClusterState(ctx context.Context) (state Diagnosis, ok bool, err error)
}
