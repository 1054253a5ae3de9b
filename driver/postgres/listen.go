package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/perdure/perdure/internal/sqldb"
)

// channel is the one channel of all notifications; a topic is its payload.
const channel = "perdure"

// Notify implements wake.Remote. It is a transaction of its own.
func (db *DB) Notify(ctx context.Context, topics []string) error {
	_, err := db.pool.Exec(ctx, "select pg_notify($1, topic) from unnest($2::text[]) as topic", channel, topics)
	if err != nil {
		return fmt.Errorf("notify: %w", translate(err))
	}
	return nil
}

// Listen implements wake.Remote. It takes a connection of its own, outside of
// the pool: one that listens has state in its session.
func (db *DB) Listen(ctx context.Context, ready func(), heard func(topic string)) error {
	conn, err := pgx.ConnectConfig(ctx, db.pool.Config().ConnConfig.Copy())
	if err != nil {
		return fmt.Errorf("connect to listen: %w", err)
	}
	defer func() {
		ctx, cancel := sqldb.RollbackContext()
		defer cancel()
		_ = conn.Close(ctx)
	}()
	if _, err := conn.Exec(ctx, "listen "+channel); err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	ready()
	for {
		notification, err := conn.WaitForNotification(ctx)
		if err != nil {
			return fmt.Errorf("wait for notifications: %w", err)
		}
		heard(notification.Payload)
	}
}
