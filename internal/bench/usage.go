package bench

import (
	"context"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/sqldb"
)

// measure runs a workload and reports what it took.
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
		WAL: (after.wal - before.wal) / float64(n), Transactions: (after.commits - before.commits) / float64(n),
		Statements: float64(after.statements-before.statements) / float64(n),
	}, err
}

// usage is what has been used up so far.
type usage struct {
	cpu          time.Duration
	statements   int64
	wal, commits float64
}

func (b *fsmBench) usage(ctx context.Context) (usage, error) {
	db := b.eng.Runtime().DB
	u := usage{cpu: processorTime()}
	if counted, ok := db.(sqldb.Counted); ok {
		u.statements = counted.Statements()
	}
	if db.Dialect().Name != sqldb.Postgres {
		return u, nil
	}
	err := b.eng.View(ctx, func(tx *perdure.Tx) error {
		rows, err := tx.Query(`select pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float8, xact_commit::float8
			from pg_stat_database where datname = current_database()`)
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }()
		for rows.Next() {
			if err := rows.Scan(&u.wal, &u.commits); err != nil {
				return err
			}
		}
		return rows.Err()
	})
	return u, err
}
