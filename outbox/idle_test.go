package outbox_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/driver/mysql"
	"github.com/perdure/perdure/driver/postgres"
	"github.com/perdure/perdure/driver/sqlite"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/internal/wake"
	"github.com/perdure/perdure/outbox"
	"github.com/perdure/perdure/perduretest"
)

// counted counts the statements that reach a database, with BEGIN, COMMIT and ROLLBACK.
type counted struct {
	sqldb.DB
	n atomic.Int64
}

func (c *counted) Begin(ctx context.Context, access sqldb.Access) (sqldb.Tx, error) {
	c.n.Add(1)
	tx, err := c.DB.Begin(ctx, access)
	if err != nil {
		return nil, err
	}
	return &countedTx{Tx: tx, n: &c.n}, nil
}

type countedTx struct {
	sqldb.Tx
	n    *atomic.Int64
	once atomic.Bool
}

func (t *countedTx) Run(ctx context.Context, stmts ...sqldb.Stmt) error {
	t.n.Add(int64(len(stmts)))
	return t.Tx.Run(ctx, stmts...)
}

func (t *countedTx) Commit(ctx context.Context, last ...sqldb.Stmt) error {
	t.n.Add(int64(len(last)) + 1)
	t.once.Store(true)
	return t.Tx.Commit(ctx, last...)
}

func (t *countedTx) Rollback() {
	if !t.once.Swap(true) {
		t.n.Add(1)
	}
	t.Tx.Rollback()
}

// connect opens a database as an engine does.
func connect(t testing.TB, db enginetest.Database) sqldb.DB {
	t.Helper()
	var open sqldb.DB
	var err error
	switch db.Name {
	case enginetest.Postgres:
		open, err = postgres.Open(t.Context(), db.DSN)
	case enginetest.MySQL:
		open, err = mysql.Open(t.Context(), db.DSN)
	default:
		open, err = sqlite.Open(t.Context(), db.DSN)
	}
	enginetest.NoError(t, err)
	t.Cleanup(func() { enginetest.NoError(t, open.Close()) })
	return open
}

// idle returns an outbox whose statements are counted, on a clock of the test.
func idle(t *testing.T, db enginetest.Database) (*outbox.Outbox, *counted, *perduretest.Clock) {
	t.Helper()
	create(t, db.Open(t, options()), "a")
	c := &counted{DB: connect(t, db)}
	st, err := store.New(c)
	enginetest.NoError(t, err)
	remote, _ := c.DB.(wake.Remote)
	watcher, _ := c.DB.(wake.Watcher)
	hub := wake.New(remote, watcher)
	t.Cleanup(hub.Close)
	clock := perduretest.NewClock(time.Now())
	box := outbox.New(st, outbox.Host{Clock: clock, Hub: hub})
	t.Cleanup(box.Close)
	return box, c, clock
}

// minute moves the clock by one minute, in steps, and returns the number of statements.
func minute(t *testing.T, c *counted, clock *perduretest.Clock, timers int) int64 {
	t.Helper()
	settled := func() {
		last, since := int64(-1), time.Now()
		enginetest.Eventually(t, "it sleeps", func() bool {
			if n := c.n.Load(); n != last || clock.Timers() < timers {
				last, since = n, time.Now()
			}
			return time.Since(since) > 200*time.Millisecond
		})
	}
	settled()
	before := c.n.Load()
	for range 60 {
		clock.Advance(time.Second)
		enginetest.Eventually(t, "it sleeps", func() bool { return clock.Timers() >= timers })
	}
	settled()
	return c.n.Load() - before
}

// mostIdle is the largest number of statements that an idle consumer may run in a minute.
const mostIdle = 20

func (Conformance) AnIdleConsumerRunsFewStatements(t *testing.T, db enginetest.Database) {
	box, c, clock := idle(t, db)
	consumer, err := box.Register(t.Context(), "mirror", outbox.Stamp{})
	enginetest.NoError(t, err)
	p := handler(t, consumer, func(context.Context, outbox.Entry) error { return nil }, nil)
	d, err := dispatch.NewWaker(p, &dispatch.WakerOptions{Clock: clock})
	enginetest.NoError(t, err)
	d.Start()
	defer func() { enginetest.NoError(t, d.Stop(enginetest.Context(t))) }()
	enginetest.Eventually(t, "the entry is handled", func() bool { return position(t, consumer) == at(1) })
	n := minute(t, c, clock, 1)
	t.Logf("%d statements", n)
	if n > mostIdle || n == 0 {
		t.Errorf("an idle consumer ran %d statements in a minute, want 1 to %d", n, mostIdle)
	}
}

func (Conformance) AnIdleTailRunsFewStatements(t *testing.T, db enginetest.Database) {
	box, c, clock := idle(t, db)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	seen := make(chan struct{}, 1)
	go func() {
		defer close(ended)
		for range box.Tail(ctx, outbox.Stamp{}, nil) {
			seen <- struct{}{}
		}
	}()
	<-seen
	for range 60 { // on MySQL, the interval grows
		clock.Advance(time.Second)
		enginetest.Eventually(t, "it sleeps", func() bool { return clock.Timers() >= 1 })
	}
	n := minute(t, c, clock, 1)
	cancel()
	<-ended
	t.Logf("%d statements", n)
	if n > mostIdle || n == 0 {
		t.Errorf("an idle tail ran %d statements in a minute, want 1 to %d", n, mostIdle)
	}
}
