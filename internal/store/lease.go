package store

import "github.com/perdure/perdure/internal/sqldb"

// ExpiredLease is a lease whose process crashed.
type ExpiredLease struct{ Token, Worker string }

// ExpiredLeases returns the statement that locks the expired leases of a queue.
func (s *Store) ExpiredLeases(queue string, limit int, now Now, found func(ExpiredLease)) sqldb.Stmt {
	return read(s.stmt("LeaseExpired", queue, at(now), limit), found, func(l *ExpiredLease) []any { return []any{&l.Token, &l.Worker} })
}
