package mysql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"time"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/sqldb"
)

// minConns is the minimum size of a caller's pool: one connection for a transaction of the
// application, and one for heartbeats.
const minConns = 2

// Borrow returns a DB that uses the connections of the caller's pool. Close leaves the pool
// open. The settings that Perdure's statements need are set before each transaction and
// restored after it.
func Borrow(ctx context.Context, pool *sql.DB) (*DB, error) {
	size := pool.Stats().MaxOpenConnections
	if size > 0 && size < minConns {
		return nil, fault.Invalidf("pool", "must have at least %d connections, got %d: one for a transaction, and one for heartbeats", minConns, size)
	}
	if size == 0 { // no limit
		size = writers + groups
	}
	db := &DB{read: pool, write: pool, group: pool, urgent: pool, borrowed: true, room: make(chan struct{}, max(size-groups, (size+1)/2))}
	for range cap(db.room) {
		db.room <- struct{}{}
	}
	if err := db.check(ctx, db.write); err != nil {
		return nil, fmt.Errorf("use the application's pool: %w", err)
	}
	if err := db.checkDurable(ctx); err != nil {
		return nil, fmt.Errorf("use the application's pool: %w", err)
	}
	return db, nil
}

// checkDurable returns an error if a setting of the session breaks a guarantee.
func (db *DB) checkDurable(ctx context.Context) error {
	var autocommit, unique, foreign bool
	err := db.write.QueryRowContext(ctx, "select @@autocommit, @@unique_checks, @@foreign_key_checks").Scan(&autocommit, &unique, &foreign)
	switch {
	case err != nil:
		return translate(err)
	case !autocommit:
		return fault.Invalidf("pool", "must have sessions with autocommit: Perdure's statements outside transactions would not be committed")
	case !unique || !foreign:
		return fault.Invalidf("pool", "must have sessions with unique_checks and foreign_key_checks")
	}
	return nil
}

// enter waits for the permission to use a connection of a caller's pool for a Write, which
// may wait for locks. leave returns it.
func (db *DB) enter(ctx context.Context, access sqldb.Access) (leave func(), err error) {
	if !db.borrowed || access != sqldb.Write {
		return func() {}, nil
	}
	select {
	case <-db.room:
		return func() { db.room <- struct{}{} }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("get connection: %w", ctx.Err())
	}
}

// setting is a variable of the session and the value that a transaction needs.
type setting struct{ name, value string }

// meanings are settings that change the meaning of statements. Perdure's statements need
// them, and statements of the application need its own.
func meanings() []setting {
	return []setting{
		{"sql_mode", sqlMode},
		{"time_zone", "'+00:00'"},
		{"collation_connection", collation},
		{"group_concat_max_len", fmt.Sprint(maxArray)},
	}
}

// limits are settings for the whole transaction.
func limits(maria bool, idle time.Duration) []setting {
	all := []setting{{lockWaitTimeout, lockWaitSeconds}}
	if maria {
		all = append(all, setting{"idle_transaction_timeout", fmt.Sprint(int(idle.Seconds()))})
	}
	return all
}

// borrowing returns the statement that remembers settings of a session in variables, and
// changes them.
func borrowing(settings []setting) string {
	keep, change := "", ""
	for _, s := range settings {
		keep += fmt.Sprintf("@perdure_%s = @@session.%s, ", s.name, s.name)
		change += fmt.Sprintf("%s = %s, ", s.name, s.value)
	}
	return "set " + keep + change[:len(change)-2]
}

// returning returns the statement that restores settings.
func returning(settings []setting) string {
	restore := ""
	for _, s := range settings {
		restore += fmt.Sprintf("%s = @perdure_%s, ", s.name, s.name)
	}
	return "set " + restore[:len(restore)-2]
}

// borrow prepares the session of a caller's connection for a transaction. The isolation
// level applies only to the next one.
func (t *tx) borrow(ctx context.Context, isolation string, idle time.Duration) error {
	meanings, limits := meanings(), limits(t.maria, idle)
	if len(t.fence) > 0 && !t.claim {
		limits = append(limits, setting{syncWait, "1"})
	}
	for _, query := range []string{borrowing(append(meanings, limits...)), "set transaction isolation level " + isolation} {
		if _, err := t.conn.ExecContext(ctx, query); err != nil {
			_ = t.conn.Raw(func(any) error { return driver.ErrBadConn }) // its settings are not known
			return err
		}
	}
	t.meanings, t.limits, t.shared = meanings, limits, true
	return nil
}

// giveBack restores the settings that change the meaning of statements, before a statement
// of the application.
func (t *tx) giveBack(ctx context.Context) error { return t.restore(ctx, &t.meanings) }

// Enter implements sqldb.Native. Statements of the application may lock rows.
func (t *tx) Enter(ctx context.Context) error {
	defer t.alive.Use()()
	t.fenced = t.fenced || len(t.fence) > 0
	return t.giveBack(ctx)
}

// takeBack changes the settings again, before a statement of the engine that follows
// statements of the application.
func (t *tx) takeBack(ctx context.Context) error {
	if !t.shared || len(t.meanings) > 0 {
		return nil
	}
	settings := meanings()
	if _, err := t.conn.ExecContext(ctx, borrowing(settings)); err != nil {
		return fmt.Errorf("change settings of the session: %w", translate(err))
	}
	t.meanings = settings
	return nil
}

// restore restores settings, once.
func (t *tx) restore(ctx context.Context, settings *[]setting) error {
	if len(*settings) == 0 {
		return nil
	}
	if _, err := t.conn.ExecContext(ctx, returning(*settings)); err != nil {
		return fmt.Errorf("restore settings of the session: %w", translate(err))
	}
	*settings = nil
	return nil
}

// Query implements sqldb.Runner. Queries are those of the application.
func (t *tx) Query(ctx context.Context, query string, args ...any) (sqldb.Rows, error) {
	if need, _ := needsFence(query, t.claim); need && len(t.fence) > 0 {
		t.fenced = true
	}
	done := t.alive.Use()
	if err := t.giveBack(ctx); err != nil {
		done()
		return nil, err
	}
	rows, err := t.StdRunner.Query(ctx, query, args...)
	if err != nil {
		done()
		return nil, err
	}
	return t.alive.Rows(rows, done), nil
}

// Driver implements sqldb.Native.
func (t *tx) Driver(ctx context.Context) (conn driver.Conn, err error) {
	if t.done {
		return nil, sqldb.ErrDone
	}
	defer t.alive.Use()()
	if err := t.giveBack(ctx); err != nil {
		return nil, err
	}
	err = t.conn.Raw(func(raw any) error {
		conn = raw.(driver.Conn)
		return nil
	})
	return conn, err
}

// State implements sqldb.Native. The client does not know it.
func (t *tx) State() sqldb.State {
	if t.done {
		return sqldb.Ended
	}
	return sqldb.Open
}
