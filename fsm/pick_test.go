package fsm_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/host"
	"github.com/perdure/perdure/internal/sqldb"
	"github.com/perdure/perdure/internal/store"
	"github.com/perdure/perdure/internal/test/enginetest"
)

// plan is what PostgreSQL says of a statement that it has run.
type plan struct {
	Hit   int    `json:"Shared Hit Blocks"`
	Read  int    `json:"Shared Read Blocks"`
	Node  string `json:"Node Type"`
	Index string `json:"Index Name"`
	Plans []plan
}

func (p plan) String() string {
	text := p.Node
	if p.Index != "" {
		text += " " + p.Index
	}
	for _, sub := range p.Plans {
		text += " (" + sub.String() + ")"
	}
	return text
}

// explain runs a statement, rolls it back and returns how it went.
func (f *fixture) explain(stmt sqldb.Stmt) plan {
	f.t.Helper()
	tx, err := f.db.SQL(f.t).BeginTx(f.t.Context(), nil)
	enginetest.NoError(f.t, err)
	defer tx.Rollback()
	var text []byte
	enginetest.NoError(f.t, tx.QueryRowContext(f.t.Context(), "explain (analyze, buffers, format json) "+stmt.SQL, stmt.Args...).Scan(&text))
	var plans []struct{ Plan plan }
	enginetest.NoError(f.t, json.Unmarshal(text, &plans))
	return plans[0].Plan
}

// cost is how many buffers a pick of 10, and the look for the next wake, touch.
func (f *fixture) cost() (pick, next int, how plan) {
	f.t.Helper()
	rt := host.Of(f.eng)
	claim := store.Claim{Queue: fsm.DefaultQueue, Worker: "w", Token: rt.NewID(), Lease: minute, Limit: 10}
	how = f.explain(rt.Store.Instances().Claim(claim, rt.Now(), func(store.Claimed) {})[0])
	wake := f.explain(rt.Store.NextInstance(fsm.DefaultQueue, []store.KnownStep{{Definition: store.Definition{FSM: "m", Version: 1}, Step: "only"}}, 1, rt.Now(), func(time.Duration) {}))
	return how.Hit + how.Read, wake.Hit + wake.Read, how
}

// fill inserts n instances of a kind; each part inserts what else belongs to them.
func (f *fixture) fill(n int, kind string, priority int, due string, parts ...string) {
	f.t.Helper()
	f.db.Exec(f.t, fmt.Sprintf(`
		insert into perdure.instances (id, fsm, version, step, state, queue, priority, due_at, created_at, partition_key)
		select md5('%s' || i)::uuid, '%s', 1, 'only', '{"payload": "some state of an instance, of about a hundred bytes, as they often are in practice"}',
			'default', %d, timestamptz '2026-01-01Z' + (%s), '2026-01-01Z', case when '%s' = 'queued' then 'busy' end
		from generate_series(1, %d) i`, kind, kind, priority, due, kind, n))
	for _, part := range parts {
		f.db.Exec(f.t, strings.ReplaceAll(part, "KIND", "'"+kind+"'"))
	}
}

const fillReady = `insert into perdure.ready (queue, priority, due_at, id) select queue, priority, due_at, id from perdure.instances where fsm = KIND`

// The cost of a pick does not depend on how many instances there are, nor on how
// many at the head of the queue cannot be run: suspects, future ones (case 58),
// unrouted ones and those in the queue of a partition (case 59). 1,000 and 30,000
// instances with 2,000 blocked ones of each kind; with PERDURE_SOAK=10 and more,
// 1,000,000 with 10,000.
func TestThePickIsFlat(t *testing.T) {
	t.Parallel()
	many, blocked := 30_000, 2_000
	if rounds(1) >= 10 {
		many, blocked = 1_000_000, 10_000
	}
	f := newFixture(t, enginetest.New(t, enginetest.Postgres), nil)
	f.clock.Advance(time.Hour) // everything below is due, or after this hour
	f.fill(1000, "m", 0, "i * interval '1 millisecond'", fillReady)
	f.db.Exec(t, "vacuum analyze perdure.ready, perdure.instances")
	pickFew, nextFew, _ := f.cost()
	f.fill(blocked, "suspect", -1, "interval '-1 hour'",
		`insert into perdure.ready (queue, suspect, priority, due_at, id) select queue, true, priority, due_at, id from perdure.instances where fsm = KIND`)
	f.fill(blocked, "future", -1, "interval '2 hours'", fillReady)
	f.fill(blocked, "unrouted", -1, "interval '-1 hour'",
		`insert into perdure.unrouted (queue, fsm, version, id) select queue, fsm, version, id from perdure.instances where fsm = KIND`)
	f.fill(blocked, "queued", -1, "interval '-1 hour'",
		`insert into perdure.partition_waiting (key, seq, id) select 'busy', row_number() over (), id from perdure.instances where fsm = KIND and id <> md5('queued1')::uuid`,
		`insert into perdure.partition_heads (key, head, tail) select 'busy', md5('queued1')::uuid, count(*) from perdure.partition_waiting`,
		`insert into perdure.ready (queue, priority, due_at, id) select queue, priority, timestamptz '2030-01-01Z', id from perdure.instances where id = md5('queued1')::uuid`,
		`update perdure.instances set due_at = '2030-01-01Z' where id = md5('queued1')::uuid`)
	f.fill(many, "more", 0, "i * interval '1 microsecond'", fillReady)
	f.db.Exec(t, "vacuum analyze perdure.ready, perdure.instances, perdure.partition_waiting, perdure.unrouted")
	pickMany, nextMany, how := f.cost()
	t.Logf("buffers of a pick of 10: %d of 1,000, %d of %d with %d blocked; of a look for the next wake: %d, %d", pickFew, pickMany, many, 4*blocked, nextFew, nextMany)
	t.Logf("plan: %v", how)
	if pickMany > pickFew+60 { // deeper indexes, and no more
		t.Errorf("a pick touches %d buffers of 1,000 instances and %d of %d", pickFew, pickMany, many)
	}
	if nextMany > nextFew+40 {
		t.Errorf("a look for the next wake touches %d buffers of 1,000 instances and %d of %d", nextFew, nextMany, many)
	}
	for _, node := range []string{"Seq Scan", "Sort (Index"} {
		if strings.Contains(how.String(), node) && !strings.Contains(how.String(), "CTE") {
			t.Errorf("the plan has a %s: %v", node, how)
		}
	}
}

// An old transaction keeps dead rows alive (case 28; the notes: for 10 minutes at
// 500 steps a second). What it costs a pick is less than a tenth of a buffer for
// each claim that was made since, and it is over when the transaction is.
func TestCase28AnOldTransactionCostsLittle(t *testing.T) {
	t.Parallel()
	f := newFixture(t, enginetest.New(t, enginetest.Postgres), nil)
	f.register(leaf)
	n := rounds(2000)
	run := func() {
		t.Helper()
		_, err := fsm.StartMany(t.Context(), f.eng, leaf, make([]int, n), nil)
		enginetest.NoError(t, err)
		f.drain()
		f.clock.Advance(time.Second)
		_, err = fsm.StartMany(t.Context(), f.eng, leaf, make([]int, 20), nil)
		enginetest.NoError(t, err)
	}
	tx, err := f.db.SQL(t).BeginTx(t.Context(), nil)
	enginetest.NoError(t, err)
	_, err = tx.ExecContext(t.Context(), "set transaction isolation level repeatable read")
	enginetest.NoError(t, err)
	_, err = tx.ExecContext(t.Context(), "select count(*) from perdure.ready")
	enginetest.NoError(t, err)
	run()
	old, _, _ := f.cost()
	enginetest.NoError(t, tx.Rollback())
	f.drain()
	f.db.Exec(t, "vacuum perdure.ready, perdure.instances, perdure.leases")
	run()
	f.db.Exec(t, "vacuum perdure.ready, perdure.instances, perdure.leases")
	fresh, _, _ := f.cost()
	t.Logf("buffers of a pick after %d claims: %d beside an old transaction, %d without", n, old, fresh)
	if limit := fresh + n/10; old > limit {
		t.Errorf("a pick beside an old transaction touches %d buffers, more than %d", old, limit)
	}
}
