package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	lib "modernc.org/sqlite/lib"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/sqldb"
)

var errBadConn = driver.ErrBadConn

// Dialect returns the dialect of SQLite, for callers with their own *sql.Tx.
func Dialect() sqldb.Dialect { return dialect }

var dialect = sqldb.Dialect{
	Name:      sqldb.SQLite,
	Translate: translate,
	Args:      encode,
	Dest:      decode,
	Lanes:     1,
}

// encode converts times to microseconds and NaN to text. SQLite would store a NaN as
// NULL.
func encode(args []any) {
	for i, arg := range args {
		switch v := arg.(type) {
		case time.Time:
			args[i] = v.UnixMicro()
		case *time.Time:
			args[i] = micros(v)
		case float64:
			if math.IsNaN(v) {
				args[i] = "NaN"
			}
		}
	}
}

func micros(t *time.Time) any {
	if t == nil {
		return nil
	}
	return t.UnixMicro()
}

// decode reverses encode.
func decode(dest []any) {
	for i, d := range dest {
		switch p := d.(type) {
		case *time.Time:
			dest[i] = timeDest{p}
		case **time.Time:
			dest[i] = nullTimeDest{p}
		case **float64:
			dest[i] = nullFloatDest{p}
		}
	}
}

type timeDest struct{ to *time.Time }

// Scan implements sql.Scanner.
func (d timeDest) Scan(v any) error {
	n, ok := v.(int64)
	if !ok {
		return fmt.Errorf("scan %T as a time", v)
	}
	*d.to = time.UnixMicro(n).UTC()
	return nil
}

type nullTimeDest struct{ to **time.Time }

// Scan implements sql.Scanner.
func (d nullTimeDest) Scan(v any) error {
	if v == nil {
		*d.to = nil
		return nil
	}
	*d.to = new(time.Time)
	return timeDest{*d.to}.Scan(v)
}

type nullFloatDest struct{ to **float64 }

// Scan implements sql.Scanner.
func (d nullFloatDest) Scan(v any) error {
	var f float64
	switch v := v.(type) {
	case nil:
		*d.to = nil
		return nil
	case float64:
		f = v
	case int64:
		f = float64(v)
	case string:
		f = math.NaN()
	default:
		return fmt.Errorf("scan %T as a float", v)
	}
	*d.to = &f
	return nil
}

// translate converts SQLite's errors to errors of packages fault and sqldb.
func translate(err error) error {
	code, message, ok := sqldb.FileCode(err)
	if !ok {
		return err
	}
	switch code {
	case lib.SQLITE_CONSTRAINT_UNIQUE, lib.SQLITE_CONSTRAINT_PRIMARYKEY:
		return &fault.Duplicate{Constraint: afterColon(message), Err: err}
	case lib.SQLITE_CONSTRAINT_FOREIGNKEY:
		return &fault.Restricted{Constraint: "foreign key", Err: err}
	case lib.SQLITE_INTERRUPT:
		return errors.Join(context.Canceled, err)
	}
	if isBusy(err) {
		return &sqldb.Transient{Err: err}
	}
	return err
}

// afterColon returns the columns in the message of a violated constraint: "constraint
// failed: UNIQUE constraint failed: users.email (2067)".
func afterColon(message string) string {
	const mark = "failed: "
	columns := message[strings.LastIndex(message, mark)+len(mark):]
	columns, _, _ = strings.Cut(columns, " (")
	return columns
}

func isBusy(err error) bool {
	switch primary(err) {
	case lib.SQLITE_BUSY, lib.SQLITE_LOCKED:
		return true
	}
	return false
}

func isIOError(err error) bool { return primary(err) == lib.SQLITE_IOERR }

// primary returns the primary result code, the low byte of the extended one.
func primary(err error) int {
	code, _, _ := sqldb.FileCode(err)
	return code & 0xff
}
