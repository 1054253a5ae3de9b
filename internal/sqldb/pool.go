package sqldb

import (
	"database/sql"
	"sync/atomic"
	"time"
)

// Pool tells how the connections of a database are used.
type Pool struct {
	// Name says what they are for.
	Name string
	// Max is how many there may be, Open how many there are and InUse how many of
	// these are taken.
	Max, Open, InUse int64
	// Waits is how often somebody had to wait for one, and Waited for how long.
	Waits  int64
	Waited time.Duration
}

// Pooled is a DB that can tell how its connections are used.
type Pooled interface {
	Pools() []Pool
}

// Counted is a DB that counts what it runs.
type Counted interface {
	Ran() Counts
}

// Counts is how much was run.
type Counts struct {
	// Statements are those beside the ones that begin and end transactions.
	Statements int64
	// Commits are the transactions that were committed; a snapshot is none.
	Commits int64
}

// Counter counts what is run. A nil one counts nothing.
type Counter struct{ statements, commits atomic.Int64 }

// Add counts n statements more.
func (c *Counter) Add(n int) {
	if c != nil {
		c.statements.Add(int64(n))
	}
}

// Commit counts a transaction more.
func (c *Counter) Commit() { c.commits.Add(1) }

// Counts returns how much it was.
func (c *Counter) Counts() Counts {
	return Counts{Statements: c.statements.Load(), Commits: c.commits.Load()}
}

// StdPool tells how the connections of database/sql are used.
func StdPool(name string, db *sql.DB) Pool {
	s := db.Stats()
	return Pool{
		Name: name, Max: int64(s.MaxOpenConnections), Open: int64(s.OpenConnections), InUse: int64(s.InUse), Waits: s.WaitCount, Waited: s.WaitDuration,
	}
}
