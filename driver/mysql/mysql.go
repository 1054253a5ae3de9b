// Package mysql opens databases of MySQL 8 and of MariaDB 10.6 or later, also as nodes of a
// Galera cluster.
//
// Writers use READ COMMITTED, readers use REPEATABLE READ snapshots, each with a separate
// pool. Times are DATETIME(6) in UTC.
package mysql

import (
	"context"
	"crypto/rand"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/sqldb"
)

const (
	writers = 12
	groups  = 8
	readers = 8
	urgents = 2
	// lockWaitTimeout is the variable that bounds the wait for a row lock on the server.
	// The server continues to wait after the client has cancelled.
	lockWaitTimeout = "innodb_lock_wait_timeout"
	lockWaitSeconds = "2"
	sqlMode         = "'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION,ERROR_FOR_DIVISION_BY_ZERO,NO_ZERO_DATE,NO_ZERO_IN_DATE,PIPES_AS_CONCAT'"
	collation       = "utf8mb4_bin"
	// maxArray is the maximum size in bytes of a JSON array that is aggregated from rows.
	// MariaDB truncates longer arrays, by default after 1 MiB, and a claim aggregates all
	// claimed rows.
	maxArray = 64 << 20
)

// DB holds the pools of a MySQL or MariaDB database.
type DB struct {
	read, write, group, urgent *sql.DB
	dialect                    sqldb.Dialect
	// maria is true if the server is MariaDB.
	maria bool
	// room has a permission for each connection of a caller's pool that Writes may use.
	room chan struct{}
	// borrowed is true if all pools are the same pool of the caller.
	borrowed bool
	// id names this process to the others of a cluster.
	id  string
	ran sqldb.Counter
}

// Open connects to the database of a mysql:// or mariadb:// URL:
// mysql://user:password@host:3306/database. The parameters are those of
// go-sql-driver/mysql. Open overrides the parameters that affect correctness.
func Open(ctx context.Context, dsn string) (*DB, error) {
	config, err := parse(dsn)
	if err != nil {
		return nil, err
	}
	db := &DB{}
	first := pool(config, "read committed", 1, 0)
	defer first.Close()
	if err := db.check(ctx, first); err != nil {
		return nil, fmt.Errorf("open mysql database: %w", err)
	}
	causal := config
	if _, chosen := config.Params[syncWait]; db.dialect.Cluster && !chosen {
		causal = config.Clone()
		causal.Params[syncWait] = "1"
	}
	db.write = pool(causal, "read committed", writers, sqldb.ClientSilence)
	db.group = pool(causal, "read committed", groups, sqldb.ClientSilence)
	db.read = pool(causal, "repeatable read", readers, 0)
	db.urgent = pool(config, "read committed", urgents, sqldb.ClientSilence)
	return db, nil
}

func parse(dsn string) (*mysql.Config, error) {
	u, err := url.Parse(dsn)
	if err != nil {
		return nil, fault.Invalidf("database URL", "is malformed") // the error would quote the password
	}
	name := strings.TrimPrefix(u.Path, "/")
	if u.Host == "" || name == "" {
		return nil, fault.Invalidf("database URL", "must have a host and a database, such as mysql://user@host:3306/database")
	}
	config, err := mysql.ParseDSN("/" + name + "?" + u.RawQuery)
	if err != nil {
		return nil, fault.Invalidf("database URL", "must not have a parameter that the driver does not support")
	}
	config.Net, config.Addr = "tcp", u.Host
	if u.Port() == "" {
		config.Addr = net.JoinHostPort(u.Hostname(), "3306")
	}
	config.User = u.User.Username()
	config.Passwd, _ = u.User.Password()
	return force(config), nil
}

// force sets the parameters that affect correctness, regardless of the URL.
func force(config *mysql.Config) *mysql.Config {
	config.ParseTime = true
	config.Loc = time.UTC
	config.InterpolateParams = true
	config.ClientFoundRows = true
	config.MultiStatements = false
	config.MaxAllowedPacket = 0 // use the server's limit: the server closes a connection that sends more
	config.Collation = collation
	config.Logger = &mysql.NopLogger{} // everything that it logs is also returned as an error
	if config.Timeout == 0 {
		config.Timeout = 10 * time.Second
	}
	params := map[string]string{
		"time_zone": "'+00:00'",
		"sql_mode":  sqlMode,

		lockWaitTimeout:        lockWaitSeconds,
		"group_concat_max_len": fmt.Sprint(maxArray),
	}
	if config.Params == nil {
		config.Params = map[string]string{}
	}
	for key, value := range params {
		config.Params[key] = value
	}
	return config
}

// pool opens a pool. MariaDB ends transactions that are idle for the time idle; 0 means no
// limit.
func pool(config *mysql.Config, isolation string, size int, idle time.Duration) *sql.DB {
	db := sql.OpenDB(connector{config: config, isolation: isolation, idle: idle})
	db.SetMaxOpenConns(size)
	db.SetMaxIdleConns(size)
	db.SetConnMaxIdleTime(5 * time.Minute)
	return db
}

// connector sets the isolation level once for each connection. It uses a statement,
// because the name of the variable differs between MySQL and MariaDB.
type connector struct {
	config    *mysql.Config
	isolation string
	idle      time.Duration
}

// Connect implements driver.Connector.
func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	inner, err := mysql.NewConnector(c.config)
	if err != nil {
		return nil, err
	}
	conn, err := inner.Connect(timeless{ctx})
	if err != nil {
		return nil, err
	}
	execer := conn.(driver.ExecerContext)
	for _, query := range []string{"set session transaction isolation level " + c.isolation, idleLimit(c.idle)} {
		if _, err := execer.ExecContext(ctx, query, nil); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
	}
	return conn, nil
}

// idleLimit returns the statement that makes MariaDB end transactions of the session that
// are idle for a time; 0 means no limit. MySQL ignores the comment.
func idleLimit(idle time.Duration) string {
	return fmt.Sprintf("set @perdure_idle = 0 /*M!100300 , session idle_transaction_timeout = %d */", int(idle.Seconds()))
}

// timeless is a context that hides its deadline, but is still cancelled at that time. A
// dialer compares a deadline with the system clock, and the deadline may be of another
// clock.
type timeless struct{ context.Context }

func (timeless) Deadline() (time.Time, bool) { return time.Time{}, false }

// Driver implements driver.Connector.
func (c connector) Driver() driver.Driver { return mysql.MySQLDriver{} }

// check returns an error if the server lacks SKIP LOCKED, or if its commit does not make
// changes visible before it releases their locks. It also determines the name of the
// exact collation, and whether the server is a node of a cluster.
func (db *DB) check(ctx context.Context, conn *sql.DB) error {
	var version, engine string
	if err := conn.QueryRowContext(ctx, "select version(), @@default_storage_engine").Scan(&version, &engine); err != nil {
		return translate(err)
	}
	var major, minor int
	if _, err := fmt.Sscanf(version, "%d.%d", &major, &minor); err != nil {
		return fmt.Errorf("parse server version %q: %w", version, err)
	}
	cluster, err := inCluster(ctx, conn)
	if err != nil {
		return err
	}
	db.id, db.dialect = rand.Text(), dialect
	if db.dialect.Cluster = cluster; cluster {
		db.dialect.Translate = certified
	}
	if db.maria = strings.Contains(version, "MariaDB"); db.maria {
		db.dialect.Collation = "utf8mb4_nopad_bin"
		if major*100+minor < 1006 {
			return fmt.Errorf("MariaDB must be 10.6 or later, got %s", version)
		}
		return nil
	}
	db.dialect.Collation = "utf8mb4_0900_bin"
	if major < 8 {
		return fmt.Errorf("MySQL must be 8.0 or later, got %s", version)
	}
	return nil
}

// Dialect implements sqldb.DB.
func (db *DB) Dialect() sqldb.Dialect { return db.dialect }

// Pools implements sqldb.Pooled.
func (db *DB) Pools() []sqldb.Pool {
	if db.borrowed {
		return []sqldb.Pool{sqldb.StdPool("main", db.write)}
	}
	return []sqldb.Pool{sqldb.StdPool("write", db.write), sqldb.StdPool("group", db.group), sqldb.StdPool("read", db.read), sqldb.StdPool("urgent", db.urgent)}
}

// Ran implements sqldb.Counted.
func (db *DB) Ran() sqldb.Counts { return db.ran.Counts() }

// Begin implements sqldb.DB.
func (db *DB) Begin(ctx context.Context, access sqldb.Access) (sqldb.Tx, error) {
	pool, begin, isolation, idle := db.write, "start transaction", "read committed", sqldb.ClientSilence
	switch access {
	case sqldb.Group:
		pool = db.group
	case sqldb.Urgent, sqldb.Claim:
		pool = db.urgent
	case sqldb.Read, sqldb.Look:
		pool, begin, isolation, idle = db.read, "start transaction with consistent snapshot, read only", "repeatable read", 0
	}
	room, err := db.enter(ctx, access)
	if err != nil {
		return nil, err
	}
	conn, err := pool.Conn(timeless{ctx})
	if err != nil {
		room()
		return nil, fmt.Errorf("get connection: %w", cut(ctx, translate(err)))
	}
	t := &tx{StdRunner: sqldb.StdRunner{Conn: conn, Dialect: db.dialect, Ran: &db.ran}, conn: conn, maria: db.maria, room: room, fence: db.fence(), claim: access == sqldb.Claim, guard: guard{written: map[uint32]bool{}}}
	if db.borrowed {
		err = t.borrow(ctx, isolation, idle)
	}
	if err == nil {
		_, err = conn.ExecContext(ctx, begin)
	}
	if err != nil {
		t.end()
		return nil, cut(ctx, db.dialect.Translate(err))
	}
	if access == sqldb.Write {
		t.alive.Start(func() { _ = conn.PingContext(ctx) }) // an error is found by the next statement
	}
	return t, nil
}

// Close implements sqldb.DB. Closing a pool fails only if the server cannot be notified
// of the end of a connection. Such a connection is already closed.
func (db *DB) Close() error {
	if db.borrowed {
		return nil
	}
	for _, pool := range []*sql.DB{db.read, db.write, db.group, db.urgent} {
		_ = pool.Close()
	}
	return nil
}
