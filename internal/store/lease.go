package store

import "github.com/perdure/perdure/internal/sqldb"

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
