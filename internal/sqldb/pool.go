package sqldb

import (
	"database/sql"
	"sync/atomic"
	"time"
)

// Pool has the usage of a pool of database connections.
type Pool struct {
	// Name is the purpose of the connections.
	Name string
	// Max is the maximum number of connections, Open the current number, and InUse the
	// number of connections that are in use.
	Max, Open, InUse int64
	// Waits is the number of times that a caller waited for a connection, Waited the total
	// time.
	Waits  int64
	Waited time.Duration
}

// Pooled is a DB that reports the usage of its connections.
type Pooled interface {
	Pools() []Pool
}

// Counted is a DB that counts its statements and commits.
type Counted interface {
	Ran() Counts
}

// Counts are numbers of statements and commits.
type Counts struct {
	// Statements is the number of statements, except those that start and end transactions.
	Statements int64
	// Commits is the number of committed transactions. Snapshots do not count.
	Commits int64
}

// Counter counts statements and commits. A nil Counter counts nothing.
type Counter struct{ statements, commits atomic.Int64 }

// Add adds n statements.
func (c *Counter) Add(n int) {
	if c != nil {
		c.statements.Add(int64(n))
	}
}

// Commit adds one committed transaction.
func (c *Counter) Commit() { c.commits.Add(1) }

// Counts returns the current counts.
func (c *Counter) Counts() Counts {
	return Counts{Statements: c.statements.Load(), Commits: c.commits.Load()}
}

// StdPool returns the usage of the connections of database/sql.
func StdPool(name string, db *sql.DB) Pool {
	s := db.Stats()
	return Pool{
		Name: name, Max: int64(s.MaxOpenConnections), Open: int64(s.OpenConnections), InUse: int64(s.InUse), Waits: s.WaitCount, Waited: s.WaitDuration,
	}
}
