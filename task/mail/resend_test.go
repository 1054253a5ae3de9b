package mail_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perdure/perdure/internal/test/leaktest"
	"github.com/perdure/perdure/retry"
	"github.com/perdure/perdure/task"
	"github.com/perdure/perdure/task/internal/provider"
	"github.com/perdure/perdure/task/mail"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

const secretKey = "re_very_secret"

func secret(t *testing.T, value string) task.Secret {
	t.Helper()
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte(value+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return task.FileSecret(file)
}

var hello = json.RawMessage(`{"from": "Shop <shop@example.com>", "to": "ada@example.com", "subject": "Hé", "text": "Hello", "html": "<p>Hello</p>", "idempotency_key": "key-1", "attempt": 1}`)

// fakeResend is a server that speaks Resend's documented contract: a bearer
// token, a JSON body, an id that is the same for the same Idempotency-Key.
type fakeResend struct {
	mu    sync.Mutex
	byKey map[string]string
	sent  int
}

func (f *fakeResend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	var m struct {
		From, Subject, Text, HTML string
		To                        []string
	}
	switch {
	case r.Method != http.MethodPost || r.URL.Path != "/emails":
		resendError(w, http.StatusNotFound, "not_found", "The requested endpoint does not exist")
	case r.Header.Get("Authorization") != "Bearer "+secretKey:
		resendError(w, http.StatusForbidden, "invalid_api_key", "API key is invalid")
	case json.Unmarshal(body, &m) != nil || len(m.To) != 1 || m.From == "" || m.Subject == "":
		resendError(w, http.StatusUnprocessableEntity, "validation_error", "The request body is invalid")
	default:
		key := r.Header.Get("Idempotency-Key")
		if f.byKey[key] == "" {
			f.sent++
			f.byKey[key] = fmt.Sprintf("id-%d", f.sent)
		}
		fmt.Fprintf(w, `{"id": %q}`, f.byKey[key])
	}
}

func resendError(w http.ResponseWriter, status int, name, message string) {
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"statusCode": status, "name": name, "message": message})
}

func serve(t *testing.T, handler http.Handler) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server.URL
}

func resendAt(t *testing.T, url, key string, timeout time.Duration) task.Sender {
	t.Helper()
	send, err := mail.Resend(secret(t, key), &mail.ResendOptions{BaseURL: url, Timeout: timeout})
	if err != nil {
		t.Fatal(err)
	}
	return send
}

func TestResendSendsOnceForAKey(t *testing.T) {
	fake := &fakeResend{byKey: map[string]string{}}
	send := resendAt(t, serve(t, fake), secretKey, 0)
	for range 3 {
		result, err := send(t.Context(), hello)
		if err != nil || result != (mail.Result{Provider: "resend", ID: "id-1"}) {
			t.Fatalf("%v, %v", result, err)
		}
	}
	if fake.sent != 1 {
		t.Fatalf("sent %d times", fake.sent)
	}
}

// answers are what a provider may say, and what is made of it.
var answers = map[string]struct {
	answer    http.HandlerFunc
	want      string
	maybeDone bool
	wait      time.Duration
}{
	"refused": {answer: func(w http.ResponseWriter, _ *http.Request) {
		resendError(w, 422, "validation_error", "Invalid `to` field\x1b[31m")
	}, want: "Resend responded 422: validation_error: Invalid `to` field"},
	"rate limit": {answer: func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "7")
		resendError(w, 429, "rate_limit_exceeded", "Too many requests")
	}, want: "rate_limit_exceeded", wait: 7 * time.Second},
	"rate limit with a date": {answer: func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Date", "Sun, 01 Mar 2026 12:00:00 GMT")
		w.Header().Set("Retry-After", "Sun, 01 Mar 2026 12:01:00 GMT")
		w.WriteHeader(http.StatusTooManyRequests)
	}, want: "429", wait: time.Minute},
	"rate limit without a time": {answer: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) }, want: "429", wait: 5 * time.Second},
	"unavailable for a while": {answer: func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "3")
		w.WriteHeader(http.StatusServiceUnavailable)
	}, want: "503", wait: 3 * time.Second},
	"unavailable": {answer: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }, want: "503", maybeDone: true},
	"server error": {answer: func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		fmt.Fprint(w, "<html>oops")
	}, want: "500: <html>oops", maybeDone: true},
	"not JSON": {answer: func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>OK</html>") }, want: "not the expected JSON", maybeDone: true},
	"empty":    {answer: func(http.ResponseWriter, *http.Request) {}, want: "not the expected JSON", maybeDone: true},
	"a redirect": {answer: func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	}, want: "307"},
	"100 MB":        {answer: endless, want: "longer than", maybeDone: true},
	"100 MB, error": {answer: func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusBadRequest); endless(w, r) }, want: "responded 400: aaa"},
	"broken off": {answer: func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		fmt.Fprint(w, `{"id": `)
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}, want: "unexpected EOF", maybeDone: true},
	"no answer": {answer: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, want: "EOF", maybeDone: true},
	"too slow":  {answer: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, want: "deadline exceeded", maybeDone: true},
}

func endless(w http.ResponseWriter, _ *http.Request) {
	chunk := []byte(strings.Repeat("a", 1<<20))
	for range 100 {
		if _, err := w.Write(chunk); err != nil {
			return
		}
	}
}

func TestAnswersOfAProvider(t *testing.T) {
	for name, c := range answers {
		t.Run(name, func(t *testing.T) {
			timeout := 20 * time.Second
			if name == "too slow" {
				timeout = 50 * time.Millisecond
			}
			send := resendAt(t, serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.ReadAll(r.Body) // the server notices that a client has gone only then
				c.answer(w, r)
			})), secretKey, timeout)
			_, err := send(t.Context(), hello)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.ContainsAny(err.Error(), "\x1b\n") || len(err.Error()) > 700 {
				t.Fatalf("error is %v, want %q in it", err, c.want)
			}
			if strings.Contains(err.Error(), secretKey) {
				t.Fatal("the error has the key in it")
			}
			if wait, asked := retry.Delay(err); asked != (c.wait != 0) || wait != c.wait {
				t.Fatalf("wait is %v, want %v", wait, c.wait)
			}
			var answer *provider.Error
			if !errors.As(err, &answer) || answer.MaybeDone != c.maybeDone {
				t.Fatalf("%+v, want maybe done: %v", answer, c.maybeDone)
			}
		})
	}
}

func TestNobodyAnswers(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	url := server.URL
	server.Close()
	_, err := resendAt(t, url, secretKey, time.Second)(t.Context(), hello)
	var answer *provider.Error
	if !errors.As(err, &answer) || answer.MaybeDone {
		t.Fatalf("%v: it was surely not sent", err)
	}
}

func TestBadMessagesAreNotSent(t *testing.T) {
	fake := &fakeResend{byKey: map[string]string{}}
	send := resendAt(t, serve(t, fake), secretKey, 0)
	for _, payload := range []string{
		``, `null`, `[]`, `"x"`, `{`, `{"from": 7}`, `{"from": "a@example.com", "to": "b@example.com", "subject": "s"}`,
		`{"from": "a@example.com", "to": "b@example.com\r\nBcc: c@example.com", "subject": "s", "text": "t"}`,
		`{"from": "a@example.com", "to": "b@example.com, c@example.com", "subject": "s", "text": "t"}`,
		`{"from": "a@example.com", "to": "b@example.com", "subject": "s\nX: y", "text": "t"}`,
		`{"from": "nobody", "to": "b@example.com", "subject": "s", "text": "t"}`,
	} {
		if _, err := send(t.Context(), json.RawMessage(payload)); err == nil {
			t.Errorf("%s was sent", payload)
		}
	}
	if fake.sent != 0 {
		t.Fatalf("sent %d times", fake.sent)
	}
}

func TestSecretsAreReadAndNeverShown(t *testing.T) {
	t.Setenv("PERDURE_TEST_KEY", "")
	s := task.EnvSecret("PERDURE_TEST_KEY")
	if _, err := s.Read(); err == nil || !strings.Contains(err.Error(), "PERDURE_TEST_KEY") {
		t.Fatalf("unset: %v", err)
	}
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte(" from file \n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PERDURE_TEST_KEY_FILE", file)
	if value, err := s.Read(); err != nil || value != "from file" {
		t.Fatalf("%q, %v", value, err)
	}
	t.Setenv("PERDURE_TEST_KEY", "from environment")
	if value, _ := s.Read(); value != "from environment" {
		t.Fatalf("%q", value)
	}
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		if text := fmt.Sprintf(format, s); strings.Contains(text, "from environment") {
			t.Errorf("%s shows %s", format, text)
		}
	}
	if _, err := task.FileSecret(file + "x").Read(); err == nil {
		t.Error("a missing file was read")
	}
	fake := &fakeResend{byKey: map[string]string{}}
	_, err := resendAt(t, serve(t, fake), "wrong-key", 0)(context.Background(), hello)
	if err == nil || !strings.Contains(err.Error(), "invalid_api_key") || strings.Contains(err.Error(), "wrong-key") {
		t.Fatalf("a wrong key: %v", err)
	}
}

func TestOptionsOfResend(t *testing.T) {
	for _, url := range []string{"ftp://x", "api.resend.com", "https://user:password@x", ":"} {
		if _, err := mail.Resend(secret(t, "k"), &mail.ResendOptions{BaseURL: url}); err == nil {
			t.Errorf("%s was accepted", url)
		}
	}
	if _, err := mail.Resend(task.Secret{}, nil); err == nil {
		t.Error("no key was accepted")
	}
	if _, err := mail.Resend(secret(t, "k"), nil); err != nil {
		t.Error(err)
	}
}
