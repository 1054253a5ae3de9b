package store

import "github.com/perdure/perdure/internal/sqldb"

// The ids that sort before and after all others.
const (
	FirstID = "00000000-0000-0000-0000-000000000000"
	LastID  = "ffffffff-ffff-ffff-ffff-ffffffffffff"
)

// RetryBound returns the statement that finds the last id of the next n items after an id,
// ordered by id. It finds none if fewer are left.
func (f *Family) RetryBound(after string, n int, found func(id string)) sqldb.Stmt {
	bound := f.stmt("RetryBound", after, n-1)
	bound.Row = func(scan sqldb.Scan) error {
		var id string
		err := scan(&id)
		if err == nil {
			found(id)
		}
		return err
	}
	return bound
}

// ChangeRetry returns the statement that sets the retry policy of the items of a lane with ids
// after one id, up to and including another. changed is set to the number of items.
func (f *Family) ChangeRetry(lane, after, until, policy string, attempts int, changed *int64) sqldb.Stmt {
	return counted(f.stmt("RetryChange", policy, attempts, lane, after, until), changed)
}
