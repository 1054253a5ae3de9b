package bench

import (
	"context"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/sqldb"
)

// measure runs a workload and reports its resource usage.
func (b *fsmBench) measure(ctx context.Context, name string, n int, workload func() error) (FSMResult, error) {
	b.options.Progress(name)
	before, err := b.usage(ctx)
	if err != nil {
		return FSMResult{}, err
	}
	from := clock.System.Now()
	if err := workload(); err != nil {
		return FSMResult{}, err
	}
	elapsed := clock.System.Now().Sub(from)
	after, err := b.usage(ctx)
	return FSMResult{
		Workload: name, Units: n, PerSecond: float64(n) / elapsed.Seconds(), CPU: (after.cpu - before.cpu) / time.Duration(n),
		WAL: (after.wal - before.wal) / float64(n), Transactions: float64(after.ran.Commits-before.ran.Commits) / float64(n),
		Statements: float64(after.ran.Statements-before.ran.Statements) / float64(n),
	}, err
}

// usage is the resource usage so far.
type usage struct {
	cpu time.Duration
	ran sqldb.Counts
	wal float64
}

func (b *fsmBench) usage(ctx context.Context) (usage, error) {
	db := host.Of(b.eng).DB
	u := usage{cpu: processorTime()}
	if counted, ok := db.(sqldb.Counted); ok {
		u.ran = counted.Ran()
	}
	position := db.Dialect().LogPosition()
	if position == "" {
		return u, nil
	}
	err := b.eng.View(ctx, func(tx *perdure.Tx) error {
		rows, err := tx.Query(position)
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }()
		for rows.Next() {
			if err := rows.Scan(&u.wal); err != nil {
				return err
			}
		}
		return rows.Err()
	})
	return u, err
}
