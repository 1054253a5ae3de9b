package remote_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/remote"
	"github.com/perdure/perdure/retry"
)

// A definition is removed and stored again with other steps between two looks of a
// process: the process runs the new steps.
func (Conformance) DefinitionThatIsStoredAgainReplacesItsSteps(t *testing.T, db enginetest.Database) {
	eng := db.Open(t, nil)
	machines, err := fsm.New(eng, nil)
	enginetest.NoError(t, err)
	worker, err := remote.New(eng, machines, &remote.Options{Allow: []string{"127.0.0.1"}})
	enginetest.NoError(t, err)
	t.Cleanup(worker.Close)
	server, err := remote.New(db.Open(t, nil), nil, &remote.Options{Allow: []string{"127.0.0.1"}})
	enginetest.NoError(t, err)
	t.Cleanup(server.Close)
	e := serve(t, func(c remote.Context) any {
		if c.Step == "pack" {
			return answer{"outcome": "next", "step": "ship"}
		}
		return answer{"outcome": "done", "result": c.Step}
	})
	put := func(steps ...string) {
		t.Helper()
		stored, err := server.Put(t.Context(), definition(e, steps...))
		enginetest.NoError(t, err)
		e.know(t, stored.Generated)
	}
	put("charge")
	enginetest.NoError(t, worker.Load(t.Context()))
	enginetest.NoError(t, server.Delete(t.Context(), "order", 1))
	put("pack", "ship")
	enginetest.NoError(t, worker.Load(t.Context()))
	started, err := machines.StartNamed(t.Context(), "order", 1, []byte("{}"), nil)
	enginetest.NoError(t, err)
	_, err = machines.Process(t.Context())
	enginetest.NoError(t, err)
	if i, err := machines.Get(t.Context(), started.ID); err != nil || i.Status != fsm.Done || string(i.Result) != `"ship"` {
		t.Errorf("the instance is %s at step %s with %s (%s), %v", i.Status, i.Step, i.Result, i.Error, err)
	}
}

// An endpoint that is overloaded says when to come again, one that fails may say so
// too, or that it is of no use.
func (Conformance) EndpointsDecideAboutTheNextAttempt(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db)
	for name, c := range map[string]struct {
		handle func(e *endpoint, w http.ResponseWriter, r *http.Request)
		failed bool
		least  time.Duration
		most   time.Duration
	}{
		"429": {func(_ *endpoint, w http.ResponseWriter, _ *http.Request) {
			unavailable(w, http.StatusTooManyRequests, "3600")
		}, false, 50 * time.Minute, time.Hour},
		"503": {func(_ *endpoint, w http.ResponseWriter, _ *http.Request) {
			unavailable(w, http.StatusServiceUnavailable, "3600")
		}, false, 50 * time.Minute, time.Hour},
		"503-capped": {func(_ *endpoint, w http.ResponseWriter, _ *http.Request) {
			unavailable(w, http.StatusServiceUnavailable, "9999999")
		}, false, 23 * time.Hour, remote.MaxRetryAfter},
		"after": {func(e *endpoint, w http.ResponseWriter, r *http.Request) {
			e.answer(w, r, []byte(`{"outcome": "fail", "reason": "busy", "retry_after": "2h"}`))
		}, false, 110 * time.Minute, 2 * time.Hour},
		"final": {func(e *endpoint, w http.ResponseWriter, r *http.Request) {
			e.answer(w, r, []byte(`{"outcome": "fail", "reason": "no such card", "final": true}`))
		}, true, 0, 0},
	} {
		e := serveRaw(t, func(e *endpoint, w http.ResponseWriter, r *http.Request, _ remote.Context) { c.handle(e, w, r) })
		d := definition(e, "charge")
		d.Name, d.Retry, d.Steps[0].Retry = "order-"+name, quick, retry.Fixed(5, 30*time.Hour)
		stored, err := f.Put(t.Context(), d)
		enginetest.NoError(t, err)
		e.know(t, stored.Generated)
		before := time.Now()
		id := f.start(t, d.Name, "{}")
		if c.failed {
			if i := f.ended(t, id); i.Status != fsm.Failed || len(e.contexts()) != 1 {
				t.Errorf("%s: the instance is %s after %d attempts", name, i.Status, len(e.contexts()))
			}
			continue
		}
		var i fsm.Instance
		enginetest.Eventually(t, "it failed once", func() bool {
			i, err = f.machines.Get(t.Context(), id)
			return err == nil && i.Failures == 1
		})
		if delay := i.Due.Sub(before); delay < c.least || i.Due.Sub(time.Now()) > c.most {
			t.Errorf("%s: it is due after %v, want %v to %v", name, delay, c.least, c.most)
		}
	}
}

func unavailable(w http.ResponseWriter, status int, after string) {
	w.Header().Set("Retry-After", after)
	w.WriteHeader(status)
}
