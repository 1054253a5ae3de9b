package server_test

import (
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"testing"

	"github.com/perdure/perdure/internal/test/enginetest"
)

// machines are the databases that carry state machines.
var machines = everywhere

// Flows are the main paths through the API, on every database.
type Flows struct{}

func TestFlows(t *testing.T) { enginetest.Conform(t, Flows{}, machines...) }

func (f *fixture) start(state object) string {
	f.Helper()
	return f.want(http.StatusCreated, http.MethodPost, "/v1/instances", object{"definition": "order", "state": state}).text("id")
}

// ended waits for the end of an instance.
func (f *fixture) ended(id string) object {
	f.Helper()
	return f.want(http.StatusOK, http.MethodGet, "/v1/instances/"+id+"/wait?timeout=5m", nil)
}

// reaches waits until an instance has a status.
func (f *fixture) reaches(id, status string) {
	f.Helper()
	enginetest.Eventually(f, "instance is "+status, func() bool {
		return f.want(http.StatusOK, http.MethodGet, "/v1/instances/"+id, nil).text("status") == status
	})
}

func (Flows) AnInstanceIsStartedSignalledAndDone(t *testing.T, db enginetest.Database) {
	f := started(t, db)
	id := f.start(object{"amount": 42})
	f.reaches(id, "waiting")
	f.want(http.StatusCreated, http.MethodPost, "/v1/instances/"+id+"/signals", object{"name": "approved", "payload": object{"by": "ada"}, "key": "1"})
	end := f.ended(id)
	if end.text("status") != "done" || fmt.Sprint(end["result"]) != "map[paid:42]" || end.text("finished_at") == "" {
		t.Errorf("instance: %v", end)
	}
	conflict := f.want(http.StatusConflict, http.MethodPost, "/v1/instances/"+id+"/signals", object{"name": "approved"})
	if conflict.text("code") != "conflict" {
		t.Errorf("signal to an instance that has ended: %v", conflict)
	}
	history := f.want(http.StatusOK, http.MethodGet, "/v1/instances/"+id+"/history", nil).list()
	if len(history) != 2 || history[0].text("outcome") != "created" || history[1].text("outcome") != "done" {
		t.Errorf("history: %v", history)
	}
}

func (Flows) AFailedInstanceIsFoundAndRetried(t *testing.T, db enginetest.Database) {
	f := started(t, db)
	id := f.start(object{"refuse": true})
	if end := f.ended(id); end.text("status") != "failed" || end.text("error") != "card refused" {
		t.Fatalf("instance: %v", end)
	}
	failed := f.want(http.StatusOK, http.MethodGet, "/v1/instances?status=failed&count=true", nil)
	if rows := failed.list(); len(rows) != 1 || rows[0].text("id") != id || fmt.Sprint(failed["count"]) != "map[capped:false count:1]" {
		t.Errorf("failed: %v", failed)
	}
	f.want(http.StatusOK, http.MethodPost, "/v1/instances/"+id+"/retry", nil)
	if end := f.ended(id); end.text("status") != "failed" {
		t.Errorf("after the retry: %v", end)
	}
	dry := f.want(http.StatusOK, http.MethodPost, "/v1/instances/actions", object{"action": "retry", "filter": object{"status": []string{"failed"}}, "dry_run": true})
	if dry["matched"] != 1.0 || dry["done"] != 0.0 {
		t.Errorf("dry run: %v", dry)
	}
	for range 2 {
		f.reaches(id, "failed")
		done := f.want(http.StatusOK, http.MethodPost, "/v1/instances/actions", object{"action": "retry", "filter": object{"status": []string{"failed"}}}, "Idempotency-Key", "k")
		if done["matched"] != 1.0 || done["done"] != 1.0 {
			t.Errorf("bulk retry: %v", done)
		}
	}
}

func (Flows) AnInstanceIsCancelled(t *testing.T, db enginetest.Database) {
	f := started(t, db)
	one, two := f.start(object{"amount": 1}), f.start(object{"amount": 2})
	f.reaches(one, "waiting")
	f.reaches(two, "waiting")
	f.want(http.StatusOK, http.MethodPost, "/v1/instances/"+one+"/cancel", object{"reason": "changed my mind"})
	f.want(http.StatusConflict, http.MethodPost, "/v1/instances/"+one+"/cancel", nil)
	if end := f.ended(one); end.text("status") != "cancelled" || end.text("error") != "changed my mind" {
		t.Errorf("instance: %v", end)
	}
	result := f.want(http.StatusOK, http.MethodPost, "/v1/instances/actions", object{"action": "cancel", "ids": []string{one, two}})
	if result["matched"] != 2.0 || result["done"] != 1.0 {
		t.Errorf("bulk cancel: %v", result)
	}
	if rows := f.want(http.StatusOK, http.MethodGet, "/v1/instances?status=cancelled", nil).list(); len(rows) != 2 {
		t.Errorf("%d are cancelled", len(rows))
	}
}

// A request that is sent twice with one key has one effect and one answer.
func (Flows) AnIdempotencyKeyMakesARepeatHarmless(t *testing.T, db enginetest.Database) {
	f := started(t, db)
	body := object{"definition": "order", "state": object{"amount": 1}}
	first := f.do(http.MethodPost, "/v1/instances", body, "Idempotency-Key", "a")
	second := f.do(http.MethodPost, "/v1/instances", body, "Idempotency-Key", "a")
	if first.status != http.StatusCreated || second.status != http.StatusCreated || string(first.body) != string(second.body) {
		t.Fatalf("first %d %s, second %d %s", first.status, first.body, second.status, second.body)
	}
	if first.header.Get("Idempotency-Replayed") != "" || second.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("replayed: %q, then %q", first.header.Get("Idempotency-Replayed"), second.header.Get("Idempotency-Replayed"))
	}
	if n := db.Rows(t, "perdure", "instances"); n != 1 {
		t.Errorf("%d instances", n)
	}
	other := f.want(http.StatusUnprocessableEntity, http.MethodPost, "/v1/instances", object{"definition": "order"}, "Idempotency-Key", "a")
	if other.text("code") != "invalid" {
		t.Errorf("another body with the key: %v", other)
	}
}

// An effect that fails takes its key with it.
func (Flows) AKeyIsFreeAfterAFailure(t *testing.T, db enginetest.Database) {
	f := started(t, db)
	id := f.start(object{"amount": 1})
	f.reaches(id, "waiting")
	f.want(http.StatusConflict, http.MethodPost, "/v1/instances/"+id+"/retry", nil, "Idempotency-Key", "b")
	if n := db.Rows(t, "perdure", "idempotency"); n != 0 {
		t.Errorf("%d keys after a failure", n)
	}
	f.want(http.StatusOK, http.MethodPost, "/v1/instances/"+id+"/cancel", nil, "Idempotency-Key", "b")
}

// However many send the same request at once, there is one effect.
func (Flows) RepeatsAtOnceHaveOneEffect(t *testing.T, db enginetest.Database) {
	f := started(t, db)
	var all sync.WaitGroup
	answers := make([]answer, 20)
	for i := range answers {
		all.Go(func() {
			answers[i] = f.do(http.MethodPost, "/v1/instances", object{"definition": "order"}, "Idempotency-Key", "c")
		})
	}
	all.Wait()
	for _, a := range answers {
		if a.status != http.StatusCreated && a.status != http.StatusConflict {
			t.Errorf("%d %s", a.status, a.body)
		}
	}
	if n := db.Rows(t, "perdure", "instances"); n != 1 {
		t.Errorf("%d instances", n)
	}
}

func (Flows) ABatchReportsOnEachInput(t *testing.T, db enginetest.Database) {
	f := started(t, db)
	inputs := []object{{"definition": "order", "unique_key": "x"}, {"definition": "order", "unique_key": "x"}, {"definition": "order", "delay": "1h"}}
	results := f.want(http.StatusCreated, http.MethodPost, "/v1/instances/batch", object{"instances": inputs}).list()
	if len(results) != 3 || results[0].text("id") != results[1].text("id") || results[1]["duplicate"] != true || results[2]["duplicate"] != false {
		t.Fatalf("results: %v", results)
	}
	again := f.want(http.StatusOK, http.MethodPost, "/v1/instances", object{"definition": "order", "unique_key": "x"})
	if again.text("id") != results[0].text("id") || again["duplicate"] != true {
		t.Errorf("a start with a key that is taken: %v", again)
	}
	found := f.want(http.StatusOK, http.MethodGet, "/v1/instances?unique_key=x", nil).list()
	if len(found) != 1 || found[0].text("id") != results[0].text("id") {
		t.Errorf("by its key: %v", found)
	}
	scheduled := f.want(http.StatusOK, http.MethodGet, "/v1/instances?status=scheduled", nil).list()
	if len(scheduled) != 1 || scheduled[0].text("id") != results[2].text("id") {
		t.Errorf("scheduled: %v", scheduled)
	}
}

// Pages by cursor and by Link have every row once.
func (Flows) ListsArePagedByCursor(t *testing.T, db enginetest.Database) {
	f := started(t, db)
	var inputs []object
	for i := range 25 {
		inputs = append(inputs, object{"definition": "order", "delay": fmt.Sprintf("%dh", i%5+1)})
	}
	f.want(http.StatusCreated, http.MethodPost, "/v1/instances/batch", object{"instances": inputs})
	for _, filter := range []string{"limit=4", "limit=4&definition=order", "limit=4&status=scheduled", "limit=4&step=charge"} {
		seen := map[string]bool{}
		for query := "?" + filter; query != ""; {
			a := f.do(http.MethodGet, "/v1/instances"+query, nil)
			page := f.want(http.StatusOK, http.MethodGet, "/v1/instances"+query, nil)
			for _, row := range page.list() {
				if seen[row.text("id")] {
					t.Errorf("%s: %s is listed twice", filter, row.text("id"))
				}
				seen[row.text("id")] = true
			}
			query = ""
			if next := page.text("next_cursor"); next != "" {
				query = "?" + filter + "&cursor=" + url.QueryEscape(next)
				if a.header.Get("Link") == "" {
					t.Errorf("%s: no Link", filter)
				}
			}
		}
		if len(seen) != 25 {
			t.Errorf("%s: %d of 25 are listed", filter, len(seen))
		}
	}
}
