package mysql

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/perdure/perdure/internal/sqldb"
)

// joinSlots is the number of rows of perdure_joins.
const joinSlots = 1024

// Mark implements joined.Database. The transaction locks a random row of perdure_joins in
// share mode until it ends. No transaction waits for another one at that lock: all of them
// share it, and Ended skips rows that are locked.
func (db *DB) Mark(found func(id string)) sqldb.Stmt {
	slot := rand.IntN(joinSlots)
	return sqldb.Stmt{
		SQL:  "select slot from perdure_joins where slot = ? lock in share mode",
		Args: []any{slot},
		Row: func(scan sqldb.Scan) error {
			if err := scan(&slot); err != nil {
				return err
			}
			found(strconv.Itoa(slot))
			return nil
		},
	}
}

// Ended implements joined.Database. A row that can be locked belongs to no open
// transaction. Whether the transaction was committed is not known.
func (db *DB) Ended(ctx context.Context, ids []string) (map[string]bool, error) {
	args := make([]any, len(ids))
	for i, id := range ids {
		args[i] = id
	}
	query := "select slot from perdure_joins where slot in (?" + strings.Repeat(", ?", len(ids)-1) + ") for update skip locked"
	rows, err := db.urgent.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("read outcomes of transactions: %w", translate(err))
	}
	return endedSlots(rows)
}

func endedSlots(rows *sql.Rows) (map[string]bool, error) {
	defer rows.Close()
	ended := map[string]bool{}
	for rows.Next() {
		var slot string
		if err := rows.Scan(&slot); err != nil {
			return nil, fmt.Errorf("read outcomes of transactions: %w", err)
		}
		ended[slot] = true
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read outcomes of transactions: %w", translate(err))
	}
	return ended, nil
}
