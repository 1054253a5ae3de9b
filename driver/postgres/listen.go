package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/perdure/perdure/internal/sqldb"
)

// channel is the channel of all notifications. The payload of a notification is a topic.
const channel = "perdure"

// Notify implements wake.Remote. It uses its own transaction.
func (db *DB) Notify(ctx context.Context, topics []string) error {
	err := with(ctx, db.main, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "select pg_notify($1, topic) from unnest($2::text[]) as topic", channel, topics)
		return err
	})
	if err != nil {
		return fmt.Errorf("notify: %w", translate(err))
	}
	return nil
}

// Listen implements wake.Remote. It uses its own connection outside the pool, because
// LISTEN keeps state in the session.
func (db *DB) Listen(ctx context.Context, ready func(), received func(topic string)) error {
	conn, err := db.main.connect(ctx)
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
		received(notification.Payload)
	}
}

// Commits implements wake.Fallible. The set of running transactions changes with the begin
// and the end of every transaction that writes, also of other databases of the server. It is
// read without a table, a lock or a transaction that writes.
func (db *DB) Commits(ctx context.Context) (snapshot string, err error) {
	err = with(ctx, db.main, func(conn *pgx.Conn) error {
		return conn.QueryRow(ctx, "select pg_current_snapshot()::text").Scan(&snapshot)
	})
	if err != nil {
		return "", fmt.Errorf("read running transactions: %w", translate(err))
	}
	return snapshot, nil
}
