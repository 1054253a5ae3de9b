package server_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/internal/webhook"
	"github.com/perdure/perdure/remote"
	"github.com/perdure/perdure/server"
)

// endpoint is a program of another language that ends every instance at once.
func endpoint(t *testing.T, secret *atomic.Value) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		known, _ := webhook.ParseSecret(secret.Load().(string))
		var request remote.Request
		if _, err := webhook.Verify(r.Header, body, clock.System.Now(), known); err != nil || json.Unmarshal(body, &request) != nil {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		result, _ := json.Marshal(map[string]any{"outcome": "done", "result": map[string]any{"step": request.Data.Step, "pin": 1234}})
		_ = webhook.Sign(w.Header(), r.Header.Get("webhook-id"), clock.System.Now(), result, known)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(result)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func TestStepsInOtherLanguagesAreStoredOverTheAPIAndRun(t *testing.T) {
	t.Parallel()
	for _, name := range []string{enginetest.SQLite, enginetest.Postgres} {
		f := open(t, enginetest.New(t, name), func(o *server.Options) {
			o.Remote, o.Redact = &remote.Options{Allow: []string{"127.0.0.1"}}, []string{"pin"}
		})
		enginetest.NoError(t, f.srv.Start())
		var secret atomic.Value
		definition := object{"version": 1, "url": endpoint(t, &secret), "steps": []object{{"name": "charge", "timeout": "10s"}}}
		stored := f.want(200, http.MethodPut, "/v1/definitions/far", definition)
		secret.Store(stored.text("secret"))
		if !strings.HasPrefix(stored.text("secret"), "whsec_") || stored.text("source") != "http" {
			t.Fatalf("%v", stored)
		}
		if again := f.want(200, http.MethodPut, "/v1/definitions/far", definition); again["secret"] != nil {
			t.Errorf("the secret is shown again: %v", again)
		}
		shown := f.do(http.MethodGet, "/v1/definitions/far", nil)
		if !strings.Contains(string(shown.body), `"source":"http"`) || !strings.Contains(string(shown.body), `"timeout":"10s"`) || strings.Contains(string(shown.body), "whsec_") {
			t.Errorf("%s", shown.body)
		}
		id := f.want(201, http.MethodPost, "/v1/instances", object{"definition": "far", "state": object{"pin": "4321"}}).text("id")
		ended := f.do(http.MethodGet, "/v1/instances/"+id+"/wait?timeout=5m", nil)
		if !strings.Contains(string(ended.body), `"result":{"step":"charge","pin":"[redacted]"}`) && !strings.Contains(string(ended.body), `"result":{"pin":"[redacted]","step":"charge"}`) {
			t.Errorf("%s", ended.body)
		}
		if strings.Contains(string(ended.body), "1234") || strings.Contains(string(ended.body), "4321") {
			t.Errorf("what is nobody's business is shown: %s", ended.body)
		}
		f.want(204, http.MethodDelete, "/v1/definitions/far?version=1", nil)
		f.want(404, http.MethodDelete, "/v1/definitions/far?version=1", nil)
		f.want(404, http.MethodDelete, "/v1/definitions/order?version=1", nil) // that of a program
		f.want(409, http.MethodPut, "/v1/definitions/order", definition)
	}
}

func TestDefinitionsThatCannotBeUsedAreRefused(t *testing.T) {
	t.Parallel()
	f := open(t, enginetest.New(t, enginetest.SQLite), nil)
	for name, d := range map[string]object{
		"loopback":  {"version": 1, "url": "http://127.0.0.1:1/", "steps": []object{{"name": "a"}}},
		"metadata":  {"version": 1, "steps": []object{{"name": "a", "url": "http://169.254.169.254/"}}},
		"no steps":  {"version": 1, "url": "https://steps.example.com/", "steps": []object{}},
		"no URL":    {"version": 1, "steps": []object{{"name": "a"}}},
		"bad key":   {"version": 1, "url": "https://steps.example.com/", "steps": []object{{"name": "a"}}, "secrets": []string{"planted"}},
		"unknown":   {"version": 1, "url": "https://steps.example.com/", "steps": []object{{"name": "a"}}, "nonsense": 1},
		"no number": {"url": "https://steps.example.com/", "steps": []object{{"name": "a"}}},
	} {
		if a := f.do(http.MethodPut, "/v1/definitions/far", d); a.status != 422 || strings.Contains(string(a.body), "planted") {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
}
