package api

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/sqldb"
)

// A request that meets a lost connection or a database that is away is told to come
// back. The log has the error.
func TestADatabaseThatIsAwayIsUnavailable(t *testing.T) {
	t.Parallel()
	lost := errors.New("connection reset by peer")
	for name, c := range map[string]struct {
		err    error
		status int
		logged int
	}{
		"lost connection":  {&sqldb.Transient{Err: lost}, http.StatusServiceUnavailable, 1},
		"ended backend":    {fmt.Errorf("read: %w", &pgconn.PgError{Code: "57P01"}), http.StatusServiceUnavailable, 1},
		"full disk":        {&pgconn.PgError{Code: "53100"}, http.StatusServiceUnavailable, 1},
		"lost COMMIT":      {&fault.Uncertain{Err: lost}, http.StatusServiceUnavailable, 1},
		"deadlocks":        {&sqldb.Transient{Err: &pgconn.PgError{Code: "40P01"}}, http.StatusServiceUnavailable, 1},
		"read-only":        {&sqldb.Transient{Err: &pgconn.PgError{Code: "25006"}}, http.StatusServiceUnavailable, 1},
		"full MariaDB":     {&mysql.MySQLError{Number: 1021}, http.StatusServiceUnavailable, 1},
		"broken statement": {&pgconn.PgError{Code: "42601"}, http.StatusInternalServerError, 1},
		"closed engine":    {fault.ErrClosed, http.StatusServiceUnavailable, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			logged := 0
			a := &API{config: Config{OnError: func(error) { logged++ }}}
			p := a.problem(&request{}, c.err)
			if p.Status != c.status || logged != c.logged {
				t.Errorf("the status is %d, and %d errors were logged", p.Status, logged)
			}
			if (p.header.Get("Retry-After") != "") != (p.Status == http.StatusServiceUnavailable && p.Code != codeUncertain) {
				t.Errorf("the response has Retry-After %q", p.header.Get("Retry-After"))
			}
		})
	}
}
