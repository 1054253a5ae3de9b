package engine_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/hook"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/internal/test/testdb"
	"github.com/perdure/perdure/schema"
)

// pooled is an engine on a pool of the application, and the application's view of it.
type pooled struct {
	eng *perdure.Engine
	// settings returns the settings of each connection of the pool.
	settings func(t testing.TB) []string
	// alive returns an error if the pool is closed.
	alive func() error
}

const smallPool = 2

// settingsQueries return everything that a session could keep.
var settingsQueries = map[string]string{
	enginetest.Postgres: "select coalesce(string_agg(name || '=' || setting, ' ' order by name), '') from pg_settings where source = 'session'",
	enginetest.MySQL:    "select concat_ws(' ', @@sql_mode, @@time_zone, @@collation_connection, @@innodb_lock_wait_timeout, @@group_concat_max_len, @@tx_isolation, @@idle_transaction_timeout)",
	enginetest.SQLite:   "select (select journal_mode from pragma_journal_mode) || (select synchronous from pragma_synchronous) || (select timeout from pragma_busy_timeout)",
}

// openPooled opens an engine on a pool of two connections.
func openPooled(t *testing.T, db enginetest.Database, pgx bool, options *perdure.Options) pooled {
	t.Helper()
	if pgx {
		pool := db.Pgx(t, func(c *pgxpool.Config) { c.MaxConns = smallPool })
		eng, err := perdure.OpenPgx(t.Context(), pool, options)
		enginetest.NoError(t, err)
		return pooled{eng: eng, alive: func() error { return pool.Ping(t.Context()) }, settings: func(t testing.TB) (all []string) {
			t.Helper()
			for range smallPool {
				conn, err := pool.Acquire(t.Context())
				enginetest.NoError(t, err)
				defer conn.Release()
				var text string
				enginetest.NoError(t, conn.QueryRow(t.Context(), settingsQueries[db.Name]).Scan(&text))
				all = append(all, text)
			}
			return all
		}}
	}
	pool := db.SQL(t)
	pool.SetMaxOpenConns(smallPool)
	pool.SetMaxIdleConns(smallPool)
	eng, err := perdure.OpenSQL(t.Context(), pool, options)
	enginetest.NoError(t, err)
	return pooled{eng: eng, alive: func() error { return pool.PingContext(t.Context()) }, settings: func(t testing.TB) []string {
		t.Helper()
		return sessions(t, pool, settingsQueries[db.Name])
	}}
}

func sessions(t testing.TB, pool *sql.DB, query string) (all []string) {
	t.Helper()
	for range smallPool {
		conn, err := pool.Conn(t.Context())
		enginetest.NoError(t, err)
		defer conn.Close()
		var text string
		enginetest.NoError(t, conn.QueryRowContext(t.Context(), query).Scan(&text))
		all = append(all, text)
	}
	return all
}

// Two connections are enough for units, claims, heartbeats and outcomes at the same time,
// and they are returned as they were.
func TestASmallPoolIsEnoughAndUnchanged(t *testing.T) {
	t.Parallel()
	for _, pgx := range []bool{true, false} {
		t.Run(fmt.Sprintf("Pgx=%v", pgx), func(t *testing.T) {
			enginetest.Each(t, func(t *testing.T, db enginetest.Database) {
				if pgx && db.Name != enginetest.Postgres {
					t.Skip("pgx is for PostgreSQL")
				}
				smallPoolWorks(t, db, pgx)
			})
		})
	}
}

func smallPoolWorks(t *testing.T, db enginetest.Database, pgx bool) {
	t.Helper()
	p := openPooled(t, db, pgx, withOutbox())
	db.Exec(t, "create table notes (id integer primary key, note varchar(20))")
	before := p.settings(t)
	hooks, err := hook.New(p.eng, "pool", nil)
	enginetest.NoError(t, err)
	var ran atomic.Int64
	work, err := hook.Define(hooks, "work", func(ctx context.Context, id int) error {
		ran.Add(1)
		return perdure.CommitWith(ctx, func(tx *perdure.Tx) error { return note(db, own(t, tx), id) })
	}, nil)
	enginetest.NoError(t, err)
	d, err := dispatch.NewPoller(hooks, nil)
	enginetest.NoError(t, err)
	d.Start()
	const units = 24
	results := make(chan error, units)
	for i := range units {
		go func() {
			results <- p.eng.Update(enginetest.Context(t), func(tx *perdure.Tx) error {
				_, _ = tx.Create(users, schema.Values{"id": fmt.Sprint(i), "name": fmt.Sprint(i)})
				if i%2 == 0 { // in an open transaction
					countUsers(t, db, own(t, tx))
				}
				_, err := work.TriggerIn(tx, i, nil)
				return err
			})
		}()
	}
	for range units {
		enginetest.NoError(t, <-results)
	}
	enginetest.Eventually(t, "all hooks have run", func() bool { return notes(t, db) == units })
	enginetest.NoError(t, d.Stop(enginetest.Context(t)))
	sound(t, p.eng)
	enginetest.NoError(t, p.eng.Close())
	enginetest.NoError(t, p.alive())
	for i, after := range p.settings(t) {
		if after != before[i%len(before)] {
			t.Errorf("connection %d had %q, has %q", i, before[i%len(before)], after)
		}
	}
}

func TestAPoolThatIsTooSmallIsRefused(t *testing.T) {
	t.Parallel()
	for _, name := range []string{enginetest.Postgres, enginetest.MySQL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := enginetest.New(t, name)
			pool := db.SQL(t)
			pool.SetMaxOpenConns(1)
			_, err := perdure.OpenSQL(t.Context(), pool, nil)
			enginetest.As[*fault.Invalid](t, err)
			if name == enginetest.Postgres {
				_, err := perdure.OpenPgx(t.Context(), db.Pgx(t, func(c *pgxpool.Config) { c.MaxConns = 1 }), nil)
				enginetest.As[*fault.Invalid](t, err)
			}
		})
	}
	_, err := perdure.OpenPgx(t.Context(), nil, nil)
	enginetest.As[*fault.Invalid](t, err)
	_, err = perdure.OpenSQL(t.Context(), nil, nil)
	enginetest.As[*fault.Invalid](t, err)
}

func TestOneConnectionIsEnoughForSQLite(t *testing.T) {
	t.Parallel()
	db := enginetest.New(t, enginetest.SQLite)
	pool := db.SQL(t)
	pool.SetMaxOpenConns(1)
	eng, err := perdure.OpenSQL(t.Context(), pool, withOutbox())
	enginetest.NoError(t, err)
	createUser(t, eng, "ann")
	sound(t, eng)
	enginetest.NoError(t, eng.Close())
}

// Settings of SQLite that break a guarantee are named, and not changed.
func TestSQLiteWithWeakSettingsIsRefused(t *testing.T) {
	t.Parallel()
	for query, refused := range map[string]bool{
		"_pragma=foreign_keys(1)":                              false,
		"_pragma=foreign_keys(0)":                              true,
		"_pragma=foreign_keys(1)&_pragma=synchronous(normal)":  true,
		"_pragma=foreign_keys(1)&_pragma=journal_mode(delete)": true,
	} {
		db := enginetest.New(t, enginetest.SQLite)
		pool, err := sql.Open("sqlite", "file:"+db.DSN[len("sqlite:"):]+"?"+query)
		enginetest.NoError(t, err)
		eng, err := perdure.OpenSQL(t.Context(), pool, nil)
		if invalid := (*fault.Invalid)(nil); errors.As(err, &invalid) != refused {
			t.Errorf("%s: %v", query, err)
		}
		if eng != nil {
			enginetest.NoError(t, eng.Close())
		}
		enginetest.NoError(t, pool.Close())
	}
}

// Without a listener, the engine has no connection of its own.
func TestWithoutAListenerNothingIsOpened(t *testing.T) {
	t.Parallel()
	for _, listens := range []bool{true, false} {
		db := enginetest.New(t, enginetest.Postgres)
		p := openPooled(t, db, true, &perdure.Options{NoListener: !listens})
		hooks, err := hook.New(p.eng, "pool", nil)
		enginetest.NoError(t, err)
		_, err = hook.Define(hooks, "work", func(context.Context, int) error { return nil }, nil)
		enginetest.NoError(t, err)
		d, err := dispatch.NewPoller(hooks, nil)
		enginetest.NoError(t, err)
		d.Start()
		listeners := func() int64 {
			return db.Int(t, "select count(*) from pg_stat_activity where datname = current_database() and query = 'listen perdure'")
		}
		if listens {
			enginetest.Eventually(t, "the engine listens", func() bool { return listeners() == 1 })
		} else if n := listeners(); n != 0 {
			t.Errorf("%d connections listen", n)
		}
		enginetest.NoError(t, d.Stop(enginetest.Context(t)))
		enginetest.NoError(t, p.eng.Close())
	}
}

// A transaction pooler in front of the server changes nothing, whatever the protocol is.
func TestAPoolWorksThroughAPooler(t *testing.T) {
	t.Parallel()
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeSimpleProtocol, pgx.QueryExecModeExec} {
		db := enginetest.New(t, enginetest.Postgres)
		pooled := enginetest.Database{Name: db.Name, DSN: testdb.Pooler(t, db.DSN, testdb.PoolTransactions)}
		pool := pooled.Pgx(t, func(c *pgxpool.Config) { c.ConnConfig.DefaultQueryExecMode = mode })
		options := withOutbox()
		options.NoListener = true
		eng, err := perdure.OpenPgx(t.Context(), pool, options)
		enginetest.NoError(t, err)
		createUser(t, eng, "ann")
		update(t, eng, func(tx *perdure.Tx) error {
			own, err := tx.Pgx()
			if err != nil {
				return err
			}
			if _, err := own.Exec(t.Context(), "update blog.users set points = $1 where id = $2", 5, "ann"); err != nil {
				return err
			}
			_, err = tx.Create(posts, schema.Values{"author": "ann"})
			return err
		})
		if points := get(t, eng, users, "ann").Int("points"); points != 5 {
			t.Errorf("%s: there are %d points", mode, points)
		}
		enginetest.NoError(t, eng.Close())
	}
}
