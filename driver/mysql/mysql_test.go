package mysql

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/test/testdb"
)

func TestMain(m *testing.M) { testdb.Main(m) }

func TestParse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ dsn, user, password, address, name string }{
		{"mysql://u@h/d", "u", "", "h:3306", "d"},
		{"mariadb://u:p@h:3307/d", "u", "p", "h:3307", "d"},
		{"mysql://u:p%40%2F%3A%25@h/d", "u", "p@/:%", "h:3306", "d"},
		{"mysql://u@[::1]/d", "u", "", "[::1]:3306", "d"},
		{"mysql://u@[::1]:3307/d", "u", "", "[::1]:3307", "d"},
		{"mysql://h/d?timeout=3s", "", "", "h:3306", "d"},
	} {
		config, err := parse(c.dsn)
		if err != nil {
			t.Errorf("%s: %v", c.dsn, err)
			continue
		}
		if config.User != c.user || config.Passwd != c.password || config.Addr != c.address || config.DBName != c.name {
			t.Errorf("%s is %s:%s at %s/%s", c.dsn, config.User, config.Passwd, config.Addr, config.DBName)
		}
	}
}

func TestSettingsThatCorrectnessRestsOnCannotBeChanged(t *testing.T) {
	t.Parallel()
	config, err := parse("mysql://u@h/d?parseTime=false&loc=Local&clientFoundRows=false&multiStatements=true&sql_mode=%27%27&time_zone=%27%2B05%3A00%27&interpolateParams=false&group_concat_max_len=4")
	if err != nil {
		t.Fatal(err)
	}
	if !config.ParseTime || config.Loc != time.UTC || !config.ClientFoundRows || config.MultiStatements || !config.InterpolateParams {
		t.Errorf("the settings are %+v", config)
	}
	if config.Params["time_zone"] != "'+00:00'" || !strings.Contains(config.Params["sql_mode"], "STRICT_ALL_TABLES") || config.Params["group_concat_max_len"] != "67108864" {
		t.Errorf("the session is %v", config.Params)
	}
}

func TestErrorsGetTheirMeaning(t *testing.T) {
	t.Parallel()
	server := func(number uint16, text string) error {
		return fmt.Errorf("wrapped: %w", &mysql.MySQLError{Number: number, Message: text})
	}
	var duplicate *fault.Duplicate
	if err := translate(server(1062, "Duplicate entry 'it's' for key 'users_name_key'")); !errors.As(err, &duplicate) || duplicate.Constraint != "users_name_key" {
		t.Errorf("duplicate: %+v", duplicate)
	}
	var restricted *fault.Restricted
	if err := translate(server(1451, "… fails (`d`.`t`, CONSTRAINT `posts_author_fkey` FOREIGN KEY …")); !errors.As(err, &restricted) || restricted.Constraint != "posts_author_fkey" {
		t.Errorf("restricted: %+v", restricted)
	}
	for _, err := range []error{
		server(1213, ""), server(1205, ""), server(1927, ""), driver.ErrBadConn, mysql.ErrInvalidConn, io.EOF, io.ErrUnexpectedEOF,
		&net.OpError{Op: "dial", Err: errors.New("refused")},
	} {
		if !sqldb.IsTransient(translate(err)) {
			t.Errorf("%v does not invite another try", err)
		}
	}
	for _, err := range []error{nil, context.Canceled, context.DeadlineExceeded, server(1064, "syntax"), errors.New("other")} {
		if got := translate(err); sqldb.IsTransient(got) || !errors.Is(got, err) {
			t.Errorf("%v becomes %v", err, got)
		}
	}
}

func TestACommitThatTheServerDidNotRefuseIsUncertain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err       error
		uncertain bool
	}{
		{&mysql.MySQLError{Number: 1213}, false},
		{&mysql.MySQLError{Number: 1317}, true},
		{&mysql.MySQLError{Number: 1053}, true},
		{&mysql.MySQLError{Number: 1047}, true},
		{&mysql.MySQLError{Number: 1180}, true},
		{driver.ErrBadConn, true},
		{mysql.ErrInvalidConn, true},
		{io.EOF, true},
		{context.DeadlineExceeded, true},
	} {
		err := (&tx{StdRunner: sqldb.StdRunner{Dialect: dialect}}).commitError(c.err)
		var uncertain *sqldb.Uncertain
		if errors.As(err, &uncertain) != c.uncertain || c.uncertain && sqldb.IsTransient(err) {
			t.Errorf("%v becomes %v", c.err, err)
		}
	}
}

// TestAnEntryThatTheServerCannotTakeIsRefused: the server's own limit is
// respected instead of losing the connection over it, again and again.
func TestAStatementThatTheServerCannotTakeIsRefused(t *testing.T) {
	t.Parallel()
	db, err := Open(t.Context(), testdb.MySQL(t))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	tx, err := db.Begin(t.Context(), sqldb.Write)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	read := sqldb.Stmt{SQL: "select length(?)", Args: []any{strings.Repeat("x", 20<<20)}, Row: func(sqldb.Scan) error { return nil }}
	err = tx.Run(t.Context(), read)
	var invalid *fault.Invalid
	if !errors.As(err, &invalid) {
		t.Errorf("a statement of 20 MiB: %T %v", err, err)
	}
}

// A connection that breaks because the context is done is not reported as broken.
func TestTheErrorOfADoneContextIsItsOwn(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	broken := &sqldb.Transient{Err: driver.ErrBadConn}
	if err := cut(ctx, broken); !errors.Is(err, driver.ErrBadConn) {
		t.Errorf("before the end of the context: %v", err)
	}
	cancel()
	if err := cut(ctx, broken); !errors.Is(err, context.Canceled) || sqldb.IsTransient(err) {
		t.Errorf("after the end of the context: %v", err)
	}
	refused := errors.New("refused")
	if err := cut(ctx, refused); !errors.Is(err, refused) {
		t.Errorf("an error of its own: %v", err)
	}
	if err := cut(ctx, nil); err != nil {
		t.Errorf("no error: %v", err)
	}
}
