package postgres

import (
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/perdure/perdure/internal/sqldb"
)

var errNull = errors.New("cannot scan NULL into *time.Time")

// bounded returns a Scan for rows with times that may be outside the range of Go and
// JSON.
func bounded(rows pgx.Rows) sqldb.Scan {
	var converted []any // the caller may scan every row into the same destinations
	return func(dest ...any) error {
		converted = append(converted[:0], dest...)
		for i, d := range converted {
			switch p := d.(type) {
			case *time.Time:
				converted[i] = timeDest{p}
			case **time.Time:
				converted[i] = nullTimeDest{p}
			}
		}
		return rows.Scan(converted...)
	}
}

type timeDest struct{ to *time.Time }

// ScanTimestamptz implements pgtype.TimestamptzScanner.
func (d timeDest) ScanTimestamptz(v pgtype.Timestamptz) error {
	if !v.Valid {
		return errNull
	}
	*d.to = nearest(v)
	return nil
}

type nullTimeDest struct{ to **time.Time }

// ScanTimestamptz implements pgtype.TimestamptzScanner.
func (d nullTimeDest) ScanTimestamptz(v pgtype.Timestamptz) error {
	if !v.Valid {
		*d.to = nil
		return nil
	}
	t := nearest(v)
	*d.to = &t
	return nil
}

func nearest(v pgtype.Timestamptz) time.Time {
	switch v.InfinityModifier {
	case pgtype.Infinity:
		return sqldb.MaxTime
	case pgtype.NegativeInfinity:
		return sqldb.MinTime
	}
	return sqldb.Bounded(v.Time)
}
