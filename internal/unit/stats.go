package unit

import (
	"sync/atomic"
	"time"

	"github.com/perdure/perdure/internal/histogram"
	"github.com/perdure/perdure/internal/sqldb"
)

// Stats are the counts of a committer since it started.
type Stats struct {
	// Units is the number of committed units.
	Units int64
	// Transactions is the histogram of the durations of transactions, successful or not.
	Transactions histogram.Counts
	// Busy is the number of transactions that failed with a transient error: a deadlock,
	// a serialization failure or a lost connection.
	Busy int64
}

// counters are the counters of a committer.
type counters struct {
	units, busy atomic.Int64
	took        histogram.Histogram
}

// count records a transaction with the given number of units.
func (c *counters) count(units int, took time.Duration, err error) {
	c.took.Observe(took)
	switch {
	case err == nil:
		c.units.Add(int64(units))
	case sqldb.IsTransient(err):
		c.busy.Add(1)
	}
}

// Stats returns the counts of the committer.
func (c *Committer) Stats() Stats {
	return Stats{Units: c.stats.units.Load(), Transactions: c.stats.took.Counts(), Busy: c.stats.busy.Load()}
}
