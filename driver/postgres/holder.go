package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// CounterHolder implements sqldb.Watched. The server itself ends sessions of stopped
// processes; see idleTimeout. The last writer of the row is its holder while it has not
// ended.
func (db *DB) CounterHolder(ctx context.Context) (holder string, err error) {
	err = with(ctx, db.urgent, func(conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, holderQuery)
		if err != nil {
			return err
		}
		var pid int
		var user, application, host, state string
		var seconds float64
		_, err = pgx.ForEachRow(rows, []any{&pid, &user, &application, &host, &state, &seconds}, func() error {
			holder = fmt.Sprintf("session %d (user %s, application %q, from %s, %s for %.1f s)", pid, user, application, host, state, seconds)
			return nil
		})
		return err
	})
	return holder, translate(err)
}

const holderQuery = `
	select a.pid, coalesce(a.usename, ''), coalesce(a.application_name, ''), coalesce(host(a.client_addr), 'the same host'),
		coalesce(a.state, 'unknown'), coalesce(extract(epoch from clock_timestamp() - a.state_change), 0)::float8
	from perdure.outbox_clock c
	join pg_locks l on l.locktype = 'transactionid' and l.transactionid = c.xmax and l.mode = 'ExclusiveLock' and l.granted
	join pg_stat_activity a on a.pid = l.pid`
