package task_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/internal/test/testdb"
)

// solve has a superuser run what the lint says, and returns the statements.
func solve(t *testing.T, superuser *pgx.Conn, problems []string) (statements []string) {
	t.Helper()
	for _, p := range problems {
		_, statement, ok := strings.Cut(p, "; run as superuser: ")
		if !ok {
			t.Errorf("%s: no statement solves it", p)
			continue
		}
		if _, err := superuser.Exec(enginetest.Context(t), statement); err != nil {
			t.Errorf("%s: %v", p, err)
		}
		statements = append(statements, statement)
	}
	return statements
}

// among checks that a problem is found that has a text.
func among(t *testing.T, problems []string, want string) {
	t.Helper()
	if !slices.ContainsFunc(problems, func(p string) bool { return strings.Contains(p, want) }) {
		t.Errorf("%q is not among %q", want, problems)
	}
}

// A user who is no superuser cannot take the system's functions from the worker. The
// lint is not green then, and names the statements that a superuser must run: after
// them the worker is refused.
func TestLintAfterAMigrationByAPlainUser(t *testing.T) {
	t.Parallel()
	server := testdb.PrivatePostgres(t)
	ctx := enginetest.Context(t)
	for _, c := range []struct {
		user, roles string
		// open are problems besides those with the functions of the system.
		open []string
	}{
		{
			user:  "member", // as the guide has it: a superuser makes the roles, by hand and not completely
			roles: "create role member login; create role perdure_owner nologin; create role perdure_worker login noinherit; grant perdure_owner to member",
			open: []string{
				"cannot end overdue transactions of the worker: perdure_owner; run as superuser: grant perdure_worker to perdure_owner",
				"set statement_timeout = '30s'", "set idle_in_transaction_session_timeout = '15s'", "set search_path = 'pg_catalog'",
				"connection limit of the worker role that leaves none to others: -1", "on the database: temporary",
			},
		},
		{user: "maker", roles: "create role maker login createrole; grant perdure_owner to maker"},
	} {
		dsn := server.Database(t)
		superuser := connect(t, dsn)
		name := text(t, superuser, "select quote_ident(current_database())")
		_, err := superuser.Exec(ctx, c.roles+"; grant create on database "+name+" to "+c.user)
		enginetest.NoError(t, err)
		eng, err := perdure.Open(ctx, as(t, dsn, c.user), nil)
		enginetest.NoError(t, err)
		problems := lint(t, eng)
		for _, function := range []string{
			"lo_creat", "lo_create", "lo_from_bytea", "lo_open", "lo_put", "lo_unlink", "lowrite",
			"lo_truncate", "lo_truncate64", "pg_logical_emit_message",
		} {
			among(t, problems, "revoke execute on function pg_catalog."+function+"(")
		}
		for _, problem := range c.open {
			among(t, problems, problem)
		}
		worker := connect(t, as(t, dsn, "perdure_worker"))
		calls := []string{"select lo_create(0)", "select lo_from_bytea(0, 'x')", "select pg_logical_emit_message(false, 'x', 'y')", "select pg_logical_emit_message(false, 'x', 'y'::bytea)"}
		for _, call := range calls {
			if _, err := worker.Exec(ctx, call); err != nil {
				t.Errorf("%s is refused before a superuser does so: %v", call, err) // the lint would be wrong
			}
		}
		solve(t, superuser, problems)
		if problems := lint(t, eng); len(problems) > 0 {
			t.Errorf("after the statements: %s", strings.Join(problems, "\n"))
		}
		for _, call := range calls {
			if _, err := worker.Exec(ctx, call); state(err) != "42501" {
				t.Errorf("%s after the statements: %v", call, err)
			}
		}
		enginetest.NoError(t, eng.Close())
	}
}

// What a worker, or an operator, changes about the role for later sessions is found,
// and the statement that is named solves it.
func TestLintFindsWhatAWorkerChangesAboutItself(t *testing.T) {
	t.Parallel()
	server := testdb.PrivatePostgres(t)
	dsn := server.Database(t)
	superuser := connect(t, dsn)
	eng, err := perdure.Open(enginetest.Context(t), dsn, nil)
	enginetest.NoError(t, err)
	defer func() { enginetest.NoError(t, eng.Close()) }()
	if problems := lint(t, eng); len(problems) > 0 {
		t.Fatalf("a fresh database: %s", strings.Join(problems, "\n"))
	}
	name := text(t, superuser, "select quote_ident(current_database())")
	all := text(t, superuser, "select (current_setting('max_connections')::int - 3)::text") // but those of superusers
	for _, c := range []struct {
		byWorker        bool
		statement, want string
	}{
		{true, "alter role perdure_worker set statement_timeout = 0", "setting of the worker role that differs from the one it was made with: statement_timeout"},
		{true, "alter role perdure_worker reset all", "setting of the worker role that differs from the one it was made with: search_path"},
		{true, "alter role perdure_worker set default_transaction_read_only = on", "reset default_transaction_read_only"},
		{true, "alter role perdure_worker in database " + name + " set search_path = public", "in database " + name + " set search_path"},
		{false, "revoke perdure_worker from perdure_owner", "cannot end overdue transactions"},
		{false, "alter role perdure_worker connection limit " + all, "leaves none to others: " + all},
		{false, "alter role perdure_worker createdb", "right of the worker role: createdb"},
		{false, "create role other; grant other to perdure_worker", "member of: other"},
		{false, "alter role perdure_owner login", "right of the owner role"},
	} {
		by := superuser
		if c.byWorker {
			by = connect(t, as(t, dsn, "perdure_worker"))
		}
		if _, err := by.Exec(enginetest.Context(t), c.statement); err != nil {
			t.Errorf("%s: %v", c.statement, err)
			continue
		}
		problems := lint(t, eng)
		among(t, problems, c.want)
		solve(t, superuser, problems)
		if problems := lint(t, eng); len(problems) > 0 {
			t.Errorf("%s: after the statements: %s", c.statement, strings.Join(problems, "\n"))
		}
	}
}
