package store

import (
	"strconv"
	"time"

	"github.com/perdure/perdure/internal/sqldb"
)

// ExtendLease returns the statement that renews a lease. stale is set to whether the lease no
// longer exists.
func (s *Store) ExtendLease(token string, lease time.Duration, now Now, stale *bool) sqldb.Stmt {
	return outcome(s.stmt("LeaseExtend", at(now), lease.Microseconds(), token), stale)
}

// PurgeInterrupts returns the statement that removes the interrupts of a lease.
func (s *Store) PurgeInterrupts(token string) sqldb.Stmt { return s.stmt("InterruptPurge", token) }

// ExpiredWaits returns the statement that locks instances whose wait for a
// signal has timed out.
func (s *Store) ExpiredWaits(limit int, now Now, found func(id string)) sqldb.Stmt {
	return oneColumn(s.stmt("WaitingExpired", at(now), limit), found)
}

// TimeoutWaits returns the statements that wake the instances that ExpiredWaits found.
func (s *Store) TimeoutWaits(ids []string, now Now, woken func(queue string)) []sqldb.Stmt {
	return s.waking("WaitingTimeout", woken, one(ids), at(now), at(now))
}

// TimeoutBarriers returns the statements that wake parents whose wait for
// children has timed out.
func (s *Store) TimeoutBarriers(limit int, now Now, woken func(queue string)) []sqldb.Stmt {
	return s.waking("BarrierTimeout", woken, at(now), limit)
}

// Unrouted is an instance that this process cannot run. The process does not know the
// definition or, if Known is true, it does not know the instance's step.
type Unrouted struct {
	ID    string
	Known bool
}

// UnroutedIDs returns the ids of instances.
func UnroutedIDs(all []Unrouted) []string {
	return column(all, func(u Unrouted) string { return u.ID })
}

// UnrouteInstances returns the statement that parks instances until a process that
// can run them serves their queue.
func (s *Store) UnrouteInstances(all []Unrouted) sqldb.Stmt {
	return s.stmt("InstanceUnroute", tuples{
		column(all, func(u Unrouted) string { return u.ID }),
		column(all, func(u Unrouted) bool { return u.Known }),
	})
}

// Definition identifies a definition.
type Definition struct {
	FSM     string
	Version int
}

// String returns the definition in the form that processes report.
func (d Definition) String() string { return d.FSM + "@" + strconv.Itoa(d.Version) }

// KnownStep is a step of a definition that a process can run. The empty step
// represents instances whose definition was not known to the process that claimed
// them.
type KnownStep struct {
	Definition
	Step string
}

func knownColumns(known []KnownStep) tuples {
	return tuples{
		column(known, func(k KnownStep) string { return k.FSM }),
		column(known, func(k KnownStep) int { return k.Version }),
		column(known, func(k KnownStep) string { return k.Step }),
	}
}

// RerouteInstances returns the statements that return parked instances to a queue if this
// process can run them.
func (s *Store) RerouteInstances(queue string, known []KnownStep, limit int, now Now, woken func(queue string)) []sqldb.Stmt {
	return s.waking("InstanceReroute", woken, knownColumns(known), queue, limit, at(now))
}
