package store

import (
	"time"

	"github.com/perdure/perdure/internal/sqldb"
)

// Compensation is an instance that continues with its cancel step.
type Compensation struct{ ID, Step, Reason string }

// CompensateInstances returns the statement that makes instances continue with their
// cancel steps. It does not put them into a queue.
func (s *Store) CompensateInstances(all []Compensation, now Now) sqldb.Stmt {
	return s.stmt("InstanceCompensate", at(now), tuples{
		column(all, func(c Compensation) string { return c.ID }),
		column(all, func(c Compensation) string { return c.Step }),
		column(all, func(c Compensation) string { return c.Reason }),
	})
}

// CancelLease is a lease that holds an instance while its cancelled step is still running.
type CancelLease struct{ Token, Queue, ID string }

// InsertCancelLeases returns the statement that adds such leases.
func (s *Store) InsertCancelLeases(all []CancelLease, lease time.Duration, now Now) sqldb.Stmt {
	return s.stmt("CancelLease", lease.Microseconds(), tuples{
		column(all, func(l CancelLease) string { return l.Token }),
		column(all, func(l CancelLease) string { return l.Queue }),
		column(all, func(l CancelLease) string { return l.ID }),
	}, at(now))
}

// TakeCancelLeases returns the statement that locks the leases that hold instances for their
// cancel step.
func (s *Store) TakeCancelLeases(ids []string, found func(Held)) sqldb.Stmt {
	return read(s.stmt("CancelLeaseTake", one(ids)), found, func(h *Held) []any { return []any{&h.ID, &h.Token} })
}

// QueuedMembers returns the statement that finds the instances that are in the queue
// of their partition.
func (s *Store) QueuedMembers(members []PartitionMember, found func(id string)) sqldb.Stmt {
	queued := s.stmt("PartitionQueued", tuples{
		column(members, func(m PartitionMember) string { return m.Key }),
		column(members, func(m PartitionMember) string { return m.ID }),
	})
	queued.Row = textRow(found)
	return queued
}
