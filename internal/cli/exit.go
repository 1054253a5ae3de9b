package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"syscall"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/actor"
	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/outbox"
)

// The exit codes.
const (
	exitOK          = 0
	exitFailure     = 1
	exitUsage       = 2
	exitNotFound    = 3
	exitConflict    = 4 // a condition does not hold: not migrated, entries removed, changed concurrently
	exitAuth        = 5
	exitUnreachable = 7
	exitTimeout     = 124
	exitSignal      = 128 // plus the number of the signal
)

// exitHelp is the list of the exit codes for the help text.
const exitHelp = `Exit codes:

  0         success
  1         failure
  2         wrong usage
  3         not found
  4         conflict: not migrated, entries removed, finished, or changed concurrently
  5         not authorized
  7         database or server unreachable
  124       timed out
  130, 143  interrupted, terminated`

// Interrupted is the cause with which the caller cancels the context of Run when it
// receives a signal.
type Interrupted struct{ Signal os.Signal }

func (e *Interrupted) Error() string { return "interrupted by a signal: " + e.Signal.String() }

// usageError is a mistake in the arguments.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

func usagef(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }

// errReported is a failure that the command's output has already reported.
var errReported = errors.New("the output has the errors")

// exit prints the error, in one line, and returns the code for it.
func (a *app) exit(ctx context.Context, err error) int {
	if err == nil {
		return exitOK
	}
	code := a.code(ctx, err)
	if errors.Is(err, errReported) {
		return code
	}
	lines := strings.ReplaceAll(err.Error(), "\n", "; ") // several errors
	text := a.conceal(strings.Join(strings.Fields(lines), " "))
	if a.json {
		problem, _ := json.Marshal(map[string]any{"title": titles[code], "detail": text, "exit_code": code})
		text = string(problem)
	} else {
		text = "perdure: " + text
	}
	fmt.Fprintln(a.err, text)
	return code
}

var titles = map[int]string{
	exitFailure: "failure", exitUsage: "usage", exitNotFound: "not found", exitConflict: "conflict",
	exitAuth: "not authorized", exitUnreachable: "unreachable", exitTimeout: "timed out",
}

func (a *app) code(ctx context.Context, err error) int {
	var interrupted *Interrupted
	if errors.As(context.Cause(ctx), &interrupted) {
		if s, ok := interrupted.Signal.(syscall.Signal); ok {
			return exitSignal + int(s)
		}
		return exitFailure
	}
	if !a.running {
		return exitUsage
	}
	var refused *problem
	if errors.As(err, &refused) {
		return refused.exitCode()
	}
	switch {
	case is[*actor.ImportError](err): // the stored data is invalid, not the command
		return exitConflict
	case is[*usageError](err), is[*fault.Invalid](err):
		return exitUsage
	case is[*fault.NotFound](err), errors.Is(err, os.ErrNotExist):
		return exitNotFound
	case is[*fault.Conflict](err), is[*fault.Duplicate](err), is[*outbox.GapError](err), is[*outbox.DivergedError](err),
		is[*perdure.StateError](err), is[*actor.QuarantinedError](err), is[*actor.VersionError](err), is[*fault.Restricted](err), errors.Is(err, fault.ErrNotMigrated), errors.Is(err, errNotEmpty):
		return exitConflict
	case isAuth(err):
		return exitAuth
	case is[*pgconn.ConnectError](err), is[*net.OpError](err):
		return exitUnreachable
	case errors.Is(err, context.DeadlineExceeded):
		return exitTimeout
	}
	return exitFailure
}

func is[T error](err error) bool {
	var target T
	return errors.As(err, &target)
}

func isAuth(err error) bool {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return strings.HasPrefix(pg.Code, "28") || pg.Code == "42501"
	}
	var my *mysql.MySQLError
	return errors.As(err, &my) && (my.Number == 1044 || my.Number == 1045 || my.Number == 1142)
}

// conceal removes the database's password from a text. No error should quote it; this is a
// second safeguard.
func (a *app) conceal(text string) string {
	u, err := url.Parse(a.dsn)
	if err != nil || u.User == nil {
		return text
	}
	password, _ := u.User.Password()
	if len(password) < 4 { // would also remove ordinary words
		return text
	}
	return strings.NewReplacer(password, "xxxxx", url.QueryEscape(password), "xxxxx").Replace(text)
}
