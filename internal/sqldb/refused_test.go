package sqldb_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/sqldb"
)

// Only errors that the data has caused.
func TestRefusedIsAnErrorThatTheDataHasCaused(t *testing.T) {
	t.Parallel()
	state := func(code string) error { return fmt.Errorf("wrapped: %w", &pgconn.PgError{Code: code}) }
	for _, c := range []struct {
		err  error
		want bool
	}{
		{&fault.Duplicate{Err: errors.New("x")}, true},
		{&fault.Restricted{Err: errors.New("x")}, true},
		{fault.Invalidf("x", "y"), true},
		{state("22021"), true},
		{state("23514"), true},
		{state("54000"), true},
		{state("53100"), false},
		{state("57014"), false},
		{state("58030"), false},
		{state("XX000"), false},
		{context.DeadlineExceeded, false},
		{context.Canceled, false},
		{errors.New("disk I/O error"), false},
		{&sqldb.Transient{Err: errors.New("x")}, false},
		{&sqldb.Uncertain{Err: &fault.Duplicate{Err: errors.New("x")}}, false},
		{&fault.Uncertain{Err: state("23505")}, false},
	} {
		if got := sqldb.Refused(c.err); got != c.want {
			t.Errorf("Refused(%v) is %v", c.err, got)
		}
	}
}
