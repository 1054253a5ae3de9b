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

// ExpiredLeases returns the statement that locks the expired leases of a queue.
// alone tells those of suspects.
func (s *Store) ExpiredLeases(queue string, limit int, now Now, found func(token string, alone bool)) sqldb.Stmt {
	expired := s.stmt("LeaseExpired", queue, at(now), limit)
	expired.Row = func(scan sqldb.Scan) error {
		var token string
		var alone bool
		if err := scan(&token, &alone); err != nil {
			return err
		}
		found(token, alone)
		return nil
	}
	return expired
}

// HeldBy returns the statement that finds the instances that an expired lease
// still holds, with their crashes.
func (s *Store) HeldBy(token string, found func(id string, crashes int)) sqldb.Stmt {
	held := s.stmt("LeaseHeld", token)
	held.Row = func(scan sqldb.Scan) error {
		var id string
		var crashes int
		if err := scan(&id, &crashes); err != nil {
			return err
		}
		found(id, crashes)
		return nil
	}
	return held
}

// Return is an instance whose process was lost.
type Return struct {
	ID      string
	Crashes int
	Suspect bool
	Delay   time.Duration
}

// ReturnInstances returns the statements that put instances back whose process
// was lost.
func (s *Store) ReturnInstances(returns []Return, message string, now Now, woken func(queue string)) []sqldb.Stmt {
	return s.waking("InstanceReturn", woken, message, at(now), tuples{
		column(returns, func(r Return) string { return r.ID }),
		column(returns, func(r Return) int { return r.Crashes }),
		column(returns, func(r Return) int64 { return r.Delay.Microseconds() }),
		column(returns, func(r Return) bool { return r.Suspect }),
	})
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

// ExpiredDeadlines returns the statement that finds instances that should have
// ended by now.
func (s *Store) ExpiredDeadlines(limit int, now Now, found func(id string)) sqldb.Stmt {
	expired := s.stmt("DeadlineExpired", at(now), limit)
	expired.Row = textRow(found)
	return expired
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

// SuspectsDue returns the statement that tells whether instances of a queue are
// due whose process was lost before.
func (s *Store) SuspectsDue(queue string, now Now, found func()) sqldb.Stmt {
	due := s.stmt("SuspectDue", queue, at(now))
	due.Row = func(scan sqldb.Scan) error {
		var one int
		if err := scan(&one); err != nil {
			return err
		}
		found()
		return nil
	}
	return due
}
