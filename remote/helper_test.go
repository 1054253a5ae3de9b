package remote_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/dispatch"
	"github.com/perdure/perdure/fsm"
	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/internal/test/testdb"
	"github.com/perdure/perdure/internal/webhook"
	"github.com/perdure/perdure/remote"
	"github.com/perdure/perdure/retry"
)

func TestMain(m *testing.M) { testdb.Main(m) }

// Conformance is what must hold on every database.
type Conformance struct{}

func TestConformance(t *testing.T) {
	enginetest.Conform(t, Conformance{}, enginetest.SQLite, enginetest.Postgres)
}

// fixture is a process that runs workers.
type fixture struct {
	*remote.Registry
	eng      *perdure.Engine
	machines *fsm.Machines
}

func newFixture(t *testing.T, db enginetest.Database) *fixture {
	t.Helper()
	eng := db.Open(t, nil)
	quiet := func(error) {}
	machines, err := fsm.New(eng, &fsm.Options{OnError: quiet})
	enginetest.NoError(t, err)
	registry, err := remote.New(eng, machines, &remote.Options{Allow: []string{"127.0.0.1"}, Poll: 20 * time.Millisecond, OnError: quiet})
	enginetest.NoError(t, err)
	alarm, err := dispatch.NewWaker(machines, nil)
	enginetest.NoError(t, err)
	alarm.Start()
	registry.Start()
	t.Cleanup(func() {
		enginetest.NoError(t, alarm.Stop(enginetest.Context(t)))
		registry.Close()
	})
	return &fixture{registry, eng, machines}
}

// endpoint is a program of another language.
type endpoint struct {
	*httptest.Server
	mu      sync.Mutex
	secrets []webhook.Secret
	seen    []remote.Context
	refused int
}

// serve starts an endpoint that answers as step says.
func serve(t *testing.T, step func(remote.Context) any) *endpoint {
	t.Helper()
	return serveRaw(t, func(e *endpoint, w http.ResponseWriter, r *http.Request, c remote.Context) {
		body, err := json.Marshal(step(c))
		if err != nil {
			t.Error(err)
		}
		e.answer(w, r, body)
	})
}

func serveRaw(t *testing.T, handle func(*endpoint, http.ResponseWriter, *http.Request, remote.Context)) *endpoint {
	t.Helper()
	e := &endpoint{}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		e.mu.Lock()
		_, err := webhook.Verify(r.Header, body, clock.System.Now(), e.secrets...)
		var request remote.Request
		if err != nil || json.Unmarshal(body, &request) != nil || request.Type != "fsm.step" || r.Method != http.MethodPost {
			e.refused++
			e.mu.Unlock()
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		e.seen = append(e.seen, request.Data)
		e.mu.Unlock()
		handle(e, w, r, request.Data)
	}))
	t.Cleanup(e.Close)
	return e
}

// answer sends a signed answer.
func (e *endpoint) answer(w http.ResponseWriter, r *http.Request, body []byte) {
	e.mu.Lock()
	_ = webhook.Sign(w.Header(), r.Header.Get(webhook.HeaderID), clock.System.Now(), body, e.secrets...)
	e.mu.Unlock()
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_, _ = w.Write(body)
}

func (e *endpoint) know(t *testing.T, secrets ...string) {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.secrets = nil
	for _, text := range secrets {
		s, err := webhook.ParseSecret(text)
		enginetest.NoError(t, err)
		e.secrets = append(e.secrets, s)
	}
}

func (e *endpoint) contexts() []remote.Context {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]remote.Context(nil), e.seen...)
}

// quick tries twice, without waiting.
var quick = retry.Fixed(2, time.Millisecond)

func definition(e *endpoint, steps ...string) remote.Definition {
	d := remote.Definition{Name: "order", Version: 1, URL: e.URL, Retry: quick}
	for _, s := range steps {
		d.Steps = append(d.Steps, remote.Step{Name: s, Timeout: time.Minute})
	}
	return d
}

// put stores a definition and gives the endpoint its secret.
func (f *fixture) put(t *testing.T, e *endpoint, steps ...string) {
	t.Helper()
	stored, err := f.Put(t.Context(), definition(e, steps...))
	enginetest.NoError(t, err)
	e.know(t, stored.Generated)
}

func (f *fixture) start(t *testing.T, name, state string) string {
	t.Helper()
	started, err := f.machines.StartNamed(t.Context(), name, 0, json.RawMessage(state), nil)
	enginetest.NoError(t, err)
	return started.ID
}

// ended waits until an instance has ended and returns it.
func (f *fixture) ended(t *testing.T, id string) fsm.Instance {
	t.Helper()
	var i fsm.Instance
	enginetest.Eventually(t, "instance "+id+" ends", func() bool {
		var err error
		i, err = f.machines.Get(t.Context(), id)
		enginetest.NoError(t, err)
		return i.Status.Finished()
	})
	return i
}

func (f *fixture) status(t *testing.T, id string, want fsm.Status) {
	t.Helper()
	enginetest.Eventually(t, "instance is "+string(want), func() bool {
		i, err := f.machines.Get(t.Context(), id)
		enginetest.NoError(t, err)
		return i.Status == want
	})
}

type answer = map[string]any
