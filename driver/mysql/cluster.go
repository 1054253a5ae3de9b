package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/perdure/perdure/internal/sqldb"
)

// A node of a Galera cluster is a server on which transactions run with local locks. When a
// transaction commits, the rows that it has written are sent to all nodes in one order, and
// each node finds out whether a transaction that came before has written the same rows: the
// transaction is certified or rolled back.
//
// Rows that a transaction has only locked are not certified. Perdure decides many things under
// a lock: a process may record an outcome while it holds the lock of its lease. On a cluster,
// a transaction therefore writes a guard for each row that it locks or changes; see guard.go. It
// also writes one row that all transactions share, that of the outbox clock, as its last
// statement: the fence. It is for a row that one transaction locks and another changes: if
// the change is applied while the lock is held, the first one is rolled back, and if the
// change is not applied yet, both have written the fence. Transactions that only insert rows
// need no fence, nor do claims, which delete the rows that they have locked.

const (
	// syncWait makes a transaction see all transactions that were committed before it started,
	// on any node.
	syncWait = "wsrep_sync_wait"
	// turnTime is the longest time for which the other processes wait for a process that has
	// the turn.
	turnTime = 250 * time.Millisecond
	// turnTries is the number of attempts to take the turn.
	turnTries = 5
	// errDeadlock is the number of the error of a deadlock and of a certification failure.
	errDeadlock = 1213
)

const (
	fenceText = `update perdure_outbox_clock
		set fence = fence + 1, turn = if(turn = ?, null, turn)
		where id = 1 and (turn is null or turn = ? or turn_until < utc_timestamp(6))`
	joinedFenceText = "update perdure_outbox_clock set fence = fence + 1 where id = 1"

	turnText = `update perdure_outbox_clock
		set turn = ?, turn_until = utc_timestamp(6) + interval ? microsecond
		where id = 1 and (turn is null or turn = ? or turn_until < utc_timestamp(6))`
)

// inCluster reports whether the server is a node of a Galera cluster. The variables exist only
// in MariaDB and in Percona XtraDB Cluster.
func inCluster(ctx context.Context, conn *sql.DB) (bool, error) {
	found, err := variables(ctx, conn, "show global variables where variable_name in ('wsrep_on', 'wsrep_provider')")
	if err != nil {
		return false, translate(err)
	}
	return found["wsrep_on"] == "ON" && found["wsrep_provider"] != "" && found["wsrep_provider"] != "none", nil
}

// variables returns the result of a SHOW statement, which has two columns.
func variables(ctx context.Context, conn *sql.DB, show string) (map[string]string, error) {
	rows, err := conn.QueryContext(ctx, show)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	found := map[string]string{}
	for rows.Next() {
		var name, value string
		if err := rows.Scan(&name, &value); err != nil {
			return nil, err
		}
		found[strings.ToLower(name)] = value
	}
	return found, rows.Err()
}

// certified converts MySQL's errors on a cluster: a deadlock may be a conflict with a
// transaction of another node.
func certified(err error) error {
	var e *mysql.MySQLError
	if errors.As(err, &e) && e.Number == errDeadlock {
		return &sqldb.Transient{Err: &sqldb.Certification{Err: err}}
	}
	return translate(err)
}

// errTurn is the error of a transaction that must wait because another process has the turn.
var errTurn = errors.New("another process has the turn")

// Fence implements sqldb.Clustered.
func (db *DB) Fence() []sqldb.Stmt {
	if !db.dialect.Cluster {
		return nil
	}
	return []sqldb.Stmt{{SQL: joinedFenceText, Fail: counterLocked}}
}

// fence returns the statement of Fence for a transaction of this process, which waits if
// another process has the turn.
func (db *DB) fence() []sqldb.Stmt {
	if !db.dialect.Cluster {
		return nil
	}
	return []sqldb.Stmt{{
		SQL:  fenceText,
		Args: []any{db.id, db.id},
		Done: sqldb.One(&sqldb.Transient{Err: &sqldb.Certification{Err: errTurn}}),
		Fail: counterLocked,
	}}
}

// counterLocked marks the error of a fence that is locked: it is the row of the outbox counter.
func counterLocked(err error) error {
	if timeout := (*sqldb.LockTimeout)(nil); errors.As(err, &timeout) {
		timeout.Counter = true
	}
	return err
}

// TakeTurn implements sqldb.Clustered.
func (db *DB) TakeTurn(ctx context.Context) error {
	if !db.dialect.Cluster {
		return nil
	}
	var err error
	for range turnTries {
		_, err = db.urgent.ExecContext(ctx, turnText, db.id, turnTime.Microseconds(), db.id)
		if err = certified(err); !sqldb.IsCertification(err) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("take the turn: %w", cut(ctx, err))
	}
	return nil
}

// needsFence reports whether a statement may change or lock rows that another transaction has
// locked. locks is true if it only locks them. A claim deletes only rows that it has locked. A
// select that keeps its rows in a variable is followed by statements that change them.
func needsFence(text string, claim bool) (need, locks bool) {
	text = strings.ToLower(strings.TrimSpace(text))
	switch {
	case strings.HasPrefix(text, "insert") && !strings.Contains(text, "on duplicate key update"):
		return false, false
	case strings.HasPrefix(text, "select"), strings.HasPrefix(text, "with"), strings.HasPrefix(text, "("):
		locks = strings.Contains(text, "for update") || strings.Contains(text, "lock in share mode") || strings.Contains(text, "for share")
		return locks && !claim && !strings.Contains(text, " into @"), locks
	case strings.HasPrefix(text, "delete"):
		return !claim, false
	case strings.HasPrefix(text, "savepoint"), strings.HasPrefix(text, "release"), strings.HasPrefix(text, "rollback"), strings.HasPrefix(text, "set @"):
		return false, false
	}
	return true, false
}
