package store

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/internal/sqldb"
)

// instanceColumns is the query for the columns of the instances.
var instanceColumns = map[string]string{
	sqldb.Postgres: "select column_name::text from information_schema.columns where table_schema = 'perdure' and table_name = 'instances'",
	sqldb.SQLite:   "select name from pragma_table_info('perdure_instances')",
}

// usedUp is the fixture of an instance none of whose columns has its default.
const usedUp = `insert into %s (id, fsm, version, step, state, queue, priority, due_at, created_at, attempt, crashes, awaits, keeps, seen, timed_out, fanout, dropped,
	error, awaited, rerun, failures, batch_limit, wait)
values ('%s', 'm', 1, 'first', '1', 'default', 0, %s, %s, 3, 2, '["a"]', %s, '[1]', %s, 1, '{}', 'no', '["a"]', %s, 2, 4, '{"for":"signals"}')`

// An instance whose step is written by the short statement is as one whose step is
// written by the general one.
func TestAPlainStepIsWrittenAsAnyOther(t *testing.T) {
	t.Parallel()
	for _, name := range []string{sqldb.SQLite, sqldb.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, st := migrated(t, name)
			plain, general, other := "00000000-0000-0000-0000-000000000001", "00000000-0000-0000-0000-000000000002", "00000000-0000-0000-0000-000000000003"
			table, at, yes := "perdure_instances", "0", "1"
			if name == sqldb.Postgres {
				table, at, yes = "perdure.instances", "'2026-01-01Z'", "true"
			}
			now := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
			step := func(id string) Step { return Step{ID: id, Step: "second", State: "2", Fanout: 5, Delay: time.Second} }
			replayed := step(other)
			replayed.Attempt = 4
			var stmts []sqldb.Stmt
			for _, id := range []string{plain, general, other} {
				stmts = append(stmts, sqldb.Exec(fmt.Sprintf(usedUp, table, id, at, at, yes, yes, yes)))
			}
			short, long := st.StepInstances([]Step{step(plain)}, &now), st.StepInstances([]Step{step(general), replayed}, &now)
			if short.SQL == long.SQL {
				t.Error("a plain step is not written by the short statement")
			}
			write(t, db, append(stmts, short, long)...)
			rows := instanceRows(t, db, name, table)
			if rows[plain] == "" || rows[plain] != rows[general] {
				t.Errorf("a plain step has written\n%s\nthe general statement\n%s", rows[plain], rows[general])
			}
		})
	}
}

func write(t *testing.T, db sqldb.DB, stmts ...sqldb.Stmt) {
	t.Helper()
	tx, err := db.Begin(t.Context(), sqldb.Write)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if err := tx.Commit(t.Context(), stmts...); err != nil {
		t.Fatal(err)
	}
}

// instanceRows returns all columns of the instances but their ids, as text by id.
func instanceRows(t *testing.T, db sqldb.DB, name, table string) map[string]string {
	t.Helper()
	var parts []string
	err := sqldb.Each(t.Context(), db, textRow(func(column string) {
		if column != "id" {
			parts = append(parts, fmt.Sprintf("'%s=' || coalesce(cast(%s as text), 'null')", column, column))
		}
	}), instanceColumns[name])
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	err = sqldb.Each(t.Context(), db, func(scan sqldb.Scan) error {
		var id, row string
		if err := scan(&id, &row); err != nil {
			return err
		}
		rows[id] = row
		return nil
	}, "select cast(id as text), "+strings.Join(parts, " || ' ' || ")+" from "+table)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}
