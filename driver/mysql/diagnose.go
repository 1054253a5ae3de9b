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
	all := []sqldb.Diagnosis{{Name: "version", Found: "MySQL " + version}, skew(now.Sub(middle)), durability(flush), db.connections(limit)}
	state, ok, err := db.ClusterState(ctx)
	if ok {
		all = append(all, state)
	}
	return all, err
}

// ClusterState implements sqldb.Clustered.
func (db *DB) ClusterState(ctx context.Context) (state sqldb.Diagnosis, ok bool, err error) {
	if !db.dialect.Cluster {
		return state, false, nil
	}
	status, err := variables(ctx, db.read, "show global status where variable_name in ('wsrep_cluster_size', 'wsrep_cluster_status', 'wsrep_local_state_comment')")
	if err != nil {
		return state, false, fmt.Errorf("read cluster state: %w", translate(err))
	}
	return cluster(status), true, nil
}

// cluster describes the cluster and the state of this node in it.
func cluster(status map[string]string) sqldb.Diagnosis {
	size, component, state := status["wsrep_cluster_size"], status["wsrep_cluster_status"], status["wsrep_local_state_comment"]
	found := sqldb.Diagnosis{Name: "cluster", Found: fmt.Sprintf("Galera, %s nodes; this node is %s in a component that is %s", size, state, component)}
	switch {
	case component != "Primary":
		found.Problem, found.Broken = "this node has lost the majority of the cluster and refuses all statements", true
	case state != "Synced":
		found.Problem = "this node is not synced with the cluster: its statements wait"
	case size == "1" || size == "2":
		found.Problem = "the cluster stops when one more node is lost: it has no majority then"
	}
	return found
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
