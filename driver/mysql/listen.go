package mysql

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/sqldb"
)

const (
	// listenEvery is the interval at which Listen reads the counters.
	listenEvery = 40 * time.Millisecond
	// counters is the number of rows of perdure_wakes. Each notification increments one of
	// them, so that processes do not wait for each other.
	counters = 16
	// nodeCounters is the number of counters that one node of a cluster uses.
	nodeCounters = 5
	// notifyTries is the maximum number of attempts of a notification on a cluster.
	notifyTries = 5
)

// Notify implements wake.Remote. MySQL has no notifications, so Notify increments a
// counter that the other processes read. It uses its own transaction. The nodes of a cluster
// have different offsets, so that they rarely increment the same counter concurrently.
func (db *DB) Notify(ctx context.Context, _ []string) error {
	n := counters
	if db.dialect.Cluster {
		n = nodeCounters
	}
	var err error
	for range notifyTries {
		_, err = db.write.ExecContext(ctx, "update perdure_wakes set seq = seq + 1 where id = mod(? + 5 * @@auto_increment_offset, ?)", rand.IntN(n), counters)
		if err = db.dialect.Translate(err); !sqldb.IsCertification(err) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("notify: %w", err)
	}
	return nil
}

// Listen implements wake.Remote. It reads the sum of the counters every listenEvery. The
// topics are not known.
func (db *DB) Listen(ctx context.Context, ready func(), received func(topic string)) error {
	last, err := db.wakes(ctx)
	if err != nil {
		return err
	}
	ready()
	for {
		timer := clock.System.NewTimer(listenEvery)
		select {
		case <-timer.C():
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
		sum, err := db.wakes(ctx)
		if err != nil {
			return err
		}
		if sum != last {
			last = sum
			received("")
		}
	}
}

// wakes returns the number of notifications so far. On a cluster it does not wait for other
// nodes: a notification arrives after the work that it announces.
func (db *DB) wakes(ctx context.Context) (sum int64, err error) {
	pool := db.read
	if db.dialect.Cluster {
		pool = db.urgent
	}
	if err := pool.QueryRowContext(ctx, "select coalesce(sum(seq), 0) from perdure_wakes").Scan(&sum); err != nil {
		return 0, fmt.Errorf("read notifications: %w", translate(err))
	}
	return sum, nil
}
