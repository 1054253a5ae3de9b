package store

import (
	"time"

	"github.com/perdure/perdure/internal/sqldb"
)

// ConsumerState is the state of a consumer that a process wants to serve.
type ConsumerState struct {
	// Now is the time of the clock that decides about leases.
	Now      time.Time
	Position []byte
	// Token is the token of the lease, empty if there is none. Worker is the process that has
	// it, Expires its end.
	Token, Worker string
	Expires       *time.Time
	// Attempts and Crashes are those of the first entry after the position.
	Attempts, Crashes int
	// BatchLimit is the largest batch after a failure, or 0.
	BatchLimit int
	RetryAt    *time.Time
	Stopped    bool
}

// LockConsumer returns the statement that locks and reads a consumer. It finds none if another
// transaction has locked it.
func (s *Store) LockConsumer(name string, now Now, found func(ConsumerState)) sqldb.Stmt {
	return read(s.stmt("ConsumerLock", at(now), name), found, func(c *ConsumerState) []any {
		return []any{&c.Now, &c.Position, &c.Token, &c.Worker, &c.Expires, &c.Attempts, &c.Crashes, &c.BatchLimit, &c.RetryAt, &c.Stopped}
	})
}

// TakeConsumer returns the statement that locks a consumer for an operator. It waits for the
// lock.
func (s *Store) TakeConsumer(name string, found func(position []byte, stopped bool)) sqldb.Stmt {
	return twoColumns(s.stmt("ConsumerTake", name), found)
}

// ConsumerNext has the times that decide when a consumer has work.
type ConsumerNext struct {
	Now time.Time
	// Worker is the process that has the lease, Expires its end; nil if there is none.
	Worker           string
	Expires, RetryAt *time.Time
	Stopped          bool
	// Unread is the time of the first entry after the position, nil if there is none.
	Unread *time.Time
	// Retried is the earliest time of a dead letter that is retried.
	Retried *time.Time
}

// NextOfConsumer returns the statement that reads when a consumer has work.
func (s *Store) NextOfConsumer(name string, now Now, found func(ConsumerNext)) sqldb.Stmt {
	return read(s.stmt("ConsumerNext", at(now), name), found, func(c *ConsumerNext) []any {
		return []any{&c.Now, &c.Worker, &c.Expires, &c.RetryAt, &c.Stopped, &c.Unread, &c.Retried}
	})
}

// ConsumerLease is the lease of a process on a consumer.
type ConsumerLease struct {
	Name, Token, Worker string
	Lease               time.Duration
	// Crashes and BatchLimit are stored with the lease. BatchLimit 0 means no limit.
	Crashes, BatchLimit int
}

// LeaseConsumer returns the statement that gives a locked consumer to a process.
func (s *Store) LeaseConsumer(l ConsumerLease, now Now) sqldb.Stmt {
	return s.stmt("ConsumerLease", l.Token, l.Worker, at(now), l.Lease.Microseconds(), l.Crashes, unlessZero(l.BatchLimit), l.Name)
}

// ExtendConsumer returns the statement that renews a lease. lost is set to whether another
// process may have the consumer.
func (s *Store) ExtendConsumer(name, token string, lease time.Duration, now Now, lost *bool) sqldb.Stmt {
	return outcome(s.stmt("ConsumerExtend", at(now), lease.Microseconds(), name, token), lost)
}

// HoldConsumer returns the statement that moves the position and keeps the lease. lost is set
// to whether the lease or the position was changed by others.
func (s *Store) HoldConsumer(name, token string, from, to []byte, moved time.Time, lost *bool) sqldb.Stmt {
	return outcome(s.stmt("ConsumerHold", to, moved, name, token, from), lost)
}

// ConsumerOutcome is the outcome of a batch.
type ConsumerOutcome struct {
	Name, Token string
	From, To    []byte // the position before and after the batch
	// Moved is the time at which the position changed, nil if it did not.
	Moved             *time.Time
	Attempts, Crashes int
	BatchLimit        int
	// Delay is the time until the next attempt, nil if none failed.
	Delay   *time.Duration
	Error   *string
	Stopped bool
}

// CommitConsumer returns the statement that ends a lease with an outcome. lost is set to
// whether the lease or the position was changed by others.
func (s *Store) CommitConsumer(o ConsumerOutcome, now Now, lost *bool) sqldb.Stmt {
	return outcome(s.stmt("ConsumerSettle", o.To, o.Moved, o.Attempts, o.Crashes, unlessZero(o.BatchLimit), at(now), microseconds(o.Delay), o.Error, s.dialect.Bool(o.Stopped), o.Name, o.Token, o.From), lost)
}

// ReleaseConsumer returns the statement that ends a lease without an outcome.
func (s *Store) ReleaseConsumer(name, token string) sqldb.Stmt {
	return s.stmt("ConsumerRelease", name, token)
}

// ResumeConsumer returns the statement that lets a stopped consumer continue.
func (s *Store) ResumeConsumer(name string) sqldb.Stmt {
	return s.stmt("ConsumerResume", s.dialect.Bool(false), name)
}

// unlessZero returns nil for 0.
func unlessZero(n int) *int {
	if n == 0 {
		return nil
	}
	return &n
}
