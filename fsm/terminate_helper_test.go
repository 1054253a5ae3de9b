package fsm_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"

	"github.com/perdure/perdure/internal/test/enginetest"
)

// servers are the databases that are servers.
var servers = []string{enginetest.Postgres, enginetest.MySQL}

// eachServer runs a test on each of them.
func eachServer(t *testing.T, name string, test func(t *testing.T, db enginetest.Database)) {
	t.Helper()
	for _, database := range servers {
		t.Run(name+"/"+database, func(t *testing.T) {
			t.Parallel()
			test(t, enginetest.New(t, database))
		})
	}
}

// terminate has the server end up to n connections to the database at random.
func (f *fixture) terminate(n int) {
	f.t.Helper()
	if f.db.Name == enginetest.Postgres {
		f.db.Exec(f.t, fmt.Sprintf("select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() order by random() limit %d", n))
		return
	}
	db := f.db.SQL(f.t)
	for range n {
		var id int64
		err := db.QueryRowContext(f.t.Context(), "select id from information_schema.processlist where db = database() and id <> connection_id() order by rand() limit 1").Scan(&id)
		if errors.Is(err, sql.ErrNoRows) {
			return
		}
		enginetest.NoError(f.t, err)
		_, _ = db.ExecContext(context.Background(), fmt.Sprintf("kill %d", id)) // it may have ended by itself
	}
}
