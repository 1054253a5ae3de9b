package mysql

import (
	"context"
	"fmt"
	"time"

	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/sqldb"
)

// maxSkew is the maximum difference between the clocks of the process and the server. The
// server's clock decides when work is due. The process uses its own clock only to wake
// up.
const maxSkew = 5 * time.Second

// Diagnose implements sqldb.Diagnoser.
func (db *DB) Diagnose(ctx context.Context) ([]sqldb.Diagnosis, error) {
	var version string
	var flush, limit int
	var now time.Time
	before := clock.System.Now()
	err := db.read.QueryRowContext(ctx, "select version(), @@innodb_flush_log_at_trx_commit, @@max_connections, utc_timestamp(6)").Scan(&version, &flush, &limit, timeDest{&now})
	if err != nil {
		return nil, fmt.Errorf("read settings: %w", err)
	}
	middle := before.Add(clock.System.Now().Sub(before) / 2)
	return []sqldb.Diagnosis{{Name: "version", Found: "MySQL " + version}, skew(now.Sub(middle)), durability(flush), db.connections(limit)}, nil
}

func skew(d time.Duration) sqldb.Diagnosis {
	found := sqldb.Diagnosis{Name: "clock_skew", Found: d.Round(time.Millisecond).String()}
	if d.Abs() > maxSkew {
		found.Problem = "the clocks of this host and of the server differ by " + d.Abs().Round(time.Second).String()
	}
	return found
}

func durability(flush int) sqldb.Diagnosis {
	found := sqldb.Diagnosis{Name: "durability", Found: fmt.Sprintf("innodb_flush_log_at_trx_commit is %d", flush)}
	if flush != 1 {
		found.Problem, found.Broken = "commits are acknowledged before they are on disk", true
	}
	return found
}

// connections compares the size of the pools of one process with the server's limit.
func (db *DB) connections(limit int) sqldb.Diagnosis {
	most := writers + groups + readers + urgents
	if db.borrowed {
		most = db.write.Stats().MaxOpenConnections
	}
	found := sqldb.Diagnosis{Name: "pool_size", Found: fmt.Sprintf("%d of the server's %d connections for one process", most, limit)}
	if most*2 > limit {
		found.Problem = "two processes could open more connections than the server allows"
	}
	return found
}
