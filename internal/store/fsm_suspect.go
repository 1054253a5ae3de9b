package store

import (
	"strings"
	"time"

	"github.com/perdure/perdure/internal/sqldb"
)

// Suspect is an instance that may have killed its process, with its batch limit.
type Suspect struct {
	ID    string
	Limit int
}

// ListSuspects returns the statement that locks due suspects of a queue whose batch
// limit is at least least, those with the largest limit first.
func (s *Store) ListSuspects(queue string, least, limit int, now Now, found func(Suspect)) sqldb.Stmt {
	list := s.stmt("SuspectList", queue, at(now), least, limit)
	list.Row = func(scan sqldb.Scan) error {
		var r Suspect
		if err := scan(&r.ID, &r.Limit); err != nil {
			return err
		}
		found(r)
		return nil
	}
	return list
}

// ClaimSuspects returns the statements that lease the suspects that ListSuspects has
// locked, all under one token.
func (s *Store) ClaimSuspects(c InstanceClaim, ids []string, now Now, found func(*Instance)) []sqldb.Stmt {
	separator := "\n), taken as ("
	if s.dialect.Name == sqldb.SQLite {
		separator = "\n;\n"
	}
	_, rest, _ := strings.Cut(s.text("InstanceClaim"), separator)
	text := strings.ReplaceAll(s.text("SuspectClaim"), "{rest}", rest)
	args := s.expand([]any{c.Queue, at(now), c.Limit, c.Token, c.Worker, s.flag(true), c.Lease.Microseconds(), one(ids)})
	var stmts []sqldb.Stmt
	for _, part := range strings.Split(text, "\n;\n") {
		stmts = append(stmts, sqldb.Stmt{SQL: part, Args: args})
	}
	stmts[len(stmts)-1].Row = s.instanceRow(found)
	return stmts
}

// ExpiredLease is a lease whose process crashed.
type ExpiredLease struct{ Token, Worker string }

// ExpiredLeases returns the statement that locks the expired leases of a queue.
func (s *Store) ExpiredLeases(queue string, limit int, now Now, found func(ExpiredLease)) sqldb.Stmt {
	expired := s.stmt("LeaseExpired", queue, at(now), limit)
	expired.Row = func(scan sqldb.Scan) error {
		var l ExpiredLease
		if err := scan(&l.Token, &l.Worker); err != nil {
			return err
		}
		found(l)
		return nil
	}
	return expired
}

// LeasedInstance is an instance that a lease of a process still holds.
type LeasedInstance struct {
	Token, ID string
	Crashes   int
	// Suspect is true if the lease holds suspects only; Limit is the batch limit.
	Suspect bool
	Limit   int
}

// HeldBy returns the statement that finds the instances that all leases of a process
// still hold.
func (s *Store) HeldBy(worker string, found func(LeasedInstance)) sqldb.Stmt {
	held := s.stmt("LeaseHeld", worker)
	held.Row = func(scan sqldb.Scan) error {
		var i LeasedInstance
		if err := scan(&i.Token, &i.Suspect, &i.ID, &i.Crashes, &i.Limit); err != nil {
			return err
		}
		found(i)
		return nil
	}
	return held
}

// Return is an instance whose process crashed. Limit is its batch limit, nil if it
// is no suspect.
type Return struct {
	ID      string
	Crashes int
	Limit   *int
	Delay   time.Duration
}

// ReturnInstances returns the statements that put instances back whose process
// crashed.
func (s *Store) ReturnInstances(returns []Return, message string, now Now, woken func(queue string)) []sqldb.Stmt {
	return s.waking("InstanceReturn", woken, message, at(now), tuples{
		column(returns, func(r Return) string { return r.ID }),
		column(returns, func(r Return) int { return r.Crashes }),
		column(returns, func(r Return) int64 { return r.Delay.Microseconds() }),
		column(returns, func(r Return) *int { return r.Limit }),
	})
}

// SuspectsDue returns the statement that finds whether suspects of a queue are due.
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
