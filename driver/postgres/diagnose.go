package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/sqldb"
)

// maxSkew is how far the clocks of the process and the server may be apart. The
// server's decides; the process only wakes by its own.
const maxSkew = 5 * time.Second

// Diagnose implements sqldb.Diagnoser.
func (db *DB) Diagnose(ctx context.Context) ([]sqldb.Diagnosis, error) {
	var version, sync string
	var port, limit int
	var now time.Time
	before := clock.System.Now()
	err := db.pool.QueryRow(ctx, `select current_setting('server_version'), current_setting('synchronous_commit'),
		coalesce(inet_server_port(), 0), current_setting('max_connections')::int, clock_timestamp()`).Scan(&version, &sync, &port, &limit, &now)
	if err != nil {
		return nil, fmt.Errorf("read settings: %w", translate(err))
	}
	middle := before.Add(clock.System.Now().Sub(before) / 2)
	return []sqldb.Diagnosis{
		{Name: "version", Found: "PostgreSQL " + version},
		skew(now.Sub(middle)),
		durability(sync),
		db.connections(limit),
		pooler(int(db.pool.Config().ConnConfig.Port), port),
	}, nil
}

func skew(d time.Duration) sqldb.Diagnosis {
	found := sqldb.Diagnosis{Name: "clock_skew", Found: d.Round(time.Millisecond).String()}
	if d.Abs() > maxSkew {
		found.Problem = "the clocks of this machine and of the server are " + d.Abs().Round(time.Second).String() + " apart"
	}
	return found
}

func durability(sync string) sqldb.Diagnosis {
	found := sqldb.Diagnosis{Name: "durability", Found: "synchronous_commit is " + sync}
	if sync == "off" {
		found.Problem, found.Broken = "commits are acknowledged before they are on disk", true
	}
	return found
}

// connections compares the pools of one process with what the server allows.
func (db *DB) connections(limit int) sqldb.Diagnosis {
	most := int(db.pool.Config().MaxConns) + urgentConns
	found := sqldb.Diagnosis{Name: "pool_size", Found: fmt.Sprintf("%d of the server's %d connections for one process", most, limit)}
	if most*2 > limit {
		found.Problem = "two processes could take more connections than the server has"
	}
	return found
}

// pooler finds something between the process and the server, as PgBouncer.
func pooler(asked, actual int) sqldb.Diagnosis {
	found := sqldb.Diagnosis{Name: "pooler", Found: "none"}
	if actual != 0 && actual != asked {
		found.Found = fmt.Sprintf("port %d leads to a server on port %d", asked, actual)
		found.Problem = "something stands between the process and the server; if it pools transactions, notifications do not come through"
	}
	return found
}
