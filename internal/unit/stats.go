package unit

import (
	"sync/atomic"
	"time"

	"github.com/perdure/perdure/internal/histogram"
	"github.com/perdure/perdure/internal/sqldb"
)

// Stats counts what a committer has done since it started.
type Stats struct {
	// Units is how many units were committed.
	Units int64
	// Transactions is how long the transactions took, successful or not.
	Transactions histogram.Counts
	// Busy is how many ended because the database asked to try again: after a
	// deadlock, a serialization failure or a lost connection.
	Busy int64
}

// counters are what a committer counts.
type counters struct {
	units, busy atomic.Int64
	took        histogram.Histogram
}

// count notes a transaction of some units.
func (c *counters) count(units int, took time.Duration, err error) {
	c.took.Observe(took)
	switch {
	case err == nil:
		c.units.Add(int64(units))
	case sqldb.IsTransient(err):
		c.busy.Add(1)
	}
}

// Stats returns what the committer has counted.
func (c *Committer) Stats() Stats {
	return Stats{Units: c.stats.units.Load(), Transactions: c.stats.took.Counts(), Busy: c.stats.busy.Load()}
}
