// Package outagetest has the tests of lost connections and of database outages that all
// kinds of work share. Only the death of a process counts as a crash.
package outagetest

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/internal/test/faultproxy"
	"github.com/perdure/perdure/perduretest"
)

// Kind describes a kind of work to the tests.
type Kind struct {
	// Schema and Table name the table of the work, or a view of it.
	Schema, Table string
	// Items is the table that has the column crashes, if Table is a view. Its claims are
	// in the table of leases.
	Items string
	// Left is the condition of the rows whose work is not finished.
	Left string
	// Claims is the table of claims, if they are stored separately from the work.
	Claims string
	// Open opens a process that is closed at the end of the test.
	Open func(t *testing.T, db enginetest.Database, o Options) Process
	// Transactional is true if the work runs in the transaction that writes its outcome.
	Transactional bool
	// Refuse has the statements by which a database refuses outcomes with an error that does
	// not indicate an outage. Accept has the statements that undo them.
	Refuse, Accept map[string]string
}

// Options configure a process.
type Options struct {
	// Clock is the clock of the process.
	Clock clock.Clock
	// Lease is the lease of its claims.
	Lease time.Duration
	// Run is the code of the work.
	Run func(ctx context.Context)
	// OnError receives background errors.
	OnError func(error)
}

// Process is a process that runs the work.
type Process interface {
	dispatch.Processor
	// Add records work that is due now.
	Add(ctx context.Context, id string) error
}

const (
	// lease outlasts every test: a claim is returned only by its own process.
	lease = time.Hour
	// commit is the text in a message that sends COMMIT: the end of a statement.
	commit = "commit\x00"
	// short is a lease that expires in tests.
	short = 30 * time.Second
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// subject is a kind on a database.
type subject struct {
	Kind
	t  *testing.T
	db enginetest.Database
}

func (k Kind) on(t *testing.T, db enginetest.Database) *subject {
	t.Helper()
	s := &subject{Kind: k, t: t, db: db}
	db.Open(t, nil) // creates the tables
	table := db.Table(k.Schema, cmp.Or(k.Items, k.Table))
	switch db.Name {
	case enginetest.Postgres:
		db.Exec(t, "create table public.crashes (n integer); grant insert on public.crashes to public")
		db.Exec(t, `create function public.crashed() returns trigger language plpgsql as $$ begin insert into public.crashes values (1); return new; end $$`)
		db.Exec(t, "create trigger crashed after update on "+table+" for each row when (new.crashes > old.crashes) execute function public.crashed()")
	case enginetest.SQLite:
		db.Exec(t, "create table crashes (n integer)")
		db.Exec(t, "create trigger crashed after update on "+table+" when new.crashes > old.crashes begin insert into crashes values (1); end")
	}
	return s
}

// crashes returns the number of crashes since the start. On MySQL, where a trigger requires
// a privilege, it returns the crashes of the existing rows.
func (s *subject) crashes() int64 {
	s.t.Helper()
	if s.db.Name == enginetest.MySQL {
		return s.db.Int(s.t, "select coalesce(sum(crashes), 0) from "+s.db.Table(s.Schema, s.Table))
	}
	return s.db.Int(s.t, "select count(*) from crashes")
}

// noCrashes fails the test if a crash was counted.
func (s *subject) noCrashes() {
	s.t.Helper()
	if n := s.crashes(); n != 0 {
		s.t.Errorf("%d crashes were counted, and no process was lost", n)
	}
}

// noClaims waits until no claims are left.
func (s *subject) noClaims() {
	s.t.Helper()
	if s.Claims != "" {
		enginetest.Eventually(s.t, "no claim is left", func() bool { return s.db.Rows(s.t, s.Schema, s.Claims) == 0 })
	}
}

// left returns the amount of unfinished work.
func (s *subject) left() int64 {
	s.t.Helper()
	return s.db.Int(s.t, "select count(*) from "+s.db.Table(s.Schema, s.Table)+" where "+s.Left)
}

// open opens a process whose errors are ignored.
func (s *subject) open(db enginetest.Database, o Options) Process {
	s.t.Helper()
	if o.OnError == nil {
		o.OnError = func(error) {}
	}
	if o.Run == nil {
		o.Run = func(context.Context) {}
	}
	return s.Open(s.t, db, o)
}

// add records work, and retries until that succeeds.
func (s *subject) add(p Process, id string) {
	s.t.Helper()
	enginetest.Eventually(s.t, "work is recorded", func() bool { return p.Add(enginetest.Context(s.t), id) == nil })
}

// finishes runs due work until all is finished.
func (s *subject) finishes(p Process) {
	s.t.Helper()
	enginetest.Eventually(s.t, "all work is done", func() bool {
		_, _ = p.Process(enginetest.Context(s.t))
		return s.left() == 0
	})
}

// recovers runs due work until a claim succeeds. The first claims use connections that the
// server has closed.
func (s *subject) recovers(p Process) {
	s.t.Helper()
	enginetest.Eventually(s.t, "a claim succeeds", func() bool {
		_, err := p.Process(enginetest.Context(s.t))
		return err == nil
	})
}

// dispatch runs a process in the background until the test ends.
func (s *subject) dispatch(p Process) {
	s.t.Helper()
	alarm, err := dispatch.NewWaker(p, &dispatch.WakerOptions{MaxSleep: 200 * time.Millisecond, OnError: func(error) {}})
	enginetest.NoError(s.t, err)
	alarm.Start()
	s.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = alarm.Stop(ctx)
	})
}

// proxied returns the database behind a proxy that can read the statements.
func (s *subject) proxied() (enginetest.Database, *faultproxy.Proxy) {
	s.t.Helper()
	u, err := url.Parse(s.db.DSN)
	enginetest.NoError(s.t, err)
	proxy, err := faultproxy.Start(net.JoinHostPort(u.Hostname(), u.Port()))
	enginetest.NoError(s.t, err)
	s.t.Cleanup(func() { _ = proxy.Close() })
	u.Host = proxy.Addr()
	q := u.Query()
	q.Set("default_query_exec_mode", "exec")
	u.RawQuery = q.Encode()
	return enginetest.Database{Name: s.db.Name, DSN: u.String()}, proxy
}

// gate blocks the first run until it is opened.
type gate struct {
	runs    atomic.Int64
	entered chan struct{}
	opened  chan struct{}
}

func newGate() *gate { return &gate{entered: make(chan struct{}), opened: make(chan struct{})} }

func (g *gate) pass(context.Context) {
	if g.runs.Add(1) == 1 {
		close(g.entered)
		<-g.opened
	}
}

func (g *gate) open() {
	select {
	case <-g.opened:
	default:
		close(g.opened)
	}
}

// begin runs due work in the background, and waits until the gate blocks it.
func (s *subject) begin(p Process, g *gate) (wait func()) {
	s.t.Helper()
	s.t.Cleanup(g.open) // before the processes are drained
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = p.Process(enginetest.Context(s.t))
	}()
	select {
	case <-g.entered:
	case <-enginetest.Context(s.t).Done():
		s.t.Fatal("the work does not run")
	}
	return func() { g.open(); <-done }
}

// outage calls fn while the database accepts no writes, after it has closed all
// connections.
func (s *subject) outage(fn func()) {
	s.t.Helper()
	admin := enginetest.Database{Name: s.db.Name, DSN: s.db.DSN + "&default_transaction_read_only=off"}
	name := s.db.Text(s.t, "select current_database()")
	set := func(value string) {
		admin.Exec(s.t, fmt.Sprintf("alter database %s set default_transaction_read_only = %s", name, value))
		admin.Exec(s.t, "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()")
	}
	set("on")
	fn()
	set("off")
}

// separated returns two processes, the second of which is a minute ahead, and work that the
// first one runs. The database was unavailable, and the second process has detected that.
func (s *subject) separated() (holder, back Process, ahead *perduretest.Clock, wait func()) {
	s.t.Helper()
	g := newGate()
	ahead = perduretest.NewClock(noon)
	holder = s.open(s.db, Options{Clock: perduretest.NewClock(noon), Lease: short, Run: g.pass})
	back = s.open(s.db, Options{Clock: ahead, Lease: short, Run: g.pass})
	s.add(holder, "held")
	wait = s.begin(holder, g)
	ahead.Advance(time.Minute)
	s.outage(func() {
		if _, err := back.Process(enginetest.Context(s.t)); err == nil {
			s.t.Error("a claim succeeded during the outage")
		}
	})
	s.recovers(back)
	if n := s.crashes(); n != 0 {
		s.t.Errorf("%d crashes were counted right after the outage", n)
	}
	return holder, back, ahead, wait
}
