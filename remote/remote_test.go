package remote_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/internal/webhook"
	"github.com/perdure/perdure/remote"
)

func (Conformance) EveryOutcomeLeadsOn(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db)
	e := serve(t, func(c remote.Context) any {
		switch c.Step {
		case "begin":
			return answer{"outcome": "next", "step": "poll", "state": answer{"n": 9007199254740993}}
		case "poll":
			if c.Attempt < 3 {
				return answer{"outcome": "replay", "delay": "1ms"}
			}
			return answer{"outcome": "await", "signals": []string{"paid"}, "step": "paid", "timeout": "1h"}
		case "paid":
			return answer{"outcome": "spawn", "step": "collect", "timeout": "1h", "state": answer{"paid": c.Awaited[0].Payload}, "children": []answer{
				{"definition": "item", "state": 1}, {"definition": "item", "version": 1, "state": 2, "priority": "high", "delay": "1ms"}, {"definition": "item", "state": 3},
			}}
		}
		var results []json.RawMessage
		for _, child := range c.Children {
			results = append(results, child.Result)
		}
		return answer{"outcome": "done", "result": answer{"state": c.State, "children": results, "definition": c.Definition}}
	})
	f.put(t, e, "begin", "poll", "paid", "collect")
	items := serve(t, func(c remote.Context) any {
		if string(c.State) == "3" {
			return answer{"outcome": "stop", "reason": "sold out"}
		}
		return answer{"outcome": "done", "result": c.State}
	})
	stored, err := f.Put(t.Context(), remote.Definition{Name: "item", Version: 1, Steps: []remote.Step{{Name: "pick", URL: items.URL}}})
	enginetest.NoError(t, err)
	items.know(t, stored.Generated)

	id := f.start(t, "order", `{"n":1}`)
	f.status(t, id, fsm.Waiting)
	_, err = fsm.Send(t.Context(), f.eng, id, "paid", answer{"amount": 42}, nil)
	enginetest.NoError(t, err)
	end := f.ended(t, id)
	want := `{"state": {"paid": {"amount": 42}}, "children": [1, 2, null], "definition": "order"}`
	if end.Status != fsm.Done || !equal(t, end.Result, want) {
		t.Fatalf("%s: %s %s; want %s", end.Status, end.Result, end.Error, want)
	}
	checkContexts(t, id, e.contexts())
	for _, c := range items.contexts() {
		if c.Parent == nil || *c.Parent != id {
			t.Errorf("parent of a child is %v", c.Parent)
		}
	}
}

// checkContexts checks what the steps of EveryOutcomeLeadsOn were told.
func checkContexts(t *testing.T, id string, seen []remote.Context) {
	t.Helper()
	var steps []string
	for _, c := range seen {
		steps = append(steps, c.Step)
		if c.Instance != id || c.Version != 1 || c.Token == "" || c.Timeout != "1m0s" || c.Parent != nil || c.CreatedAt.IsZero() {
			t.Errorf("%+v", c)
		}
	}
	if got := strings.Join(steps, " "); got != "begin poll poll poll paid collect" {
		t.Fatalf("steps %s", got)
	}
	if string(seen[1].State) != `{"n":9007199254740993}` || string(seen[0].State) != `{"n":1}` {
		t.Errorf("states %s, %s", seen[0].State, seen[1].State)
	}
	if paid := seen[4]; len(paid.Awaited) != 1 || len(paid.Signals) != 1 || paid.Awaited[0].Name != "paid" || paid.TimedOut {
		t.Errorf("%+v", paid)
	}
	children := seen[5].Children
	if len(children) != 3 || string(children[1].State) != "2" || children[2].Status != fsm.Stopped || children[2].Error != "sold out" || children[0].Status != fsm.Done || children[1].Ordinal != 1 {
		t.Errorf("%+v", children)
	}
}

func equal(t *testing.T, got json.RawMessage, want string) bool {
	t.Helper()
	var a, b any
	enginetest.NoError(t, json.Unmarshal(got, &a))
	enginetest.NoError(t, json.Unmarshal([]byte(want), &b))
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return string(x) == string(y)
}

func (Conformance) FailedAttemptsAreTriedAgainAsThePolicySays(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db)
	e := serve(t, func(c remote.Context) any {
		if c.Attempt == 1 {
			return answer{"outcome": "fail", "reason": "card reader is offline"}
		}
		return answer{"outcome": "done"}
	})
	f.put(t, e, "charge")
	if end := f.ended(t, f.start(t, "order", "null")); end.Status != fsm.Done {
		t.Errorf("%+v", end)
	}
}

func TestAnswersThatAreNoneAreFailedAttempts(t *testing.T) {
	t.Parallel()
	good := []byte(`{"outcome":"done"}`)
	for name, c := range map[string]struct {
		handle func(*endpoint, http.ResponseWriter, *http.Request, remote.Context)
		want   string
	}{
		"status": {func(_ *endpoint, w http.ResponseWriter, _ *http.Request, _ remote.Context) {
			http.Error(w, "leaked", http.StatusInternalServerError)
		}, "receiver responded 500"},
		"redirect": {func(_ *endpoint, w http.ResponseWriter, r *http.Request, _ remote.Context) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}, "receiver responded 307"},
		"unsigned": {func(_ *endpoint, w http.ResponseWriter, _ *http.Request, _ remote.Context) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(good)
		}, "response refused: verify message"},
		"signed with another secret": {func(_ *endpoint, w http.ResponseWriter, r *http.Request, _ remote.Context) {
			other, _ := webhook.ParseSecret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
			_ = webhook.Sign(w.Header(), r.Header.Get("webhook-id"), clock.System.Now(), good, other)
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(good)
		}, "no signature matches"},
		"to another request": {func(e *endpoint, w http.ResponseWriter, r *http.Request, _ remote.Context) {
			r.Header.Set("webhook-id", "another")
			e.answer(w, r, good)
		}, "it belongs to another request"},
		"old": {func(e *endpoint, w http.ResponseWriter, r *http.Request, _ remote.Context) {
			_ = webhook.Sign(w.Header(), r.Header.Get("webhook-id"), clock.System.Now().Add(-time.Hour), good, e.secrets...)
			_, _ = w.Write(good)
		}, "message is too old"},
		"echo": {func(e *endpoint, w http.ResponseWriter, r *http.Request, c remote.Context) {
			body, _ := json.Marshal(remote.Request{Type: "fsm.step", Data: c})
			e.answer(w, r, body)
		}, "decode outcome"},
		"content type": {func(e *endpoint, w http.ResponseWriter, r *http.Request, _ remote.Context) {
			_ = webhook.Sign(w.Header(), r.Header.Get("webhook-id"), clock.System.Now(), good, e.secrets...)
			w.Header().Set("Content-Type", "text/html")
			_, _ = w.Write(good)
		}, "content type must be application/json"},
		"too large": {func(e *endpoint, w http.ResponseWriter, r *http.Request, _ remote.Context) {
			e.answer(w, r, []byte(`{"outcome":"done","result":"`+strings.Repeat("x", remote.MaxMessage)+`"}`))
		}, "is longer than"},
		"large state":       {signed(`{"outcome":"replay","state":"` + strings.Repeat("x", 2<<20) + `"}`), "state"},
		"empty":             {signed(``), "response"},
		"no JSON":           {signed(`outcome=done`), "response"},
		"two values":        {signed(`{"outcome":"done"} {}`), "response"},
		"no outcome":        {signed(`{}`), `outcome must be one of`},
		"unknown outcome":   {signed(`{"outcome":"explode"}`), `got "explode"`},
		"unknown field":     {signed(`{"outcome":"done","resutl":1}`), "unknown field"},
		"foreign field":     {signed(`{"outcome":"done","step":"charge"}`), "outcome done does not support step"},
		"unknown step":      {signed(`{"outcome":"next","step":"nowhere"}`), "must lead to a step of fsm order version 1"},
		"no step":           {signed(`{"outcome":"next"}`), "must name a next step"},
		"bad delay":         {signed(`{"outcome":"replay","delay":"soon"}`), "delay must be a duration"},
		"negative delay":    {signed(`{"outcome":"replay","delay":"-1s"}`), "delay must be a duration"},
		"waits for none":    {signed(`{"outcome":"await","step":"charge"}`), "must wait for at least one signal"},
		"unknown child":     {signed(`{"outcome":"spawn","step":"charge","children":[{"definition": "ghost","state":1}]}`), `child 0: definition "ghost" does not exist`},
		"bad child":         {signed(`{"outcome":"spawn","step":"charge","children":[{"definition": "order","state":1,"priority":"top"}]}`), `priority must be high, normal or low, got "top"`},
		"lone surrogate":    {signed(`{"outcome":"done","result":"\ud800"}`), "response"},
		"says why it fails": {signed(`{"outcome":"fail","reason":"card declined"}`), "endpoint reported: card declined"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, enginetest.New(t, enginetest.SQLite))
			e := serveRaw(t, c.handle)
			f.put(t, e, "charge")
			end := f.ended(t, f.start(t, "order", "{}"))
			if end.Status != fsm.Failed || !strings.Contains(end.Error, c.want) {
				t.Errorf("%s: %s; want %q", end.Status, end.Error, c.want)
			}
			if n := len(e.contexts()); n != 2 {
				t.Errorf("%d attempts, want the 2 of the policy", n)
			}
			if strings.Contains(end.Error, "leaked") || strings.Contains(end.Error, e.URL) {
				t.Errorf("the error shows too much: %s", end.Error)
			}
		})
	}
}

func signed(body string) func(*endpoint, http.ResponseWriter, *http.Request, remote.Context) {
	return func(e *endpoint, w http.ResponseWriter, r *http.Request, _ remote.Context) {
		e.answer(w, r, []byte(body))
	}
}

func TestEndpointThatIsTooSlowIsAFailedAttempt(t *testing.T) {
	t.Parallel()
	f := newFixture(t, enginetest.New(t, enginetest.SQLite))
	release := make(chan struct{})
	e := serveRaw(t, func(_ *endpoint, _ http.ResponseWriter, _ *http.Request, _ remote.Context) { <-release })
	defer close(release)
	d := definition(e, "charge")
	d.Steps[0].Timeout = 20 * time.Millisecond
	stored, err := f.Put(t.Context(), d)
	enginetest.NoError(t, err)
	e.know(t, stored.Generated)
	if end := f.ended(t, f.start(t, "order", "{}")); end.Status != fsm.Failed || !strings.Contains(end.Error, "endpoint did not respond within 20ms") {
		t.Errorf("%+v", end)
	}
}

// The instance is cancelled while the endpoint thinks: what it says then counts
// for nothing.
func (Conformance) LateAnswerCountsForNothing(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db)
	begun, release := make(chan struct{}), make(chan struct{})
	e := serve(t, func(remote.Context) any {
		close(begun)
		<-release
		return answer{"outcome": "done", "result": "late"}
	})
	f.put(t, e, "charge")
	id := f.start(t, "order", "{}")
	<-begun
	enginetest.NoError(t, f.machines.Cancel(t.Context(), id, "no longer wanted"))
	close(release)
	if end := f.ended(t, id); end.Status != fsm.Cancelled || end.Result != nil {
		t.Errorf("%+v", end)
	}
	enginetest.NoError(t, f.machines.Drain(enginetest.Context(t)))
	if end := f.ended(t, id); end.Status != fsm.Cancelled || end.Result != nil {
		t.Errorf("after the late answer: %+v", end)
	}
}
