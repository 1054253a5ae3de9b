package task_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/perdure/perdure/internal/test/enginetest"
)

// stageOf is one way in which a worker may use a task that it holds.
type stageOf struct {
	name     string
	function string
	// right is the payload that the stage accepts.
	right map[string]any
}

// held is a task that a worker has claimed.
type held struct {
	id      int64
	token   string
	payload map[string]any
}

func claim(t *testing.T, worker *pgx.Conn, taskType string) (h held) {
	t.Helper()
	var payload string
	err := worker.QueryRow(enginetest.Context(t), "select task_id, token::text, payload::text from queues.dequeue_next_available_tasks('w', array[$1], 1, '1 hour')", taskType).Scan(&h.id, &h.token, &payload)
	enginetest.NoError(t, err)
	enginetest.NoError(t, json.Unmarshal([]byte(payload), &h.payload))
	return h
}

// functionsOfWorkers are functions that are allowed for workers.
var functionsOfWorkers = []string{
	"comms.send_email_supervisor", "comms.get_email_payload", "comms.record_email_success", "comms.record_email_failure",
	"comms.send_sms_supervisor", "comms.get_sms_payload", "comms.record_sms_success", "comms.record_sms_failure",
}

// forgery returns a payload that is not the right one: nested, doubled, merged,
// renamed, or of another task.
func forgery(r *rand.Rand, right, stored, foreign map[string]any) map[string]any {
	p := clone(right)
	for range 1 + r.IntN(3) {
		keys := make([]string, 0, len(p))
		for k := range p {
			keys = append(keys, k)
		}
		key := func() string { return keys[r.IntN(len(keys))] }
		switch r.IntN(12) {
		case 0:
			p = map[string]any{"original_payload": p}
		case 1:
			p["original_payload"] = stored
		case 2:
			p = merge(p, map[string]any{"original_payload": merge(stored, map[string]any{"original_payload": stored})})
		case 3:
			p = merge(p, map[string]any{"db_function": functionsOfWorkers[r.IntN(len(functionsOfWorkers))]})
		case 4:
			p = merge(stored, p)
		case 5:
			p = merge(p, map[string]any{"run_count": 999, "idle_runs": r.IntN(99)})
		case 6:
			k := key()
			p["_"+k] = p[k]
			delete(p, k)
		case 7:
			delete(p, key())
		case 8:
			p[key()] = []any{nil, 1, "x", []any{stored}, map[string]any{}, true}[r.IntN(6)]
		case 9:
			p = merge(p, map[string]any{"original_payload": foreign})
		case 10:
			p = merge(p, map[string]any{"worker_payload": r.IntN(9), "error": "no"})
		case 11:
			p = []map[string]any{foreign, {}, {"original_payload": foreign, "worker_payload": nil}, {"original_payload": []any{stored}, "error": "no"}, merge(p, foreign)}[r.IntN(5)]
		}
		p = clone(p)
		if len(p) == 0 {
			break
		}
	}
	return p
}

func merge(a, b map[string]any) map[string]any {
	all := map[string]any{}
	for k, v := range a {
		all[k] = v
	}
	for k, v := range b {
		all[k] = v
	}
	return all
}

// clone returns a payload as it is after a round trip as JSON.
func clone(p map[string]any) (all map[string]any) {
	raw, _ := json.Marshal(p)
	_ = json.Unmarshal(raw, &all)
	return all
}

// right reports whether a worker that holds the task may run the function with the
// payload.
func (h held) right(function string, p map[string]any) bool {
	report := clone(p)
	delete(report, "original_payload")
	message, _ := report["error"].(string)
	_, result := report["worker_payload"]
	told := reflect.DeepEqual(p["original_payload"], any(h.payload)) && len(report) == 1
	switch function {
	case h.payload["db_function"], h.payload["before_handler"]:
		return reflect.DeepEqual(p, h.payload)
	case h.payload["success_handler"]:
		return told && result
	case h.payload["error_handler"]:
		return told && message != ""
	}
	return false
}

// in runs fn in a transaction of the worker that holds the task, and rolls it back
// unless keep is set.
func (h held) in(t *testing.T, worker *pgx.Conn, keep bool, fn func(run func(function string, p map[string]any) error, tx pgx.Tx)) {
	t.Helper()
	ctx := enginetest.Context(t)
	tx, err := worker.Begin(ctx)
	enginetest.NoError(t, err)
	if h.token != "" {
		_, err = tx.Exec(ctx, "select queues.hold($1, $2::uuid)", h.id, h.token)
		enginetest.NoError(t, err)
	}
	fn(func(function string, p map[string]any) error {
		raw, err := json.Marshal(p)
		enginetest.NoError(t, err)
		_, err = tx.Exec(ctx, "select internal.run_function($1, $2::jsonb)", function, string(raw))
		return err
	}, tx)
	if keep {
		enginetest.NoError(t, tx.Commit(ctx))
		return
	}
	enginetest.NoError(t, tx.Rollback(ctx))
}

// accepted returns which of n forgeries of a stage the database has accepted, or has
// refused for another reason than the right.
func accepted(t *testing.T, worker *pgx.Conn, r *rand.Rand, n int, h held, s stageOf, foreign map[string]any) (wrong []string) {
	t.Helper()
	ctx := enginetest.Context(t)
	h.in(t, worker, false, func(run func(string, map[string]any) error, tx pgx.Tx) {
		for tried := 0; tried < n; {
			p, function := forgery(r, s.right, h.payload, foreign), s.function
			if r.IntN(4) == 0 {
				function = functionsOfWorkers[r.IntN(len(functionsOfWorkers))]
			}
			if h.token != "" && h.right(function, p) {
				continue
			}
			tried++
			_, err := tx.Exec(ctx, "savepoint s")
			enginetest.NoError(t, err)
			if err := run(function, p); state(err) != "42501" {
				wrong = append(wrong, fmt.Sprintf("%s: %s with %v: %v", s.name, function, p, err))
			}
			_, err = tx.Exec(ctx, "rollback to savepoint s")
			enginetest.NoError(t, err)
		}
	})
	return wrong
}

// formerCapability is the condition that a worker could satisfy with forgeries.
const formerCapability = `create or replace function queues.require_task(function_name text, payload jsonb) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform
  from queues.task t
  where t.task_id = nullif(current_setting('perdure.task_id', true), '')::bigint and t.token::text = current_setting('perdure.task_token', true)
    and t.payload in (require_task.payload, require_task.payload -> 'original_payload')
    and require_task.function_name in (t.payload ->> 'db_function', t.payload ->> 'before_handler', t.payload ->> 'success_handler', t.payload ->> 'error_handler');
  if not found then
    raise exception 'no task that names % with this payload is held', function_name using errcode = 'insufficient_privilege';
  end if;
end $$`

// A worker can run the function of the stage that its task is in, with the payload of
// that stage, and nothing else: over forged payloads of every shape, in every stage,
// and after the end. The condition that was used before does not pass this test.
func TestAWorkerCannotForgeAPayload(t *testing.T) {
	t.Parallel()
	db := enginetest.Empty(t, enginetest.Postgres)
	eng := db.Open(t, nil)
	f := &fixture{db: db, eng: eng}
	f.email(t)
	f.email(t)
	worker, owner := connect(t, as(t, db.DSN, "perdure_worker")), connect(t, db.DSN)
	ctx, seed, n := enginetest.Context(t), rand.Uint64(), 500
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	supervisor, other := claim(t, worker, "db_function"), claim(t, worker, "db_function")

	try := func(h held, s stageOf) {
		t.Helper()
		for _, wrong := range accepted(t, worker, r, n, h, s, other.payload) {
			t.Error(wrong)
		}
		if h.token == "" {
			return
		}
		current := text(t, owner, "select pg_get_functiondef('queues.require_task(text, jsonb)'::regprocedure)")
		_, err := owner.Exec(ctx, formerCapability)
		enginetest.NoError(t, err)
		if len(accepted(t, worker, r, n, h, s, other.payload)) == 0 {
			t.Errorf("%s: the former condition is not caught in %d forgeries", s.name, n)
		}
		_, err = owner.Exec(ctx, current)
		enginetest.NoError(t, err)
	}
	use := func(h held, s stageOf, complete bool) {
		t.Helper()
		h.in(t, worker, true, func(run func(string, map[string]any) error, tx pgx.Tx) {
			enginetest.NoError(t, run(s.function, s.right))
			if complete {
				_, err := tx.Exec(ctx, "select queues.complete($1, $2::uuid)", h.id, h.token)
				enginetest.NoError(t, err)
			}
		})
	}

	looks := stageOf{"supervisor", "comms.send_email_supervisor", supervisor.payload}
	try(supervisor, looks)
	use(supervisor, looks, true)
	try(held{payload: supervisor.payload}, stageOf{"supervisor after its end", looks.function, supervisor.payload})

	email := claim(t, worker, "email")
	before := stageOf{"before-handler", "comms.get_email_payload", email.payload}
	success := stageOf{"success handler", "comms.record_email_success", map[string]any{"original_payload": email.payload, "worker_payload": map[string]any{"id": "m-1"}}}
	failure := stageOf{"error handler", "comms.record_email_failure", map[string]any{"original_payload": email.payload, "error": "provider is down"}}
	for _, s := range []stageOf{before, success, failure} {
		try(email, s)
	}
	use(email, before, false)
	use(email, success, false)
	// It was sent: nothing else can be said of it, and it is not prepared again.
	another := stageOf{"another success", success.function, map[string]any{"original_payload": email.payload, "worker_payload": "other"}}
	for _, s := range []stageOf{before, failure, another} {
		email.in(t, worker, false, func(run func(string, map[string]any) error, _ pgx.Tx) {
			if err := run(s.function, s.right); state(err) != "42501" {
				t.Errorf("%s after a success: %v", s.name, err)
			}
		})
	}
	_, err := worker.Exec(ctx, "select queues.fail($1, $2::uuid, 'x', '0s', '{\"error\": \"no\"}')", email.id, email.token)
	enginetest.NoError(t, err)
	equal(t, "outcome after another one was given", text(t, owner, "select outcome::text from queues.task where task_id = $1", email.id), `{"worker_payload": {"id": "m-1"}}`)
	email = claim(t, worker, "email")
	use(email, success, true)
	f.hasFacts(t, "email", 1, 1, 0, 1)
}
