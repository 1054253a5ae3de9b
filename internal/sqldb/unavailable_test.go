package sqldb_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/perdure/perdure/internal/sqldb"
)

type stated string

func (s stated) Error() string    { return string(s) }
func (s stated) SQLState() string { return string(s) }

type coded int

func (c coded) Error() string { return "file" }
func (c coded) Code() int     { return int(c) }

func TestUnavailableIsWhatIsNotInTheStatements(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{errors.New("x"), false},
		{context.DeadlineExceeded, false},
		{&sqldb.Uncertain{Err: errors.New("x")}, true},
		{&sqldb.Transient{Err: errors.New("connection reset")}, true},
		{&sqldb.Transient{Err: stated("40P01")}, false},
		{&sqldb.Transient{Err: stated("55P03")}, false},
		{&sqldb.Transient{Err: stated("25006")}, true},
		{&sqldb.Transient{Err: coded(5)}, false},
		{stated("53100"), true},
		{stated("57P01"), true},
		{stated("57014"), false},
		{stated("08006"), true},
		{stated("58030"), true},
		{stated("23505"), false},
		{stated(""), false},
		{coded(13), true},
		{coded(10 | 3<<8), true},
		{coded(8), true},
		{coded(14), true},
		{coded(19), false},
		{fmt.Errorf("wrapped: %w", coded(13)), true},
	} {
		if got := sqldb.IsUnavailable(c.err); got != c.want {
			t.Errorf("IsUnavailable(%v) is %v", c.err, got)
		}
	}
}
