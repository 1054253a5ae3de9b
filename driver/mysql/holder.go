package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/perdure/perdure/internal/sqldb"
)

// holders find the session that holds the outbox counter while another session waits for it.
// MariaDB and MySQL 8 have different tables. The user needs the PROCESS privilege.
const (
	mariaHolder = `
		select p.id, p.user, p.host, p.command, p.time
		from information_schema.innodb_lock_waits w
		join information_schema.innodb_locks l on l.lock_id = w.blocking_lock_id
		join information_schema.innodb_trx b on b.trx_id = w.blocking_trx_id and b.trx_state <> 'LOCK WAIT'
		join information_schema.processlist p on p.id = b.trx_mysql_thread_id
		where l.lock_table = concat('` + "`', database(), '`.`perdure_outbox_clock`" + `')
		limit 1`
	mysqlHolder = `
		select t.processlist_id, coalesce(t.processlist_user, ''), coalesce(t.processlist_host, ''), t.processlist_command, t.processlist_time
		from performance_schema.data_lock_waits w
		join performance_schema.data_locks l on l.engine_lock_id = w.blocking_engine_lock_id and l.lock_status = 'GRANTED'
		join performance_schema.threads t on t.thread_id = l.thread_id
		where l.object_schema = database() and l.object_name = 'perdure_outbox_clock'
		limit 1`
)

// CounterHolder implements sqldb.Watched. It kills a session that has been idle for
// sqldb.ClientSilence while it holds the counter: all writers wait for it, and the server
// would not end it. MariaDB ends Perdure's own sessions by itself, but not those of
// transactions that a caller has joined. Sessions of the same user can be killed without
// further privileges.
func (db *DB) CounterHolder(ctx context.Context) (string, error) {
	query := mysqlHolder
	if db.maria {
		query = mariaHolder
	}
	var id, seconds int64
	var user, host, command string
	err := db.read.QueryRowContext(ctx, query).Scan(&id, &user, &host, &command, &seconds)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return "", nil
	case err != nil:
		return "", translate(err)
	}
	holder := fmt.Sprintf("session %d (%s@%s, %s for %d s)", id, user, host, command, seconds)
	if command == "Sleep" && seconds >= int64(sqldb.ClientSilence.Seconds()) {
		if _, err := db.read.ExecContext(ctx, fmt.Sprintf("kill %d", id)); err != nil {
			return holder, translate(err)
		}
	}
	return holder, nil
}
