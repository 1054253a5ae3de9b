package actor

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/internal/test/interleave"
	"github.com/perdure/perdure/internal/test/testdb"
	"github.com/perdure/perdure/perduretest"
	"github.com/perdure/perdure/statechart"
)

// These tests run the package's own code, statement by statement, in every order
// that PostgreSQL's locks allow. Each pair is also run without the lock of the
// actor's row, which must be caught: otherwise the test would prove nothing.

// racer has a delay, an event that cancels it, and one that counts.
const racer = `{
	"id": "r", "initial": "a", "context": {"n": 0},
	"states": {"a": {"after": {"1000": "fired"}, "on": {"OUT": "b"}}, "b": {}, "fired": {}},
	"on": {"ADD": {"actions": {"type": "xstate.assign", "params": {"assignment": {"n": {"$expr": "context.n + 1"}}}}}}
}`

var racing = Ref{Type: "r", ID: "1"}

// start is when the actor of the fixture was spawned.
var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// fixtureTables are what a schedule begins with.
var fixtureTables = []string{"actors", "actor_log", "timers"}

// stage is a database with one actor that has a delay.
type stage struct {
	url string
	eng *perdure.Engine
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{url: enginetest.New(t, enginetest.Postgres).DSN}
	eng, err := perdure.Open(t.Context(), s.url, &perdure.Options{Clock: perduretest.NewClock(start)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = eng.Close() })
	s.eng = eng
	actors, err := s.actors(start)
	if err == nil {
		_, err = actors.Spawn(t.Context(), racing, Caller{Kind: System}, nil, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	db, err := testdb.Open(s.url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, table := range fixtureTables {
		if _, err := db.ExecContext(t.Context(), "create table fixture_"+table+" as table perdure."+table); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// actors returns a process whose clock shows a time. It runs no transaction of
// its own.
func (s *stage) actors(now time.Time) (*Actors, error) {
	a, err := New(s.eng, nil)
	if err != nil {
		return nil, err
	}
	rt := *a.rt
	rt.Clock = perduretest.NewClock(now)
	a.rt = &rt
	return a, a.Register("r", []byte(racer), nil)
}

func setup(ctx context.Context, db *sql.DB) error {
	var stmts []string
	for _, table := range append(fixtureTables, "checkpoints", "actor_keys", "firing") {
		stmts = append(stmts, interleave.Clear("perdure."+table))
	}
	for _, table := range fixtureTables {
		stmts = append(stmts, "insert into perdure."+table+" table fixture_"+table)
	}
	return interleave.Statements(stmts...)(ctx, db)
}

// steps is a transaction whose statements are steps of a schedule.
type steps struct {
	ctx     context.Context
	conn    *interleave.Conn
	dialect sqldb.Dialect
	mutate  func(string) string
	pending []sqldb.Stmt
}

func (s *steps) Context() context.Context { return s.ctx }

func (s *steps) Attach(_ func(), stmts ...sqldb.Stmt) error {
	s.pending = append(s.pending, stmts...)
	return nil
}

func (s *steps) Flush() error {
	run := sqldb.StdRunner{Conn: s.conn.SQL(), Dialect: s.dialect}
	for _, stmt := range s.pending {
		stmt.SQL = s.mutate(stmt.SQL)
		if err := s.conn.TurnFor(s.ctx, stmt.SQL); err != nil {
			return err
		}
		if err := run.Run(s.ctx, stmt); err != nil {
			return err
		}
	}
	s.pending = nil
	return nil
}

// session runs a batch in a process of its own, with its own clock.
func (s *stage) session(name string, after time.Duration, mutate func(string) string, do func(*batch) error) interleave.Session {
	return interleave.Session{Name: name, Run: func(ctx context.Context, c *interleave.Conn) error {
		a, err := s.actors(start.Add(after))
		if err != nil {
			return err
		}
		for range 5 { // what the database asks to try again is tried again
			if err = s.try(ctx, a, c, mutate, do); !sqldb.IsTransient(err) {
				return err
			}
		}
		return err
	}}
}

func (s *stage) try(ctx context.Context, a *Actors, c *interleave.Conn, mutate func(string) string, do func(*batch) error) error {
	if _, err := c.SQL().ExecContext(ctx, "begin isolation level read committed"); err != nil {
		return err
	}
	tx := &steps{ctx: ctx, conn: c, dialect: host.Of(s.eng).DB.Dialect(), mutate: mutate}
	err := do(a.newBatch(tx))
	if err == nil {
		err = tx.Attach(nil, sqldb.Exec("commit"))
	}
	if err == nil {
		err = tx.Flush()
	}
	if err != nil {
		c.Also("rollback")
		_, _ = c.SQL().ExecContext(context.WithoutCancel(ctx), "rollback")
	}
	return err
}

// fires locks, records and fires due timers in one transaction.
func fires(b *batch) error {
	b.pass = &pass{Firing: store.Firing{Token: b.actors.rt.NewID(), Worker: b.actors.id}}
	return b.fireHeld([]string{"r"}, func() {})
}

func sends(event string) func(*batch) error {
	return func(b *batch) error {
		s, err := b.actors.newSend(b.tx.Context(), racing, Caller{Kind: Client, ID: "c"}, statechart.Event{Type: event}, nil)
		if err != nil {
			return err
		}
		j := s.job()
		return errors.Join(b.do([]*job{j}), j.err)
	}
}

// check wants one of the ends of the actor, and that its rows belong together.
func check(ends ...string) func(context.Context, *sql.DB, interleave.Outcome) error {
	return func(ctx context.Context, db *sql.DB, o interleave.Outcome) error {
		for name, err := range o.Errors {
			return fmt.Errorf("session %s: %w", name, err)
		}
		var end string
		err := db.QueryRowContext(ctx, `
			select (a.snapshot->>'value') || ' ' || (a.snapshot->'context'->>'n') || ' after ' ||
				(select string_agg(kind, ' ' order by sequence) from perdure.actor_log where sequence > 1)
				|| case when a.sequence = a.snapshot_sequence and a.sequence = (select max(sequence) from perdure.actor_log)
					and a.checksum = (select checksum from perdure.actor_log order by sequence desc limit 1)
					then '' else ', torn' end
				|| case when exists (select 1 from perdure.timers) then ', pending' else '' end
			from perdure.actors a`).Scan(&end)
		if err != nil {
			return err
		}
		for _, want := range ends {
			if end == want {
				return nil
			}
		}
		return fmt.Errorf("the actor is %s", end)
	}
}

func unlocked(text string) string {
	for _, lock := range []string{"for no key update of a skip locked", "for update of al skip locked"} {
		text = strings.ReplaceAll(text, lock, "")
	}
	return strings.ReplaceAll(text, "for no key update of a", "")
}

func same(text string) string { return text }

func TestInterleavings(t *testing.T) {
	t.Parallel()
	const soon, due = 900 * time.Millisecond, time.Second
	for name, p := range map[string]struct {
		sessions func(s *stage, mutate func(string) string) []interleave.Session
		ends     []string
	}{
		// The one who sends OUT does not yet see that the delay is due.
		"fire and cancel": {
			func(s *stage, m func(string) string) []interleave.Session {
				return []interleave.Session{s.session("f", due, m, fires), s.session("c", soon, m, sends("OUT"))}
			},
			[]string{"fired 0 after timer event", "b 0 after event"},
		},
		"fire and event": {
			func(s *stage, m func(string) string) []interleave.Session {
				return []interleave.Session{s.session("f", due, m, fires), s.session("e", soon, m, sends("ADD"))}
			},
			// Whoever finds the actor locked leaves the delay for the next look.
			[]string{"fired 1 after timer event", "fired 1 after event timer", "a 1 after event, pending"},
		},
		"fire and an event that finds the delay overdue": {
			func(s *stage, m func(string) string) []interleave.Session {
				return []interleave.Session{s.session("f", due, m, fires), s.session("e", due, m, sends("ADD"))}
			},
			[]string{"fired 1 after timer event"},
		},
		"fire and fire": {
			func(s *stage, m func(string) string) []interleave.Session {
				return []interleave.Session{s.session("f", due, m, fires), s.session("g", due, m, fires)}
			},
			[]string{"fired 0 after timer"},
		},
		"event and event": {
			func(s *stage, m func(string) string) []interleave.Session {
				return []interleave.Session{s.session("a", due, m, sends("ADD")), s.session("b", due, m, sends("ADD"))}
			},
			[]string{"fired 2 after timer event event"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			test := interleave.Test{URL: s.url, Setup: setup, Sessions: p.sessions(s, same), Check: check(p.ends...)}
			interleave.Run(t, test)
			test.Sessions = p.sessions(s, unlocked)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			caught := false
			test.Check = func(ctx context.Context, db *sql.DB, o interleave.Outcome) error {
				err := check(p.ends...)(ctx, db, o)
				if err != nil {
					caught = true
					cancel() // one is enough
				}
				return err
			}
			_, _ = interleave.Explore(ctx, test)
			if !caught {
				t.Error("without its locks the pair passes too")
			}
		})
	}
}
