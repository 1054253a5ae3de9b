package upgrade_test

import (
	"compress/gzip"
	"context"
	"database/sql"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/stdlib"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/test/enginetest"
)

// firstStep is how the script of all migrations marks the first one that the databases of
// the fixtures lack.
const firstStep = "\n-- 0027 "

// load returns a database as the old release left it, and what that release showed of it.
func load(t *testing.T, name string) (enginetest.Database, contents) {
	t.Helper()
	db := enginetest.Empty(t, name)
	switch name {
	case enginetest.SQLite:
		loadSQLite(t, db)
	case enginetest.Postgres:
		loadPostgres(t, db)
	case enginetest.MySQL:
		loadMySQL(t, db)
	}
	var before contents
	enginetest.NoError(t, json.Unmarshal([]byte(strings.ReplaceAll(fixture(t, name+".json"), `"FSM": `, `"Definition": `)), &before))
	for i := range before.Hooks {
		h := &before.Hooks[i].Record
		h.Status = renamed(h.Status, h.Attempts, h.Due)
	}
	for i := range before.Alarms {
		a := &before.Alarms[i].Record
		a.Status = renamed(a.Status, a.Attempts, a.Due)
	}
	for i := range before.Tasks {
		k := &before.Tasks[i].Record
		k.Status = renamed(k.Status, k.Attempts, k.Scheduled)
	}
	for i := range before.Instances { // the old release counted the runs of a step from 0
		before.Instances[i].Record.Attempt++
		before.Instances[i].Record.Status, before.Instances[i].Record.WaitsFor = statusNow(before.Instances[i].Record)
		for j := range before.Instances[i].History {
			before.Instances[i].History[j].Attempt++
		}
	}
	return db, before
}

// statusNow returns the status of an instance in the words of this release, and what it
// waits for.
func statusNow(i fsm.Instance) (fsm.Status, fsm.Reason) {
	switch {
	case i.Failures > 0 && (i.Status == "runnable" || i.Status == fsm.Scheduled):
		return fsm.Retrying, ""
	case i.Status == "runnable":
		return fsm.Ready, ""
	case i.Status == "executing":
		return fsm.Running, ""
	case i.Status == "awaiting_signal":
		return fsm.Waiting, fsm.ForSignal
	case i.Status == "awaiting_children":
		return fsm.Waiting, fsm.ForChildren
	case i.Status == "queued":
		return fsm.Waiting, fsm.ForTurn
	}
	return i.Status, ""
}

// fixture returns the text of a file of testdata.
func fixture(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", file))
	enginetest.NoError(t, err)
	return string(text)
}

func loadSQLite(t *testing.T, db enginetest.Database) {
	t.Helper()
	zipped, err := gzip.NewReader(strings.NewReader(fixture(t, "sqlite.db.gz")))
	enginetest.NoError(t, err)
	file, err := io.ReadAll(zipped)
	enginetest.NoError(t, err)
	enginetest.NoError(t, os.WriteFile(strings.TrimPrefix(db.DSN, "sqlite:"), file, 0o600))
}

// loadPostgres creates the tables by the migrations that the fixture's database has, and
// fills them. Open compares the checksums of these migrations with those in the fixture.
func loadPostgres(t *testing.T, db enginetest.Database) {
	t.Helper()
	script, err := perdure.MigrationScript(db.DSN)
	enginetest.NoError(t, err)
	script, _, found := strings.Cut(script, firstStep)
	if !found {
		t.Fatalf("the script has no migration%s", firstStep)
	}
	// Migrations leave rows, and triggers keep the audit log as it is.
	const empty = `set session_replication_role = replica;
	do $$ declare name text; begin
		for name in select format('%I.%I', schemaname, tablename) from pg_tables where schemaname not in ('pg_catalog', 'information_schema') loop
			execute 'truncate ' || name || ' cascade';
		end loop;
	end $$;`
	conn := connect(t, db)
	for _, text := range []string{script, empty, fixture(t, "postgres.sql")} {
		err := conn.Raw(func(driver any) error {
			_, err := driver.(*stdlib.Conn).Conn().PgConn().Exec(enginetest.Context(t), text).ReadAll()
			return err
		})
		enginetest.NoError(t, err)
	}
}

func loadMySQL(t *testing.T, db enginetest.Database) {
	t.Helper()
	conn := connect(t, db)
	for _, text := range strings.Split(fixture(t, "mysql.sql"), ";\n") {
		if strings.TrimSpace(text) == "" {
			continue
		}
		if _, err := conn.ExecContext(enginetest.Context(t), text); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
	}
}

// connect returns a connection that is closed when the test ends.
func connect(t *testing.T, db enginetest.Database) *sql.Conn {
	t.Helper()
	conn, err := db.SQL(t).Conn(context.Background())
	enginetest.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// renamed returns the status of a hook, an alarm or a task that had an old word.
func renamed(old perdure.Status, attempts int, due time.Time) perdure.Status {
	switch old {
	case "pending":
		return waits(attempts, due)
	case "processing":
		return perdure.StatusRunning
	case "completed":
		return perdure.StatusDone
	}
	return old
}

// waits returns the status at noon of work that waits.
func waits(attempts int, due time.Time) perdure.Status {
	switch {
	case attempts > 0:
		return perdure.StatusRetrying
	case due.After(noon):
		return perdure.StatusScheduled
	}
	return perdure.StatusReady
}
