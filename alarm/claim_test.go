package alarm_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/test/enginetest"
)

func ignore(store.Alarm) {}

// statements returns what is sent most: the claim, the return of expired claims
// and the question for the next due time.
func statements(st *store.Store, now store.Now) []sqldb.Stmt {
	return []sqldb.Stmt{
		st.ClaimAlarms(store.AlarmClaim{Types: []string{"a", "b"}, Worker: "w", Token: "t", Lease: time.Minute, Limit: 16, Least: 1}, now, ignore),
		st.ExpiredAlarms(100, now, func(store.LostAlarm) {}),
		st.NextAlarm([]string{"a", "b"}, 1, now, func(time.Duration) {}),
	}
}

// lists returns the questions for the first page of what waits, and of what died.
func lists(st *store.Store) []sqldb.Stmt {
	return []sqldb.Stmt{
		st.ListAlarms(store.AlarmFilter{Statuses: []string{"pending"}, Limit: 10}, ignore),
		st.ListAlarms(store.AlarmFilter{Statuses: []string{"failed", "quarantined"}, Limit: 10}, ignore),
	}
}

// A claim looks at what it claims and at nothing else, however much waits.
func TestTheClaimIsFlatOnPostgres(t *testing.T) {
	t.Parallel()
	db := enginetest.New(t, enginetest.Postgres)
	eng := db.Open(t, nil)
	conn, err := pgx.Connect(enginetest.Context(t), db.DSN)
	enginetest.NoError(t, err)
	defer conn.Close(context.Background())
	st := eng.Runtime().Store
	measure := func(stmts []sqldb.Stmt) (most int) {
		t.Helper()
		for _, stmt := range stmts {
			most = max(most, buffers(t, conn, stmt))
		}
		return most
	}
	wait := func(from, to int) { // half of a type that is handled, the others due but of no concern
		t.Helper()
		_, err := conn.Exec(enginetest.Context(t), `
			insert into perdure.alarms (actor_type, actor_id, kind, alarm_id, type, payload, policy, max_attempts, sequence, generation, created_at, due_at, occurs_at, priority)
			select '', '', case n % 4 when 1 then 'machine' else 'custom' end, 'x' || n, case n % 4 when 0 then 'a' when 1 then 'a' else 'z' end, '1', '{}', 1, n, 1, now(),
				now() + case n % 4 when 0 then interval '1 day' else interval '-1 day' end, now(), n % 3 - 1
			from generate_series($1::int, $2::int) n`, from, to)
		enginetest.NoError(t, err)
	}
	wait(1, 1000)
	few := measure(statements(st, nil))
	wait(1001, 100_000)
	many := measure(statements(st, nil))
	_, err = conn.Exec(enginetest.Context(t), "analyze perdure.alarms")
	enginetest.NoError(t, err)
	analyzed := measure(append(statements(st, nil), lists(st)...))
	t.Logf("buffers with 1,000 waiting rows: %d, with 100,000: %d, after analyze: %d", few, many, analyzed)
	if limit := few + 20; few > 60 || many > limit || analyzed > limit {
		t.Fatalf("buffers grow with the rows that wait: %d, %d, %d", few, many, analyzed)
	}
}

func buffers(t testing.TB, conn *pgx.Conn, stmt sqldb.Stmt) int {
	t.Helper()
	ctx := enginetest.Context(t)
	tx, err := conn.Begin(ctx)
	enginetest.NoError(t, err)
	defer tx.Rollback(ctx)
	var raw []byte
	enginetest.NoError(t, tx.QueryRow(ctx, "explain (analyze, buffers, format json) "+stmt.SQL, stmt.Args...).Scan(&raw))
	var plans []struct {
		Plan struct {
			Hit  int `json:"Shared Hit Blocks"`
			Read int `json:"Shared Read Blocks"`
		}
	}
	enginetest.NoError(t, json.Unmarshal(raw, &plans))
	return plans[0].Plan.Hit + plans[0].Plan.Read
}

func TestTheClaimScansNoTableOnSQLite(t *testing.T) {
	t.Parallel()
	db := enginetest.New(t, enginetest.SQLite)
	eng := db.Open(t, nil)
	raw := db.SQL(t)
	for _, stmt := range append(statements(eng.Runtime().Store, &noon), lists(eng.Runtime().Store)...) {
		args := make([]any, len(stmt.Args))
		for i, arg := range stmt.Args {
			args[i] = fmt.Sprint(arg)
		}
		rows, err := raw.QueryContext(enginetest.Context(t), "explain query plan "+stmt.SQL, args...)
		enginetest.NoError(t, err)
		defer rows.Close()
		var plan []string
		for rows.Next() {
			var id, parent, unused int
			var detail string
			enginetest.NoError(t, rows.Scan(&id, &parent, &unused, &detail))
			plan = append(plan, detail)
		}
		enginetest.NoError(t, rows.Err())
		for _, step := range plan {
			scans := strings.HasPrefix(step, "SCAN perdure_alarms") || strings.HasPrefix(step, "SCAN a")
			if scans && !strings.Contains(step, "USING INDEX") && !strings.Contains(step, "COVERING INDEX") {
				t.Fatalf("the plan scans the table:\n%s\n%s", stmt.SQL, strings.Join(plan, "\n"))
			}
		}
	}
}
