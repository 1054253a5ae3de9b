package cli

import (
	"testing"

	"github.com/perdure/perdure/internal/test/enginetest"
)

func TestDoctorSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	dsn := sqliteDSN(t)
	filled(t, dsn)
	run(t, "doctor", "--dsn", dsn).want(t, 0, "ok       migrations", "ok       fsm_place", "ok       outbox: 3 entries", "all checks passed")
	if v := run(t, "doctor", "--dsn", dsn, "--json", "--no-outbox").decode(t); v["severity"] != "ok" || len(v["checks"].([]any)) < 30 {
		t.Errorf("got %v", v)
	}
	execSQLite(t, dsn, "insert into perdure_interrupts (id, token) values ('lost', 'x')")
	run(t, "doctor", "--dsn", dsn).want(t, exitFailure, "broken   fsm_interrupt", "- lost", "report it", "errors found")
}

func TestDoctorFindsMissingMigrations(t *testing.T) {
	t.Parallel()
	dsn := emptyDatabases()["sqlite"](t)
	execSQLite(t, dsn, "create table other (x)")
	run(t, "doctor", "--dsn", dsn).want(t, exitFailure, "broken   migrations", "perdure migrate")
	run(t, "doctor", "--dsn", "sqlite:/nowhere/x.db").wantError(t, exitNotFound)
}

// execSQLite changes a file behind Perdure's back.
func execSQLite(t *testing.T, dsn, statement string) {
	t.Helper()
	enginetest.Database{Name: enginetest.SQLite, DSN: dsn}.Exec(t, statement)
}
