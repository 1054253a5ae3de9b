package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/test/testdb"
)

func TestMain(m *testing.M) { testdb.Main(m) }

func TestErrorsGetTheirMeaning(t *testing.T) {
	t.Parallel()
	server := func(code string) error {
		return fmt.Errorf("wrapped: %w", &pgconn.PgError{Code: code, ConstraintName: "a_key"})
	}
	var duplicate *fault.Duplicate
	if !errors.As(translate(server("23505")), &duplicate) || duplicate.Constraint != "a_key" {
		t.Errorf("duplicate: %+v", duplicate)
	}
	var restricted *fault.Restricted
	if !errors.As(translate(server("23503")), &restricted) || restricted.Constraint != "a_key" {
		t.Errorf("restricted: %+v", restricted)
	}
	for _, err := range []error{
		server("40001"), server("40P01"), server("57P01"), server("25P03"), io.EOF, io.ErrUnexpectedEOF, net.ErrClosed,
		&net.OpError{Op: "dial", Err: errors.New("refused")},
	} {
		if !sqldb.IsTransient(translate(err)) {
			t.Errorf("%v does not invite another try", err)
		}
	}
	for _, err := range []error{nil, context.Canceled, context.DeadlineExceeded, server("42601"), errors.New("other")} {
		if got := translate(err); sqldb.IsTransient(got) || !errors.Is(got, err) {
			t.Errorf("%v becomes %v", err, got)
		}
	}
}

func TestOnlyTheServersWordMakesACommitCertain(t *testing.T) {
	t.Parallel()
	refused, ended := &pgconn.PgError{SeverityUnlocalized: "ERROR"}, &pgconn.PgError{SeverityUnlocalized: "FATAL"}
	for _, c := range []struct {
		err             error
		before, certain bool
	}{
		{refused, true, true},
		{refused, false, true},
		{ended, true, true},
		{ended, false, false},
		{io.EOF, true, false},
		{io.EOF, false, false},
		{context.DeadlineExceeded, true, false},
	} {
		if got := rolledBack(c.err, c.before); got != c.certain {
			t.Errorf("%v before COMMIT (%v) is certain: %v", c.err, c.before, got)
		}
	}
}

func TestAServerThatForgetsCommitsIsRefused(t *testing.T) {
	t.Parallel()
	dsn := testdb.Postgres(t)
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	query := u.Query()
	query.Set("synchronous_commit", "off")
	u.RawQuery = query.Encode()
	if _, err := Open(t.Context(), u.String()); err == nil || !strings.Contains(err.Error(), "synchronous_commit") {
		t.Errorf("synchronous_commit=off: %v", err)
	}
}

func TestThePoolHasASizeOfItsOwn(t *testing.T) {
	t.Parallel()
	dsn := testdb.Postgres(t)
	for suffix, want := range map[string]int32{"": defaultConns, "&pool_max_conns=3": 3} {
		db, err := Open(t.Context(), dsn+suffix)
		if err != nil {
			t.Fatal(err)
		}
		if got := db.Pool().Config().MaxConns; got != want {
			t.Errorf("%q: the pool has %d connections, want %d", suffix, got, want)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestNothingStaysInTheSession: a transaction pooler may stand in between.
func TestNothingStaysInTheSession(t *testing.T) {
	t.Parallel()
	db, err := Open(t.Context(), testdb.Postgres(t)+"&pool_max_conns=1")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	settings := func() (found string) {
		row := db.Pool().QueryRow(t.Context(), "select string_agg(name || setting, ' ' order by name) from pg_settings where name in ('idle_in_transaction_session_timeout', 'transaction_isolation', 'default_transaction_isolation', 'search_path')")
		if err := row.Scan(&found); err != nil {
			t.Fatal(err)
		}
		return found
	}
	before := settings()
	for _, access := range []sqldb.Access{sqldb.Write, sqldb.Read} {
		tx, err := db.Begin(t.Context(), access)
		if err != nil {
			t.Fatal(err)
		}
		if err := tx.Commit(t.Context(), sqldb.Exec("select 1")); err != nil {
			t.Fatal(err)
		}
	}
	if after := settings(); after != before {
		t.Errorf("the session was %s, is %s", before, after)
	}
}

// A claim does not wait for the disk; everything else does.
func TestOnlyClaimsAreNotSynced(t *testing.T) {
	t.Parallel()
	db, err := Open(t.Context(), testdb.Postgres(t))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for access, want := range map[sqldb.Access]string{sqldb.Write: "on", sqldb.Urgent: "on", sqldb.Claim: "off"} {
		tx, err := db.Begin(t.Context(), access)
		if err != nil {
			t.Fatal(err)
		}
		var got string
		show := sqldb.Stmt{SQL: "select current_setting('synchronous_commit')", Row: func(scan sqldb.Scan) error { return scan(&got) }}
		if err := tx.Run(t.Context(), show); err != nil || got != want {
			t.Errorf("access %v has synchronous_commit %s (%v), want %s", access, got, err, want)
		}
		tx.Rollback()
	}
}

// The pool of an application is one pool, and can be listed.
func TestABorrowedPoolIsListedOnce(t *testing.T) {
	t.Parallel()
	pool, err := pgxpool.New(t.Context(), testdb.Postgres(t))
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	db, err := Borrow(t.Context(), pool)
	if err != nil {
		t.Fatal(err)
	}
	if pools := db.Pools(); len(pools) != 1 || pools[0].Max != int64(pool.Config().MaxConns) {
		t.Errorf("the pools are %+v", pools)
	}
}
