package server_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/perdure/perdure/internal/api"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/server"
)

// unkeyed are the POSTs without an Idempotency-Key: those that store nothing, those whose
// answer has a secret, which is stored nowhere, and those that change nothing more when
// they are repeated.
var unkeyed = []string{
	"check-statechart", "create-token", "create-actor-token", "begin-session",
	"purge-instances", "purge-hooks", "purge-tasks", "purge-outbox", "trim-audit", "reset-consumer", "retry-consumer", "skip-consumer",
	"open-worker-session", "exchange-work", "beat-worker", "release-work", // idempotent by session, exchange and token
}

// Every POST takes an Idempotency-Key, unless there is a reason, and is tested with one.
func TestEveryPostTakesAnIdempotencyKey(t *testing.T) {
	t.Parallel()
	f := open(t, enginetest.New(t, enginetest.SQLite), nil)
	var doc struct {
		Paths map[string]map[string]struct {
			Parameters []struct{ Name string }
		}
	}
	enginetest.NoError(t, json.Unmarshal(f.do(http.MethodGet, "/openapi.json", nil).body, &doc))
	for _, r := range api.Routes {
		takes := false
		for _, p := range doc.Paths[r.Path][strings.ToLower(r.Method)].Parameters {
			takes = takes || p.Name == "Idempotency-Key"
		}
		if want := r.Method == http.MethodPost && !slices.Contains(unkeyed, r.ID); takes != want {
			t.Errorf("%s takes an Idempotency-Key: %v", r.ID, takes)
		}
		if takes != (keyed[r.ID] != nil) {
			t.Errorf("%s takes an Idempotency-Key: %v, and is tested: %v", r.ID, takes, keyed[r.ID] != nil)
		}
	}
}

// deaths make the database refuse what a request has done at the last moment: on
// PostgreSQL at COMMIT, on the others, which check nothing then, by the statement before it.
var deaths = map[string][]string{
	enginetest.SQLite: {"create trigger death after update on perdure_idempotency begin select raise(abort, 'died'); end"},
	enginetest.MySQL:  {"create trigger death after update on perdure_idempotency for each row signal sqlstate '45000' set message_text = 'died'"},
	enginetest.Postgres: {
		"create function death() returns trigger language plpgsql as $$ begin raise exception 'died'; end $$",
		"create constraint trigger death after update on perdure.idempotency deferrable initially deferred for each row execute function death()",
	},
}

// revive takes death back.
func revive(t *testing.T, db enginetest.Database) {
	t.Helper()
	if db.Name != enginetest.Postgres {
		db.Exec(t, "drop trigger death")
		return
	}
	db.Exec(t, "drop function death() cascade")
}

// ready returns a server without workers on a database on which a machine was served.
func ready(t *testing.T, db enginetest.Database) *fixture {
	t.Helper()
	f := started(t, db)
	enginetest.NoError(t, f.srv.Stop(enginetest.Context(t)))
	return reopen(f, func(o *server.Options) { o.OnError = func(error) {} })
}

// A key and the entries of the audit log are committed with the effect: a request that
// dies before the commit leaves none of them, and one whose answer is lost is not done
// again.
func (Flows) AKeyAndItsEffectAreCommittedTogether(t *testing.T, db enginetest.Database) {
	f := ready(t, db)
	for _, id := range slices.Sorted(maps.Keys(keyed)) {
		if f.lacksID(id) {
			continue
		}
		r := keyed[id](f)
		before, entries := f.dies(id, r), len(f.entries())
		first := f.do(http.MethodPost, r.path, r.body, "Idempotency-Key", id, "Perdure-Reason", "caf%C3%A9")
		if first.status >= 300 || first.header.Get("Idempotency-Replayed") != "" {
			t.Fatalf("%s: %d %s", id, first.status, first.body)
		}
		after := f.db.Contents(t)
		if changed := differing(before, after); len(changed) < 2 {
			t.Errorf("%s has changed only %v", id, changed)
		}
		second := f.do(http.MethodPost, r.path, r.body, "Idempotency-Key", id)
		if second.status != first.status || string(second.body) != string(first.body) || second.header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("%s: first %d %s, then %d %s", id, first.status, first.body, second.status, second.body)
		}
		if changed := differing(after, f.db.Contents(t)); len(changed) > 0 {
			t.Errorf("%s, repeated, has changed %v", id, changed)
		}
		f.logged(id, r, entries, first)
	}
	if problems := f.verified(); len(problems) > 0 {
		t.Errorf("the audit log: %v", problems)
	}
}

// dies sends a request that cannot be committed, checks that it leaves nothing, and
// returns what there is.
func (f *fixture) dies(id string, r request) map[string]string {
	f.Helper()
	before := f.db.Contents(f)
	for _, statement := range deaths[f.db.Name] {
		f.db.Exec(f, statement)
	}
	if a := f.do(http.MethodPost, r.path, r.body, "Idempotency-Key", id); a.status != http.StatusInternalServerError {
		f.Errorf("%s, dying: %d %s", id, a.status, a.body)
	}
	revive(f.T, f.db)
	if changed := differing(before, f.db.Contents(f)); len(changed) > 0 {
		f.Errorf("%s has died and left something in %v", id, changed)
	}
	return before
}

// differing returns the tables whose contents differ.
func differing(a, b map[string]string) []string {
	var names []string
	for name := range a {
		if a[name] != b[name] {
			names = append(names, name)
		}
	}
	return names
}

// A repeat is answered as the first time, even if what it was about is gone.
func (Flows) AnAnswerOutlivesWhatItWasAbout(t *testing.T, db enginetest.Database) {
	f := ready(t, db)
	id := f.hook()
	path := "/v1/hooks/" + id + "/replay"
	first := f.want(http.StatusCreated, http.MethodPost, path, nil, "Idempotency-Key", "a")
	items := db.Table("perdure", "hook_items")
	db.Exec(t, "delete from "+items+" where coalesce("+items+".key, concat(id, '')) = ?", id)
	again := f.want(http.StatusCreated, http.MethodPost, path, nil, "Idempotency-Key", "a")
	if again.text("id") != first.text("id") {
		t.Errorf("first %v, then %v", first, again)
	}
	f.want(http.StatusNotFound, http.MethodPost, path, nil, "Idempotency-Key", "b")
}

// Of two requests with one key that are in flight in two servers, one has an effect and
// the other has its answer.
func TestTwoServersAndOneKeyHaveOneEffect(t *testing.T) {
	t.Parallel()
	one := ready(t, enginetest.New(t, enginetest.Postgres))
	two := open(t, one.db, nil)
	for _, id := range slices.Sorted(maps.Keys(keyed)) {
		r := keyed[id](one)
		answers := one.together(two, r, id)
		replayed := 0
		for _, a := range answers {
			if a.status >= 300 || string(a.body) != string(answers[0].body) {
				t.Errorf("%s: %d %s", id, a.status, a.body)
			}
			if a.header.Get("Idempotency-Replayed") == "true" {
				replayed++
			}
		}
		if replayed != 1 {
			t.Errorf("%s: %d of the two are replayed", id, replayed)
		}
	}
}

// together has two servers answer a request at once: both stand before the key until
// both are there.
func (f *fixture) together(other *fixture, r request, key string) [2]answer {
	f.Helper()
	gate, err := f.db.SQL(f).BeginTx(f.Context(), nil)
	enginetest.NoError(f, err)
	defer func() { _ = gate.Rollback() }()
	_, err = gate.ExecContext(f.Context(), "lock table perdure.idempotency in exclusive mode")
	enginetest.NoError(f, err)
	var answers [2]answer
	var both sync.WaitGroup
	for i, g := range []*fixture{f, other} {
		both.Go(func() { answers[i] = g.do(http.MethodPost, r.path, r.body, "Idempotency-Key", key) })
	}
	f.waiting(2)
	enginetest.NoError(f, gate.Rollback())
	both.Wait()
	return answers
}

// waiting returns when so many connections wait for a lock.
func (f *fixture) waiting(n int64) {
	f.Helper()
	enginetest.Eventually(f, "somebody waits for a lock", func() bool {
		return f.db.Int(f, "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'") == n
	})
}
