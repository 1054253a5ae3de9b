package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/perdure/perdure/internal/sqldb"
)

// Mark implements joined.Database: a transaction is identified by its id.
func (db *DB) Mark(found func(id string)) sqldb.Stmt {
	return sqldb.Stmt{
		SQL: "select coalesce(pg_current_xact_id_if_assigned()::text, '')",
		Row: func(scan sqldb.Scan) error {
			var id string
			if err := scan(&id); err != nil {
				return err
			}
			if id != "" {
				found(id)
			}
			return nil
		},
	}
}

// endedQuery returns the transactions of a list that are not in progress. The status of a
// transaction is null if it is so old that the server has forgotten it.
const endedQuery = `
	select id, coalesce(status, 'unknown')
	from (select id, pg_xact_status(id::xid8) as status from unnest(string_to_array($1, ',')) as id) as s
	where status is distinct from 'in progress'`

// Ended implements joined.Database. It uses no transaction of its own.
func (db *DB) Ended(ctx context.Context, ids []string) (map[string]bool, error) {
	ended := map[string]bool{}
	err := with(ctx, db.urgent, func(conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, endedQuery, strings.Join(ids, ","))
		if err != nil {
			return err
		}
		var id, status string
		_, err = pgx.ForEachRow(rows, []any{&id, &status}, func() error {
			ended[id] = status != "aborted"
			return nil
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read outcomes of transactions: %w", translate(err))
	}
	return ended, nil
}
