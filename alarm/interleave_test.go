package alarm

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/internal/test/interleave"
)

// These tests run the statements of this package in every order that PostgreSQL's
// locks allow. Each pair is also run with a mutant of one statement, which must be
// caught: otherwise the test would prove nothing.

// mutation puts a text in the place of a part of the statements that contain a
// mark.
type mutation struct{ mark, part, text string }

func (m mutation) apply(text string) string {
	if m.mark == "" || !strings.Contains(text, m.mark) {
		return text
	}
	return strings.ReplaceAll(text, m.part, m.text)
}

// stage is a database on which statements are stepped.
type stage struct {
	url    string
	alarms *Alarms

	mu   sync.Mutex
	told map[string]int
}

// dawn is when the alarms of the fixtures were due.
var dawn = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{url: enginetest.New(t, enginetest.Postgres).DSN}
	eng, err := perdure.Open(t.Context(), s.url, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = eng.Close() })
	if s.alarms, err = New(eng, &Options{Notify: "https://example.org/"}); err != nil {
		t.Fatal(err)
	}
	return s
}

// tell notes what a session found out.
func (s *stage) tell(what string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told[what] = n
}

// session runs statements in a transaction, each a step, and then those of after,
// if there are any.
func (s *stage) session(name string, m mutation, stmts func() []sqldb.Stmt, after ...func() []sqldb.Stmt) interleave.Session {
	var bodies []body
	for _, stmts := range append([]func() []sqldb.Stmt{stmts}, after...) {
		bodies = append(bodies, func(ctx context.Context, tx sqldb.Runner) error { return tx.Run(ctx, stmts()...) })
	}
	return s.transactions(name, m, bodies...)
}

// body is the content of a transaction.
type body func(ctx context.Context, tx sqldb.Runner) error

// transactions runs one transaction after the other. A transaction that the database
// asks to retry is retried, as the engine does.
func (s *stage) transactions(name string, m mutation, bodies ...body) interleave.Session {
	return interleave.Session{Name: name, Run: func(ctx context.Context, c *interleave.Conn) (err error) {
		run := sqldb.StdRunner{Conn: c.SQL(), Dialect: s.alarms.rt.DB.Dialect()}
		for _, body := range bodies {
			for range 10 {
				if err = (&steps{StdRunner: run, conn: c, m: m}).transact(ctx, body); !sqldb.IsTransient(err) {
					break
				}
			}
			if err != nil {
				return err
			}
		}
		return nil
	}}
}

// steps is a transaction that begins with its first statement. Each statement is a
// step.
type steps struct {
	sqldb.StdRunner
	conn  *interleave.Conn
	m     mutation
	begun bool
}

func (s *steps) transact(ctx context.Context, body body) error {
	err := body(ctx, s)
	if err == nil && s.begun {
		err = s.Run(ctx, sqldb.Exec("commit"))
	}
	if err != nil {
		_, _ = s.conn.SQL().ExecContext(ctx, "rollback")
	}
	return err
}

// Run runs statements, each a step.
func (s *steps) Run(ctx context.Context, stmts ...sqldb.Stmt) error {
	for _, stmt := range stmts {
		if !s.begun {
			if _, err := s.conn.SQL().ExecContext(ctx, "begin isolation level read committed"); err != nil {
				return err
			}
			s.begun = true
		}
		if err := s.conn.Turn(ctx); err != nil {
			return err
		}
		stmt.SQL = s.m.apply(stmt.SQL)
		if err := s.StdRunner.Run(ctx, stmt); err != nil {
			return err
		}
	}
	return nil
}

// The sessions. Each tells under its name how many alarms it has taken, ended or
// returned.

func (s *stage) claim(name string, m mutation) interleave.Session {
	return s.session(name, m, func() []sqldb.Stmt {
		s.tell(name, 0)
		return []sqldb.Stmt{s.alarms.rt.Store.ClaimAlarms(store.AlarmClaim{
			Types: []string{"a"}, Worker: name, Token: name, Lease: time.Minute, Limit: 10,
		}, s.alarms.rt.Now(), func(store.Alarm) { s.tell(name, 1) })}
	})
}

func (s *stage) reap(name string, m mutation) interleave.Session {
	return s.transactions(name, m, func(ctx context.Context, tx sqldb.Runner) error {
		st, now := s.alarms.rt.Store, s.alarms.rt.Now()
		var expired []store.LostAlarm
		if err := tx.Run(ctx, st.ExpiredAlarms(10, now, func(l store.LostAlarm) { expired = append(expired, l) })); err != nil {
			return err
		}
		returned, err := st.ReturnAlarms(ctx, tx, expired, s.alarms.judge, lost, now)
		s.tell(name, len(returned))
		return err
	})
}

// settle records the outcome of the claim that the fixture has, and yields if that
// was dropped.
func (s *stage) settle(name string, m mutation, next time.Time) interleave.Session {
	row := store.Alarm{AlarmKey: store.AlarmKey{ID: "x"}, Type: "a", Generation: 1, Payload: "1", Policy: "{}", Occurs: dawn}
	f := &fire{row: row, plan: plan{scheduled: dawn, next: next}}
	var o *outcome
	record := func() []sqldb.Stmt {
		o = s.alarms.outcome(f, f.hold("t"), nil)
		s.tell(name, 1)
		return o.stmts
	}
	yield := func() []sqldb.Stmt {
		if !o.stale {
			return nil
		}
		stmt := s.alarms.rt.Store.YieldAlarm(f.hold("t"), new(bool))
		stmt.Done = func(rows int64) error {
			s.tell(name, int(rows))
			return nil
		}
		return []sqldb.Stmt{stmt}
	}
	return s.session(name, m, record, yield)
}

// fail records that the claim of the fixture came to an error.
func (s *stage) fail(name string, m mutation) interleave.Session {
	hold := store.AlarmHold{AlarmKey: store.AlarmKey{ID: "x"}, Token: "t", Generation: 1}
	return s.session(name, m, func() []sqldb.Stmt {
		stale := new(bool)
		stmts := s.alarms.rt.Store.FailAlarm(hold, "no", s.alarms.rt.Now(), stale)
		last := &stmts[len(stmts)-1]
		last.Done = func(int64) error {
			s.tell(name, map[bool]int{false: 1}[*stale])
			return nil
		}
		return stmts
	})
}

func (s *stage) schedule(name string, m mutation) interleave.Session {
	return s.session(name, m, func() []sqldb.Stmt {
		row := store.NewAlarm{AlarmKey: store.AlarmKey{ID: "x"}, Type: "a", Payload: "2", Policy: "{}", MaxAttempts: 1, Sequence: 2, Delay: time.Hour}
		return s.alarms.rt.Store.ScheduleAlarm(row, s.alarms.rt.Now())
	})
}

func (s *stage) cancel(name string, m mutation) interleave.Session {
	return s.session(name, m, func() []sqldb.Stmt {
		return []sqldb.Stmt{s.alarms.rt.Store.CancelAlarm(store.AlarmKey{ID: "x"}, func(string) {})}
	})
}

// The fixtures: an alarm that is due, and one whose claim has expired or not.

const due = `insert into perdure.alarms (actor_type, actor_id, kind, alarm_id, type, due_at, occurs_at, sequence, generation, payload, policy, max_attempts, created_at)
	values ('', '', 'custom', 'x', 'a', '2026-01-01Z', '2026-01-01Z', 1, 1, '1', '{}', 1, '2026-01-01Z')`

func held(until string) []string {
	return []string{due, "update perdure.alarms set status = 'processing', worker = 'w', token = 't', lease_expires_at = '" + until + "'"}
}

// state says what is stored: the alarm with its status and payload, how many
// notifications there are, and how many attempts, if any.
func state(ctx context.Context, db *sql.DB) (string, error) {
	var text string
	err := db.QueryRowContext(ctx, `select coalesce((select status || ' ' || payload || ' ' || crashes from perdure.alarms where alarm_id = 'x'), 'none')
		|| ', ' || (select count(*) from perdure.alarms where type = 'perdure.notice')
		|| (select case count(*) when 0 then '' else ', attempts: ' || count(*) end from perdure.attempts)`).Scan(&text)
	return text, err
}

// pair is two sessions that meet.
type pair struct {
	name     string
	fixture  []string
	sessions func(s *stage, m mutation) []interleave.Session
	// right says which state is right after what the sessions told.
	right   func(told map[string]int) string
	mutants map[string]mutation
}

func pairs() []pair {
	return []pair{
		{
			name: "two claims", fixture: []string{due},
			sessions: func(s *stage, m mutation) []interleave.Session {
				return []interleave.Session{s.claim("a", m), s.claim("b", m)}
			},
			right: func(told map[string]int) string {
				if told["a"]+told["b"] != 1 {
					return "claimed once"
				}
				return "processing 1 0, 0"
			},
			mutants: map[string]mutation{"no lock": {"as handled", "for update skip locked", ""}},
		},
		{
			name: "an outcome and the reaper", fixture: held("2025-12-31Z"),
			sessions: func(s *stage, m mutation) []interleave.Session {
				return []interleave.Session{s.settle("o", m, time.Time{}), s.reap("r", m)}
			},
			right: func(told map[string]int) string {
				if told["o"] == 1 {
					return "none, 1"
				}
				return "pending 1 1, 0"
			},
			mutants: map[string]mutation{
				"a notification of nothing": {"'custom', $1", "for update", ""},
				"no token":                  {"delete from perdure.alarms", "token = $4", "$4::text is not null"},
			},
		},
		{
			name: "an outcome and a new schedule", fixture: held("2026-01-02Z"),
			sessions: func(s *stage, m mutation) []interleave.Session {
				return []interleave.Session{s.settle("o", m, time.Time{}), s.schedule("s", m)}
			},
			right: func(told map[string]int) string {
				if told["o"] != 1 {
					return "an outcome or a yield"
				}
				return "pending 2 0, *"
			},
			mutants: map[string]mutation{
				"no generation": {"delete from perdure.alarms", "coalesce(generation, 0) = $5", "$5::bigint > 0"},
				"no yield":      {"crashes = 0, batch_limit = null, worker = null", "token = $4", "$4::text is null"},
			},
		},
		{
			name: "a next tick and a cancel", fixture: held("2026-01-02Z"),
			sessions: func(s *stage, m mutation) []interleave.Session {
				return []interleave.Session{s.settle("o", m, dawn.Add(time.Hour)), s.cancel("c", m)}
			},
			right: func(told map[string]int) string { return fmt.Sprintf("none, %d", told["o"]) },
			mutants: map[string]mutation{
				"a notification of nothing": {"'custom', $1", "for update", ""},
			},
		},
		{
			name: "a failure and the reaper", fixture: held("2025-12-31Z"),
			sessions: func(s *stage, m mutation) []interleave.Session {
				return []interleave.Session{s.fail("o", m), s.reap("r", m)}
			},
			right: func(told map[string]int) string {
				if told["o"] == 1 {
					return "failed 1 0, 0, attempts: 1"
				}
				return "pending 1 1, 0"
			},
			mutants: map[string]mutation{
				"an attempt of nothing": {"l.crashes + 1", "for update of l", ""},
				"a crash of nothing":    {"lease_expires_at <=", "for update skip locked", ""},
				"no token":              {"l.crashes + 1", "l.token = $6", "$6::text is not null"},
			},
		},
		{
			name: "a failure and a cancel", fixture: held("2026-01-02Z"),
			sessions: func(s *stage, m mutation) []interleave.Session {
				return []interleave.Session{s.fail("o", m), s.cancel("c", m)}
			},
			right:   func(map[string]int) string { return "none, 0" },
			mutants: map[string]mutation{"an attempt of nothing": {"l.crashes + 1", "for update of l", ""}},
		},
	}
}

func (p pair) test(s *stage, m mutation) interleave.Test {
	return interleave.Test{
		URL: s.url, Isolation: "READ COMMITTED", Sessions: p.sessions(s, m),
		Setup: func(ctx context.Context, db *sql.DB) error {
			s.told = map[string]int{}
			return interleave.Statements(append([]string{interleave.Clear("perdure.alarms", "perdure.attempts")}, p.fixture...)...)(ctx, db)
		},
		Check: func(ctx context.Context, db *sql.DB, o interleave.Outcome) error {
			got, err := state(ctx, db)
			for name, failed := range o.Errors {
				err = errors.Join(err, fmt.Errorf("session %s: %w", name, failed))
			}
			want := p.right(s.told)
			prefix, open := strings.CutSuffix(want, "*")
			if right := got == want || open && strings.HasPrefix(got, prefix); err == nil && !right {
				err = fmt.Errorf("stored is %q, want %q; told was %v", got, want, s.told)
			}
			return err
		},
	}
}

func TestInterleavings(t *testing.T) {
	t.Parallel()
	for _, p := range pairs() {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			interleave.Run(t, p.test(s, mutation{}))
			for name, mutant := range p.mutants {
				report, err := interleave.Explore(t.Context(), p.test(s, mutant))
				if err != nil || len(report.Failures) == 0 {
					t.Errorf("mutant %s is not caught in %d schedules: %v", name, report.Schedules, err)
					continue
				}
				var server *pgconn.PgError
				if errors.As(report.Failures[0].Err, &server) && strings.HasPrefix(server.Code, "42") {
					t.Errorf("mutant %s is not even SQL: %v", name, server)
				}
				t.Logf("mutant %s: caught by %s: %.200v", name, report.Failures[0].Schedule, report.Failures[0].Err)
			}
		})
	}
}
