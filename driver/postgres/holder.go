package postgres

import (
	"context"
	"fmt"
)

// CounterHolder implements sqldb.Watched. The server itself ends sessions of stopped
// processes; see idleTimeout. The last writer of the row is its holder while it has not
// ended.
func (db *DB) CounterHolder(ctx context.Context) (string, error) {
	rows, err := db.urgent.Query(ctx, `
		select a.pid, coalesce(a.usename, ''), coalesce(a.application_name, ''), coalesce(host(a.client_addr), 'the same host'),
			coalesce(a.state, 'unknown'), coalesce(extract(epoch from clock_timestamp() - a.state_change), 0)::float8
		from perdure.outbox_clock c
		join pg_locks l on l.locktype = 'transactionid' and l.transactionid = c.xmax and l.mode = 'ExclusiveLock' and l.granted
		join pg_stat_activity a on a.pid = l.pid`)
	if err != nil {
		return "", translate(err)
	}
	defer rows.Close()
	holder := ""
	for rows.Next() {
		var pid int
		var user, application, host, state string
		var seconds float64
		if err := rows.Scan(&pid, &user, &application, &host, &state, &seconds); err != nil {
			return "", err
		}
		holder = fmt.Sprintf("session %d (user %s, application %q, from %s, %s for %.1f s)", pid, user, application, host, state, seconds)
	}
	return holder, translate(rows.Err())
}
