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

// Counted is a DB that counts the statements that it runs.
type Counted interface {
	// Statements is how many it has run, beside those that begin and end
	// transactions.
	Statements() int64
}

// Counter counts statements. A nil one counts nothing.
type Counter struct{ n atomic.Int64 }

// Add counts n more.
func (c *Counter) Add(n int) {
	if c != nil {
		c.n.Add(int64(n))
	}
}

// Statements implements Counted.
func (c *Counter) Statements() int64 { return c.n.Load() }

// StdPool tells how the connections of database/sql are used.
func StdPool(name string, db *sql.DB) Pool {
	s := db.Stats()
	return Pool{
		Name: name, Max: int64(s.MaxOpenConnections), Open: int64(s.OpenConnections), InUse: int64(s.InUse), Waits: s.WaitCount, Waited: s.WaitDuration,
	}
}
