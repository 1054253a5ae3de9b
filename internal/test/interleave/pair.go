package interleave

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// Mutation changes the text of a statement, and thereby breaks the code of a session.
type Mutation func(text string) string

// Instead returns a mutation that replaces a part of the statements that contain all the
// marks.
func Instead(part, text string, marks ...string) Mutation {
	return func(sql string) string {
		for _, mark := range marks {
			if !strings.Contains(sql, mark) {
				return sql
			}
		}
		return strings.ReplaceAll(sql, part, text)
	}
}

// All applies mutations one after the other.
func All(mutations ...Mutation) Mutation {
	return func(sql string) string {
		for _, m := range mutations {
			sql = m(sql)
		}
		return sql
	}
}

// Pair is two or three sessions of a stage that run against each other.
type Pair struct {
	// Setup makes the fixture.
	Setup func(ctx context.Context, db *sql.DB) error
	// Sessions receives the mutations of the sessions, in their order; nil for the unchanged
	// code.
	Sessions func(mutate []Mutation) []Session
	// Check looks for violated guarantees after a schedule in which no session had an error.
	Check func(ctx context.Context, db *sql.DB) error
	// Mutants are the mutations of the sessions, by what they break. The test must catch every
	// mutant: otherwise it proves nothing.
	Mutants map[string][]Mutation
	// Variants are sessions of which one breaks a rule in its code, by what it breaks.
	Variants map[string][]Session
	// Alike is true if the sessions never wait for each other.
	Alike bool
}

// Run explores a pair, its mutants and its variants.
func (s *Stage) Run(t *testing.T, p Pair) {
	t.Helper()
	test := s.test(p, p.Sessions(make([]Mutation, 3)))
	r, err := newRunner(t.Context(), test)
	if err != nil {
		t.Fatalf("interleave: %v", err)
	}
	defer func() { _ = r.close() }()
	report, err := r.exploreAll(t.Context(), test)
	if err != nil {
		t.Fatalf("interleave: %v", err)
	}
	report.show(t)
	if report.Waited == 0 && !p.Alike {
		t.Error("no schedule had a wait: the sessions do not meet")
	}
	t.Logf("%d of %d schedules had a deadlock", s.scheduled, report.Schedules)
	if s.scheduled == report.Schedules {
		t.Error("the sessions always deadlock")
	}
	r.first = true
	for name, mutant := range p.Mutants {
		catch(t, r, name, s.test(p, p.Sessions(append(mutant, nil))))
	}
	for name, sessions := range p.Variants {
		catch(t, r, name, s.test(p, sessions))
	}
}

func (s *Stage) test(p Pair, sessions []Session) Test {
	return Test{
		URL: s.URL, Sessions: sessions, Isolation: "READ COMMITTED",
		Setup: func(ctx context.Context, db *sql.DB) error {
			s.begin()
			return p.Setup(ctx, db)
		},
		Check: func(ctx context.Context, db *sql.DB, o Outcome) error {
			for name, err := range o.Errors {
				return fmt.Errorf("session %s: %w", name, err)
			}
			err := p.Check(ctx, db)
			if err != nil {
				err = fmt.Errorf("%w; told %v", err, s.results)
			}
			return err
		},
	}
}

// catch explores broken sessions until a check detects them.
func catch(t *testing.T, r *runner, name string, test Test) {
	t.Helper()
	report, err := r.exploreAll(t.Context(), test)
	if len(report.Failures) == 0 {
		t.Errorf("mutant %s is not caught in %d schedules: %v", name, report.Schedules, err)
		return
	}
	found := report.Failures[0]
	var server *pgconn.PgError
	if errors.As(found.Err, &server) && (strings.HasPrefix(server.Code, "42") || strings.HasPrefix(server.Code, "0A")) {
		t.Errorf("mutant %s is not even SQL: %v", name, found.Err)
	}
	t.Logf("mutant %s: caught by schedule %d, %s: %.200v", name, report.Schedules, found.Schedule, found.Err)
}
