package doctor

import (
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/test/enginetest"
)

// The doctor names the session whose snapshot keeps deleted rows, and since when.
func TestTheHolderOfAnOldSnapshotIsNamed(t *testing.T) {
	t.Parallel()
	db := enginetest.New(t, enginetest.Postgres)
	eng := db.Open(t, nil)
	check := func(age time.Duration) Result {
		t.Helper()
		results, err := Run(t.Context(), eng, Options{HeldFor: age})
		enginetest.NoError(t, err)
		for _, r := range results {
			if r.Name == "horizon" {
				return r
			}
		}
		t.Fatal("the horizon was not checked")
		return Result{}
	}
	held, err := host.Of(eng).DB.Begin(t.Context(), sqldb.Read)
	enginetest.NoError(t, err)
	defer held.Rollback()
	var pid string
	enginetest.NoError(t, held.Run(t.Context(), sqldb.Stmt{SQL: "select pg_backend_pid()::text from perdure.settings limit 1", Row: func(scan sqldb.Scan) error { return scan(&pid) }}))
	if r := check(time.Hour); r.Severity != OK {
		t.Errorf("a new transaction is reported: %+v", r)
	}
	r := check(time.Microsecond)
	if r.Severity != Warning || len(r.Findings) != 1 || r.Findings[0].ID != pid {
		t.Fatalf("got %+v, want session %s", r, pid)
	}
	if detail := r.Findings[0].Detail; !strings.Contains(detail, "session (") || !strings.Contains(detail, "idle in transaction) since 20") || !strings.Contains(detail, "deleted rows") {
		t.Errorf("the finding is %q", detail)
	}
}
