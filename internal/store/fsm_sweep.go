package store

import (
	"time"

	"github.com/perdure/perdure/internal/sqldb"
)

// ExtendLease returns the statement that renews a lease; stale learns whether
// it is gone.
func (s *Store) ExtendLease(token string, lease time.Duration, now Now, stale *bool) sqldb.Stmt {
	return outcome(s.stmt("LeaseExtend", at(now), lease.Microseconds(), token), stale)
}

// ReleaseInstances returns the statement that puts instances back that were not
// started.
func (s *Store) ReleaseInstances(ids []string) sqldb.Stmt {
	return s.stmt("InstanceRelease", one(ids))
}

// PostponeInstance returns the statement that makes an instance due later, and says
// why; ReadyInstances puts it back.
func (s *Store) PostponeInstance(id, reason string, delay time.Duration, now Now) sqldb.Stmt {
	return s.stmt("InstancePostpone", at(now), delay.Microseconds(), reason, id)
}

// PurgeInterrupts returns the statement that forgets the interrupts of a lease.
func (s *Store) PurgeInterrupts(token string) sqldb.Stmt { return s.stmt("InterruptPurge", token) }

// ExpiredWaits returns the statement that locks instances whose wait for a
// signal has timed out.
func (s *Store) ExpiredWaits(limit int, now Now, found func(id string)) sqldb.Stmt {
	expired := s.stmt("WaitingExpired", at(now), limit)
	expired.Row = textRow(found)
	return expired
}

// TimeoutWaits returns the statements that wake those instances.
func (s *Store) TimeoutWaits(ids []string, now Now, woken func(queue string)) []sqldb.Stmt {
	return s.waking("WaitingTimeout", woken, one(ids), at(now), at(now))
}

// TimeoutBarriers returns the statements that wake parents whose wait for
// children has timed out.
func (s *Store) TimeoutBarriers(limit int, now Now, woken func(queue string)) []sqldb.Stmt {
	return s.waking("BarrierTimeout", woken, at(now), limit)
}

// UnrouteInstances returns the statement that lays instances aside that this
// process cannot run.
func (s *Store) UnrouteInstances(ids []string) sqldb.Stmt {
	return s.stmt("InstanceUnroute", one(ids))
}

// Definition names a machine that a process knows.
type Definition struct {
	FSM     string
	Version int
}

func definitionColumns(known []Definition) tuples {
	return tuples{
		column(known, func(d Definition) string { return d.FSM }),
		column(known, func(d Definition) int { return d.Version }),
	}
}

// RerouteInstances returns the statements that put instances of a queue back that
// were laid aside and can be run here.
func (s *Store) RerouteInstances(queue string, known []Definition, limit int, now Now, woken func(queue string)) []sqldb.Stmt {
	return s.waking("InstanceReroute", woken, definitionColumns(known), queue, limit, at(now))
}
