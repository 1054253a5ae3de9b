package perdure

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/perdure/perdure/driver/mysql"
	"github.com/perdure/perdure/driver/postgres"
	"github.com/perdure/perdure/driver/sqlite"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/core"
	"github.com/perdure/perdure/internal/joined"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/table"
	"github.com/perdure/perdure/internal/tracing"
	"github.com/perdure/perdure/internal/unit"
	"github.com/perdure/perdure/internal/wake"
	"github.com/perdure/perdure/outbox"
	"github.com/perdure/perdure/schema"
)

// Engine is an open database to which durable work is committed. It is safe for
// concurrent use.
type Engine struct {
	options   Options
	db        sqldb.DB
	store     *store.Store
	tables    table.Builder
	committer *unit.Committer
	trouble   unit.Trouble
	outbox    *outbox.Outbox
	hub       *wake.Hub
	joins     *joined.Watcher // nil if the database cannot report the end of transactions
	tracer    *tracing.Tracer
	workers   core.Workers
	bounds    core.Bounds
	migrated  store.Migrated

	mu      sync.Mutex
	running sync.WaitGroup
	closed  bool

	// open has the goroutines with an open transaction, opened their number; see nested.
	open   sync.Map
	opened atomic.Int32
}

// Open opens the database that dsn names and brings its tables up to date:
//
//	sqlite:app.db                        a file, in this process
//	sqlite::memory:                      a private database that is gone on Close
//	postgres://user@host:5432/database   PostgreSQL 14 or later
//	mysql://user@host:3306/database      MySQL 8, MariaDB 10.6 or later
//
// Several processes may open the same database at the same time.
func Open(ctx context.Context, dsn string, options *Options) (*Engine, error) {
	return open(ctx, options, func(ctx context.Context) (sqldb.DB, error) { return connect(ctx, dsn) })
}

// minConnect is the minimum time limit for connecting to a database. It applies even if
// Options.Timeout is shorter.
const minConnect = 10 * time.Second

// open opens an engine on the database that connect returns. It returns an error if the
// server does not respond within the larger of Options.Timeout and minConnect.
func open(ctx context.Context, options *Options, connect func(ctx context.Context) (sqldb.DB, error)) (*Engine, error) {
	o := options.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	connecting, cancel := context.WithTimeout(ctx, max(o.Timeout, minConnect))
	defer cancel()
	db, err := connect(connecting)
	if err != nil {
		return nil, err
	}
	eng, err := newEngine(ctx, db, o)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return eng, nil
}

func connect(ctx context.Context, dsn string) (sqldb.DB, error) {
	scheme, _, _ := strings.Cut(dsn, ":")
	switch scheme {
	case "sqlite":
		return opened(sqlite.Open(ctx, dsn))
	case "postgres", "postgresql":
		return opened(postgres.Open(ctx, dsn))
	case "mysql", "mariadb":
		return opened(mysql.Open(ctx, dsn))
	}
	return nil, fault.Invalidf("database URL", "must start with sqlite:, postgres:// or mysql://")
}

// opened returns a nil interface if there is an error. A nil *DB in the interface would
// not be nil.
func opened[D sqldb.DB](db D, err error) (sqldb.DB, error) {
	if err != nil {
		return nil, err
	}
	return db, nil
}

func newEngine(ctx context.Context, db sqldb.DB, o Options) (*Engine, error) {
	st, err := store.New(db)
	if err != nil {
		return nil, err
	}
	st.UseKeys(o.Keys)
	if reason := db.Dialect().Relaxed; o.Outbox && reason != "" {
		return nil, fault.Invalidf("Options.Outbox", "is not supported: %s, so a crash could give the same stamp to two units", reason)
	}
	eng := &Engine{options: o, db: db, store: st, tables: table.Builder{Dialect: db.Dialect()}, tracer: tracing.New(o.TracerProvider)}
	if err := eng.prepare(ctx); err != nil {
		return nil, err
	}
	eng.committer = &unit.Committer{Writer: eng.writer(), Timeout: o.Timeout}
	eng.committer.Start()
	remote, _ := db.(wake.Remote)
	watcher, _ := db.(wake.Watcher)
	eng.hub = wake.New(remote, watcher)
	if o.NoListener {
		eng.hub.Deafen()
	}
	eng.outbox = outbox.New(st, outbox.Host{Clock: o.Clock, Hub: eng.hub, Workers: &eng.workers, Update: eng.updateWith, Yield: func(ctx context.Context, attempt int, err error) { unit.Yield(ctx, db, attempt, err) }})
	if o.OutboxRetention > 0 {
		eng.outbox.Retain(o.OutboxRetention)
	}
	if db, ok := db.(joined.Database); ok {
		eng.joins = joined.New(db)
	}
	return eng, nil
}

func (e *Engine) writer() unit.Writer {
	return unit.Writer{Store: e.store, Outbox: e.options.Outbox, Now: e.options.Clock.Now}
}

// Outbox returns the outbox of the database.
func (e *Engine) Outbox() *outbox.Outbox { return e.outbox }

// Schemas returns the schemas that the engine was opened with.
func (e *Engine) Schemas() []*schema.Schema {
	return append([]*schema.Schema(nil), e.options.Schemas...)
}

// Close refuses new work, waits for running transactions (each is bounded by
// Options.Timeout) and closes the database. It may be called more than once.
func (e *Engine) Close() error {
	e.mu.Lock()
	again := e.closed
	e.closed = true
	e.mu.Unlock()
	if again {
		return nil
	}
	e.outbox.Close()
	e.running.Wait()
	if e.joins != nil {
		e.joins.Close()
	}
	e.hub.Close()
	e.committer.Close()
	if err := e.db.Close(); err != nil {
		return fmt.Errorf("close database: %w", err)
	}
	return nil
}

// enter counts a started transaction, so that Close waits for it.
func (e *Engine) enter() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return fault.ErrClosed
	}
	e.running.Add(1)
	return nil
}
