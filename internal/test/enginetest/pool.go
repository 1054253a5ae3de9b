package enginetest

import (
	"database/sql"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/test/testdb"
)

// ownPool makes Open use a pool of the test: all suites can run that way.
var ownPool = os.Getenv("PERDURE_TEST_POOL") != ""

// OpenPool opens an engine on a pool of the test, which is closed after it: of pgx on
// PostgreSQL, of database/sql on other databases.
func (db Database) OpenPool(t testing.TB, options *perdure.Options) *perdure.Engine {
	t.Helper()
	var eng *perdure.Engine
	var err error
	if db.Name == Postgres {
		eng, err = perdure.OpenPgx(Context(t), db.Pgx(t, nil), options)
	} else {
		eng, err = perdure.OpenSQL(Context(t), db.pool(t), options)
	}
	return opened(t, db, eng, err)
}

// pool returns a pool with the settings that the guide recommends.
func (db Database) pool(t testing.TB) *sql.DB {
	t.Helper()
	pool, err := sql.Open("sqlite", "file:"+strings.TrimPrefix(db.DSN, "sqlite:")+
		"?_pragma=busy_timeout(10000)&_pragma=foreign_keys(1)&_pragma=journal_mode(wal)&_pragma=synchronous(full)&_txlock=immediate")
	if db.Name == MySQL {
		pool, err = testdb.OpenInterpolating(db.DSN)
	}
	NoError(t, err)
	t.Cleanup(func() { pool.Close() })
	return pool
}

// OpenSQL opens an engine on a pool of database/sql, which is closed after it.
func (db Database) OpenSQL(t testing.TB, options *perdure.Options) *perdure.Engine {
	t.Helper()
	eng, err := perdure.OpenSQL(Context(t), db.SQL(t), options)
	return opened(t, db, eng, err)
}

// Pgx returns a pool of pgx that is closed when the test ends. change may change its
// configuration.
func (db Database) Pgx(t testing.TB, change func(*pgxpool.Config)) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(db.DSN)
	NoError(t, err)
	config.MaxConns = 8
	if change != nil {
		change(config)
	}
	pool, err := pgxpool.NewWithConfig(Context(t), config)
	NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}

// opened returns an engine that is closed when the test ends.
func opened(t testing.TB, db Database, eng *perdure.Engine, err error) *perdure.Engine {
	t.Helper()
	if err != nil {
		t.Fatalf("open %s: %v", db.Name, err)
	}
	t.Cleanup(func() {
		if err := eng.Close(); err != nil {
			t.Errorf("close engine: %v", err)
		}
	})
	return eng
}
