package alarm_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/internal/work"
)

func ignore(store.Alarm) {}

// statements returns what is sent most: the claim, the return of expired claims
// and the question for the next due time.
func statements(st *store.Store, now store.Now) []sqldb.Stmt {
	claim := store.Claim{
		Queue: store.AlarmQueue, Lanes: []string{store.AlarmLane("a"), store.AlarmLane("b")}, Worker: "w", Token: work.NewID(), Lease: time.Minute, Limit: 16,
	}
	stmts := st.Alarms().Claim(claim, now, func(store.Claimed) {})
	return append(stmts, st.ExpiredLeases(claim.Queue, 100, now, func(store.ExpiredLease) {}), st.Alarms().SuspectsDue(claim, now, func() {}),
		st.Alarms().Next(claim.Queue, claim.Lanes, 1, now, func(time.Duration) {}))
}

// lists returns the questions for the first page of what waits, and of what died.
func lists(st *store.Store) []sqldb.Stmt {
	return []sqldb.Stmt{
		st.ListAlarms(store.AlarmFilter{Statuses: []string{store.StatusReady}, Now: time.Now(), Limit: 10}, ignore),
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
	st := host.Of(eng).Store
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
			with due as (
				insert into perdure.alarm_items (id, actor_type, actor_id, alarm_id, type, queue, payload, policy, max_attempts, sequence, generation, created_at, due_at, occurs_at, priority)
				select gen_random_uuid(), '', '', 'x' || n, case n % 2 when 0 then 'a' else 'z' end, 'alarm' || chr(9) || case n % 2 when 0 then 'a' else 'z' end, '1', '{}', 1, n, 1, now(),
					now() + case n % 2 when 0 then interval '1 day' else interval '-1 day' end, now(), n % 3 - 1
				from generate_series($1::int, $2::int) n
				returning queue, priority, due_at, id
			)
			insert into perdure.ready (queue, priority, due_at, id)
			select queue, priority, due_at, id
			from due`, from, to)
		enginetest.NoError(t, err)
	}
	wait(1, 1000)
	few := measure(statements(st, nil))
	wait(1001, 100_000)
	many := measure(statements(st, nil))
	_, err = conn.Exec(enginetest.Context(t), "analyze perdure.alarm_items, perdure.ready")
	enginetest.NoError(t, err)
	analyzed, listed := measure(statements(st, nil)), measure(lists(st))
	t.Logf("buffers with 1,000 waiting rows: %d, with 100,000: %d, after analyze: %d, of a page: %d", few, many, analyzed, listed)
	if limit := few + 20; few > 60 || many > limit || analyzed > limit {
		t.Fatalf("buffers grow with the rows that wait: %d, %d, %d", few, many, analyzed)
	}
	if listed > 100 { // each of 10 rows is looked for in ready
		t.Fatalf("a page of 10 alarms reads %d buffers", listed)
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
	for _, stmt := range append(statements(host.Of(eng).Store, &noon), lists(host.Of(eng).Store)...) {
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
			scans := strings.HasPrefix(step, "SCAN perdure_alarm_items") || strings.HasPrefix(step, "SCAN perdure_ready") || step == "SCAN h" || step == "SCAN w" || step == "SCAN due"
			if scans && !strings.Contains(step, "USING INDEX") && !strings.Contains(step, "COVERING INDEX") {
				t.Fatalf("the plan scans the table:\n%s\n%s", stmt.SQL, strings.Join(plan, "\n"))
			}
		}
	}
}
