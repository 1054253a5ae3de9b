package hook_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/test/enginetest"
)

// statements returns what the worker sends most: the claim and the question
// for the next due time.
func statements(st *store.Store, now store.Now) []sqldb.Stmt {
	lanes := []string{store.HookLane("test", "a"), store.HookLane("test", "b")}
	claim := store.Claim{
		Queue: store.HookQueue("test"), Lanes: lanes, Worker: "w", Token: "019a0000-0000-7000-8000-000000000001", Lease: time.Minute, Limit: 16,
	}
	stmts := st.Hooks().Claim(claim, now, func(store.Claimed) {})
	return append(stmts, st.Hooks().Next(claim.Queue, lanes, 1, now, func(time.Duration) {}))
}

// A claim looks at what it claims and at nothing else, however much waits.
func TestTheClaimIsFlatOnPostgres(t *testing.T) {
	t.Parallel()
	db := enginetest.New(t, enginetest.Postgres)
	eng := db.Open(t, nil)
	conn, err := pgx.Connect(enginetest.Context(t), db.DSN)
	enginetest.NoError(t, err)
	defer conn.Close(context.Background())
	measure := func() (most int) {
		t.Helper()
		for _, stmt := range statements(host.Of(eng).Store, nil) {
			most = max(most, buffers(t, conn, stmt))
		}
		return most
	}
	wait := func(from, to int) { // half of a name that is handled, half of others
		t.Helper()
		_, err := conn.Exec(enginetest.Context(t), `
			with new as (
				insert into perdure.hook_items (id, key, namespace, name, queue, payload, policy, max_attempts, unit_id, created_at, next_attempt_at, due_at, priority)
				select gen_random_uuid(), 'x' || n, 'test', v.name, 'hook' || chr(9) || 'test' || chr(9) || v.name, '1', '{}', 1, 'u', now(), now() + interval '1 day',
					now() + case n % 2 when 0 then interval '1 day' else interval '-1 day' end, n % 3 - 1
				from generate_series($1::int, $2::int) n, lateral (select case n % 2 when 0 then 'a' else 'z' end as name) v
				returning queue, priority, due_at, id
			)
			insert into perdure.ready (queue, priority, due_at, id)
			select queue, priority, due_at, id from new`, from, to)
		enginetest.NoError(t, err)
	}
	wait(1, 1000)
	few := measure()
	wait(1001, 200_000)
	many := measure()
	_, err = conn.Exec(enginetest.Context(t), "analyze perdure.hook_items, perdure.ready")
	enginetest.NoError(t, err)
	analyzed := measure()
	t.Logf("buffers with 1,000 waiting rows: %d, with 200,000: %d, after analyze: %d", few, many, analyzed)
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
	for _, stmt := range statements(host.Of(eng).Store, &noon) {
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
			if of, scans := strings.CutPrefix(step, "SCAN "); scans && slices.Contains([]string{"perdure_hook_items", "h", "perdure_ready", "w", "r", "due"}, strings.Fields(of)[0]) {
				t.Fatalf("the plan scans the table:\n%s", strings.Join(plan, "\n"))
			}
		}
	}
}
