package server_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/perdure/perdure/internal/api"
	"github.com/perdure/perdure/internal/test/enginetest"
)

// worker is a worker of the server that a test drives call by call.
type worker struct {
	*fixture
	session string
}

// step is an entry of serves.
func stepsOf(machine string, names ...string) object {
	return object{"kind": "step", "machine": machine, "names": names}
}

// work opens a session.
func (f *fixture) work(lease string, serves ...object) *worker {
	f.Helper()
	hello := object{"protocol": 1, "name": "test", "slots": 50, "serves": serves, "lease": lease}
	o := f.want(http.StatusCreated, http.MethodPost, "/v1/worker/sessions", hello)
	if refused, _ := o["refused"].([]any); len(refused) > 0 {
		f.Fatalf("refused: %v", refused)
	}
	w := &worker{fixture: f, session: o.text("session")}
	f.Cleanup(func() { f.do(http.MethodDelete, "/v1/worker/sessions/"+w.session, nil) }) // returns its work
	return w
}

// exchange makes one call.
func (w *worker) exchange(ask object) object {
	w.Helper()
	ask["session"] = w.session
	return w.want(http.StatusOK, http.MethodPost, "/v1/worker/exchange", ask)
}

// fetch calls until it has n work items.
func (w *worker) fetch(n int) []object {
	w.Helper()
	var all []object
	for deadline := time.Now().Add(enginetest.Patience); len(all) < n; {
		if time.Now().After(deadline) {
			w.Fatalf("got %d work items, want %d", len(all), n)
		}
		all = append(all, items(w.exchange(object{"max": n - len(all), "hold": "5s"}), "work")...)
	}
	return all
}

// decide sends one outcome and returns its status.
func (w *worker) decide(token string, outcome object) string {
	w.Helper()
	o := object{"token": token}
	for k, v := range outcome {
		o[k] = v
	}
	return items(w.exchange(object{"outcomes": []object{o}}), "results")[0].text("status")
}

// items returns a list of an answer.
func items(o object, name string) []object {
	rows, _ := o[name].([]any)
	all := make([]object, len(rows))
	for i, row := range rows {
		m, _ := row.(map[string]any)
		all[i] = m
	}
	return all
}

// begin starts an instance of a definition and returns its id.
func (f *fixture) begin(definition string, state any) string {
	f.Helper()
	return f.want(http.StatusCreated, http.MethodPost, "/v1/instances", object{"definition": definition, "state": state}).text("id")
}

// until reads a resource until it has a status.
func (f *fixture) until(path, status string) object {
	f.Helper()
	for deadline := time.Now().Add(enginetest.Patience); ; {
		o := f.want(http.StatusOK, http.MethodGet, path, nil)
		if o.text("status") == status {
			return o
		}
		if time.Now().After(deadline) {
			f.Fatalf("%s is %v, want %s", path, o, status)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func TestAWorkerRunsTheStepsOfAMachine(t *testing.T) {
	t.Parallel()
	for _, database := range everywhere {
		t.Run(database, func(t *testing.T) {
			t.Parallel()
			f := started(t, enginetest.New(t, database))
			w := f.work("30s", stepsOf("parcel", "pack", "send"))
			id := f.begin("parcel", object{"weight": 3})
			got := w.fetch(1)[0]
			data, _ := got["data"].(map[string]any)
			if got.text("kind") != "step" || got.text("name") != "pack" || got.text("id") != id || data["state"].(map[string]any)["weight"] != 3.0 || got["attempt"] != 1.0 {
				t.Fatalf("work is %v", got)
			}
			token := got.text("token")
			if status := w.decide(token, object{"outcome": "fly"}); status != "invalid" {
				t.Fatalf("an unknown outcome is %s", status)
			}
			next := object{"outcome": "next", "step": "send", "state": object{"packed": true}}
			if status := w.decide(token, next); status != "accepted" {
				t.Fatalf("outcome is %s", status)
			}
			if status := w.decide(token, next); status != "duplicate" {
				t.Fatalf("the same outcome again is %s", status)
			}
			if status := w.decide(token, object{"outcome": "done"}); status != "conflict" {
				t.Fatalf("another outcome is %s", status)
			}
			got = w.fetch(1)[0]
			if got.text("name") != "send" {
				t.Fatalf("work is %v", got)
			}
			if status := w.decide(got.text("token"), object{"outcome": "done", "result": 7}); status != "accepted" {
				t.Fatalf("outcome is %s", status)
			}
			if o := f.until("/v1/instances/"+id, "done"); o["result"] != 7.0 {
				t.Fatalf("instance is %v", o)
			}
			if status := w.decide("0198c5a8-0000-7000-8000-000000000000.x", object{"outcome": "done"}); status != "stale" {
				t.Fatalf("an unknown token is %s", status)
			}
		})
	}
}

func TestAWorkerRunsHooksAndAlarms(t *testing.T) {
	t.Parallel()
	for _, database := range everywhere {
		t.Run(database, func(t *testing.T) {
			t.Parallel()
			f := started(t, enginetest.New(t, database))
			w := f.work("30s", object{"kind": "hook", "namespace": "node", "names": []string{"mail"}}, object{"kind": "alarm", "names": []string{"report"}})
			id := f.want(http.StatusCreated, http.MethodPost, "/v1/hooks", object{"namespace": "node", "name": "mail", "payload": object{"to": "a"}}).text("id")
			got := w.fetch(1)[0]
			data, _ := got["data"].(map[string]any)
			if got.text("kind") != "hook" || got.text("key") != id || data["payload"].(map[string]any)["to"] != "a" {
				t.Fatalf("work is %v", got)
			}
			if status := w.decide(got.text("token"), object{"outcome": "fail", "reason": "no net", "retry_after": "0s"}); status != "accepted" {
				t.Fatalf("failure is %s", status)
			}
			got = w.fetch(1)[0]
			if got["attempt"] != 2.0 {
				t.Fatalf("work is %v", got)
			}
			if status := w.decide(got.text("token"), object{"outcome": "ok"}); status != "accepted" {
				t.Fatalf("outcome is %s", status)
			}
			f.until("/v1/hooks/"+id, "done")
			f.want(http.StatusOK, http.MethodPut, "/v1/alarms/nightly", object{"type": "report", "at": time.Now().UTC().Format(time.RFC3339), "payload": object{"n": 1}})
			got = w.fetch(1)[0]
			if got.text("kind") != "alarm" || got.text("name") != "report" {
				t.Fatalf("work is %v", got)
			}
			if status := w.decide(got.text("token"), object{"outcome": "ok"}); status != "accepted" {
				t.Fatalf("outcome is %s", status)
			}
		})
	}
}

// A lost answer: the same exchange gets the same work. Work that was released runs again, without
// a failed attempt.
func TestAnExchangeCanBeRepeated(t *testing.T) {
	t.Parallel()
	f := started(t, enginetest.New(t, enginetest.SQLite))
	w := f.work("30s", stepsOf("parcel", "pack"))
	f.begin("parcel", nil)
	ask := object{"exchange": "one", "max": 5, "hold": "20s"}
	first, again := items(w.exchange(ask), "work"), items(w.exchange(ask), "work")
	if len(first) != 1 || len(again) != 1 || first[0].text("token") != again[0].text("token") {
		t.Fatalf("first %v, then %v", first, again)
	}
	token := first[0].text("token")
	f.want(http.StatusNoContent, http.MethodPost, "/v1/worker/release", object{"session": w.session, "tokens": []string{token}})
	second := w.fetch(1)[0]
	if second.text("token") == token || second["attempt"] != 1.0 || second["crashes"] != 0.0 {
		t.Fatalf("work is %v", second)
	}
	if status := w.decide(token, object{"outcome": "done"}); status != "stale" {
		t.Fatalf("outcome of a released claim is %s", status)
	}
	if len(items(w.exchange(ask), "work")) != 0 {
		t.Fatal("released work was handed out again")
	}
	if status := w.decide(second.text("token"), object{"outcome": "done"}); status != "accepted" {
		t.Fatalf("outcome is %s", status)
	}
}

// A worker that sends no heartbeats has crashed. Its outcome is refused, and its work counts a
// crash and runs elsewhere.
func TestAWorkerPastItsLeaseIsRefused(t *testing.T) {
	t.Parallel()
	for _, database := range everywhere {
		t.Run(database, func(t *testing.T) {
			t.Parallel()
			f := started(t, enginetest.New(t, database))
			dead, alive := f.work("1s", stepsOf("parcel", "pack")), f.work("60s", stepsOf("parcel", "pack"))
			id := f.begin("parcel", nil)
			got := dead.fetch(1)[0]
			second := alive.fetch(1)[0]
			if second.text("id") != id || second["crashes"] != 1.0 {
				t.Fatalf("work is %v", second)
			}
			if a := f.do(http.MethodPost, "/v1/worker/exchange", object{"session": dead.session, "outcomes": []object{{"token": got.text("token"), "outcome": "done"}}}); a.status != http.StatusNotFound {
				t.Fatalf("the session of a dead worker: %d", a.status)
			}
			other := f.work("60s", stepsOf("parcel", "pack"))
			if status := other.decide(got.text("token"), object{"outcome": "done"}); status != "stale" {
				t.Fatalf("outcome is %s", status)
			}
			if status := alive.decide(second.text("token"), object{"outcome": "done"}); status != "accepted" {
				t.Fatalf("outcome is %s", status)
			}
		})
	}
}

// A cancellation ends the wait of a call at once.
func TestACancellationIsPushedToTheWorker(t *testing.T) {
	t.Parallel()
	f := started(t, enginetest.New(t, enginetest.SQLite))
	w := f.work("60s", stepsOf("parcel", "pack"))
	id := f.begin("parcel", nil)
	token := w.fetch(1)[0].text("token")
	waiting := make(chan object, 1)
	go func() { waiting <- w.exchange(object{"max": 1, "hold": "60s"}) }()
	f.want(http.StatusOK, http.MethodPost, "/v1/instances/"+id+"/cancel", object{"reason": "no"})
	select {
	case o := <-waiting:
		if c := items(o, "cancel"); len(c) != 1 || c[0].text("token") != token || c[0].text("reason") != "cancelled" {
			t.Fatalf("answer is %v", o)
		}
	case <-time.After(enginetest.Patience):
		t.Fatal("the cancellation was not pushed")
	}
	if status := w.decide(token, object{"outcome": "done"}); status != "stale" {
		t.Fatalf("outcome of cancelled work is %s", status)
	}
}

// Work is shared by the workers that wait.
func TestWaitingWorkersShareABatch(t *testing.T) {
	t.Parallel()
	f := started(t, enginetest.New(t, enginetest.SQLite))
	first, second := f.work("60s", stepsOf("parcel", "pack")), f.work("60s", stepsOf("parcel", "pack"))
	got := make(chan int, 2)
	for _, w := range []*worker{first, second} {
		go func() { got <- len(items(w.exchange(object{"max": 10, "hold": "20s"}), "work")) }()
	}
	var batch []object
	for range 10 {
		batch = append(batch, object{"definition": "parcel"})
	}
	f.want(http.StatusCreated, http.MethodPost, "/v1/instances/batch", object{"instances": batch})
	if a, b := <-got, <-got; a == 0 || b == 0 {
		t.Fatalf("the workers got %d and %d", a, b)
	}
}

// A token of a worker opens only the routes of workers, and only what its scope allows.
func TestATokenOfAWorkerIsLimitedToItsScope(t *testing.T) {
	t.Parallel()
	for _, database := range everywhere {
		t.Run(database, func(t *testing.T) {
			t.Parallel()
			s := secureOn(t, database)
			enginetest.NoError(t, s.srv.Start())
			s.token = s.tokens[api.Admin]
			s.want(http.StatusUnprocessableEntity, http.MethodPost, "/v1/tokens", object{"name": "x", "role": "viewer", "scope": object{"kinds": []string{"step"}}})
			issued := s.want(http.StatusCreated, http.MethodPost, "/v1/tokens", object{
				"name": "node", "role": "worker", "scope": object{"kinds": []string{"step"}, "names": []string{"par*"}},
			})
			s.token = issued.text("token")
			s.want(http.StatusForbidden, http.MethodGet, "/v1/instances", nil)
			s.want(http.StatusForbidden, http.MethodPost, "/v1/instances", object{"definition": "order"})
			o := s.want(http.StatusCreated, http.MethodPost, "/v1/worker/sessions", object{"protocol": 1, "serves": []object{
				stepsOf("parcel", "pack"), stepsOf("invoice", "write"), {"kind": "hook", "namespace": "parts", "names": []string{"x"}},
			}})
			refused := items(o, "refused")
			if len(refused) != 2 || refused[0]["serves"] != 1.0 || refused[0].text("code") != "forbidden" || refused[1]["serves"] != 2.0 {
				t.Fatalf("refused: %v", refused)
			}
			s.token = s.tokens[api.Admin]
			if a := s.do(http.MethodPost, "/v1/worker/exchange", object{"session": o.text("session"), "max": 1}); a.status != http.StatusNotFound {
				t.Fatalf("the session of another principal: %d", a.status)
			}
			s.want(http.StatusUpgradeRequired, http.MethodPost, "/v1/worker/sessions", object{"protocol": 9, "serves": []object{stepsOf("parcel", "pack")}})
		})
	}
}

// workers calls every route of workers.
func (v tour) workers() {
	v.Helper()
	w := v.work("60s", stepsOf("parcel", "pack"))
	v.begin("parcel", nil)
	got := w.fetch(1)[0]
	pulse := v.want(http.StatusOK, http.MethodPost, "/v1/worker/beat", object{"session": w.session, "running": []string{got.text("token"), "none"}})
	if lost, _ := pulse["lost"].([]any); len(lost) != 1 || lost[0] != "none" {
		v.Errorf("pulse: %v", pulse)
	}
	if status := w.decide(got.text("token"), object{"outcome": "done"}); status != "accepted" {
		v.Errorf("outcome: %s", status)
	}
	v.want(http.StatusNoContent, http.MethodPost, "/v1/worker/release", object{"session": w.session, "tokens": []string{}})
	v.want(http.StatusNoContent, http.MethodDelete, "/v1/worker/sessions/"+w.session, nil)
}
