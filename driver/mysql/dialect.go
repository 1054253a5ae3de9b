package mysql

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/sqldb"
)

var dialect = sqldb.Dialect{
	Name:        sqldb.MySQL,
	Translate:   translate,
	Args:        encode,
	Dest:        decode,
	Lanes:       4,
	ServerClock: true,
}

// layout is the text format of a DATETIME(6).
const layout = "2006-01-02 15:04:05.000000"

// encode converts times to text, in UTC and truncated to the microsecond. The server
// would round finer times, and a due time must not change. The driver would send times in
// the zone of the connection, which the user may have set.
func encode(args []any) {
	for i, arg := range args {
		if p, ok := arg.(*time.Time); ok && p != nil {
			arg = *p
		}
		if t, ok := arg.(time.Time); ok {
			args[i] = t.UTC().Format(layout)
		}
	}
}

// decode reads times regardless of the settings of the user's connection.
func decode(dest []any) {
	for i, d := range dest {
		switch p := d.(type) {
		case *time.Time:
			dest[i] = timeDest{p}
		case **time.Time:
			dest[i] = nullTimeDest{p}
		}
	}
}

type timeDest struct{ to *time.Time }

// Scan implements sql.Scanner. The driver returns text, or a time with the stored digits
// in the zone of the connection.
func (d timeDest) Scan(v any) (err error) {
	switch v := v.(type) {
	case time.Time:
		*d.to = time.Date(v.Year(), v.Month(), v.Day(), v.Hour(), v.Minute(), v.Second(), v.Nanosecond(), time.UTC)
	case []byte:
		*d.to, err = time.Parse("2006-01-02 15:04:05.999999", string(v))
	default:
		return fmt.Errorf("scan %T as a time", v)
	}
	return err
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

// translate converts MySQL's errors to errors of packages fault and sqldb.
func translate(err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	var e *mysql.MySQLError
	if !errors.As(err, &e) {
		return connection(err)
	}
	if strings.Contains(e.Message, "max_allowed_packet") { // 1153, or 1105 for a long value
		return fault.Invalidf("statement", "must be at most the server's max_allowed_packet")
	}
	switch e.Number {
	case 1062, 1586:
		return &fault.Duplicate{Constraint: quoted(e.Message), Err: err}
	case 1451, 1452:
		return &fault.Restricted{Constraint: constraint(e.Message), Err: err}
	case 1205:
		return &sqldb.Transient{Err: &sqldb.LockTimeout{Err: err}}
	case 1213, // deadlock
		1020,       // record has changed since last read
		1040, 1203, // too many connections
		1053, 1290, 1836, // shutting down, read-only
		1047,       // the node is not a part of the cluster, or not yet
		1927, 4031: // connection was killed or timed out
		return &sqldb.Transient{Err: err}
	}
	return err
}

// connection marks the error of a connection that broke before COMMIT was sent as
// transient.
func connection(err error) error {
	var network net.Error
	if errors.Is(err, driver.ErrBadConn) || errors.Is(err, mysql.ErrInvalidConn) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &network) {
		return &sqldb.Transient{Err: err}
	}
	return err
}

// quoted returns the name of the key in "Duplicate entry 'x' for key 'name'".
func quoted(message string) string {
	parts := strings.Split(message, "'")
	if len(parts) < 2 {
		return "unique key"
	}
	return parts[len(parts)-2]
}

// constraint returns the name in "… CONSTRAINT `name` FOREIGN KEY …".
func constraint(message string) string {
	_, rest, _ := strings.Cut(message, "CONSTRAINT `")
	name, _, found := strings.Cut(rest, "`")
	if !found {
		return "foreign key"
	}
	return name
}
