package sms_test

import (
	"encoding/json"
	"fmt"
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
	"github.com/perdure/perdure/task/sms"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

const (
	account = "AC00000000000000000000000000000001"
	token   = "very-secret-token"
)

// fakeTwilio is a server that speaks Twilio's documented contract: basic
// authentication, a form, JSON answers, a list of messages. after is called for
// each POST: it says whether the message is kept, and may answer itself.
type fakeTwilio struct {
	mu       sync.Mutex
	messages []map[string]string
	posts    int
	after    func(n int, w http.ResponseWriter) (keep, answered bool)
	listDown bool
}

func (f *fakeTwilio) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	user, password, _ := r.BasicAuth()
	switch {
	case r.URL.Path != "/2010-04-01/Accounts/"+account+"/Messages.json":
		twilioError(w, 404, 20404, "The requested resource was not found")
	case user != account || password != token:
		twilioError(w, 401, 20003, "Authenticate")
	case r.Method == http.MethodGet && f.listDown:
		twilioError(w, 500, 20500, "Internal Server Error")
	case r.Method == http.MethodGet:
		f.list(w, r.URL.Query().Get("To"))
	default:
		f.post(w, r)
	}
}

func (f *fakeTwilio) list(w http.ResponseWriter, to string) {
	found := []map[string]string{}
	for _, m := range f.messages {
		if m["to"] == to {
			found = append(found, m)
		}
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"messages": found, "page": 0})
}

func (f *fakeTwilio) post(w http.ResponseWriter, r *http.Request) {
	f.posts++
	if r.FormValue("To") == "" || r.FormValue("From") == "" || r.FormValue("Body") == "" {
		twilioError(w, 400, 21604, "A 'To' phone number is required.")
		return
	}
	keep, answered := true, false
	if f.after != nil {
		keep, answered = f.after(f.posts, w)
	}
	m := map[string]string{
		"sid": fmt.Sprintf("SM%d", len(f.messages)+1), "to": r.FormValue("To"), "from": r.FormValue("From"), "body": r.FormValue("Body"),
		"status": "queued", "date_created": time.Now().UTC().Format(time.RFC1123Z),
	}
	if keep {
		f.messages = append([]map[string]string{m}, f.messages...)
	}
	if !answered {
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(m)
	}
}

func twilioError(w http.ResponseWriter, status, code int, message string) {
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"code": %d, "message": %q, "more_info": "https://www.twilio.com/docs/errors/%d", "status": %d}`, code, message, code, status)
}

func (f *fakeTwilio) sender(t *testing.T, key string) task.Sender {
	t.Helper()
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(key), 0o600); err != nil {
		t.Fatal(err)
	}
	send, err := sms.Twilio(account, task.FileSecret(file), &sms.TwilioOptions{BaseURL: server.URL, From: "+15005550006", Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	return send
}

func message(attempt int) json.RawMessage {
	since, _ := json.Marshal(time.Now().UTC())
	return json.RawMessage(fmt.Sprintf(`{"to": "+491701234567", "from": null, "body": "Héllo", "attempt": %d, "since": %s, "idempotency_key": "k"}`, attempt, since))
}

func TestTwilioSends(t *testing.T) {
	f := &fakeTwilio{}
	result, err := f.sender(t, token)(t.Context(), message(1))
	if err != nil || result != (sms.Result{Provider: "twilio", ID: "SM1"}) {
		t.Fatalf("%v, %v", result, err)
	}
	if m := f.messages[0]; m["body"] != "Héllo" || m["from"] != "+15005550006" {
		t.Fatalf("sent %v", m)
	}
}

// A message that was sent although the answer was lost is found, and not sent
// again: at once, or by the next attempt.
func TestWhatMayHaveBeenSentIsLookedFor(t *testing.T) {
	t.Run("at once", func(t *testing.T) {
		f := &fakeTwilio{after: func(_ int, w http.ResponseWriter) (bool, bool) {
			twilioError(w, 500, 20500, "Internal Server Error")
			return true, true
		}}
		result, err := f.sender(t, token)(t.Context(), message(1))
		if err != nil || result != (sms.Result{Provider: "twilio", ID: "SM1", Found: true}) {
			t.Fatalf("%v, %v", result, err)
		}
	})
	t.Run("broken off", func(t *testing.T) {
		f := &fakeTwilio{}
		f.after = func(int, http.ResponseWriter) (bool, bool) {
			f.messages = append(f.messages, map[string]string{"sid": "SM9", "to": "+491701234567", "body": "Héllo", "status": "sent", "date_created": time.Now().UTC().Format(time.RFC1123Z)})
			panic(http.ErrAbortHandler)
		}
		result, err := f.sender(t, token)(t.Context(), message(1))
		if err != nil || result != (sms.Result{Provider: "twilio", ID: "SM9", Found: true}) {
			t.Fatalf("%v, %v", result, err)
		}
	})
	t.Run("by the next attempt", func(t *testing.T) {
		f := &fakeTwilio{listDown: true, after: func(_ int, w http.ResponseWriter) (bool, bool) {
			twilioError(w, 502, 20500, "Bad Gateway")
			return true, true
		}}
		send, first := f.sender(t, token), message(1)
		if _, err := send(t.Context(), first); err == nil || !strings.Contains(err.Error(), "may have been sent") {
			t.Fatalf("neither sent nor looked for: %v", err)
		}
		second := json.RawMessage(strings.Replace(string(first), `"attempt": 1`, `"attempt": 2`, 1))
		if _, err := send(t.Context(), second); err == nil || f.posts != 1 {
			t.Fatalf("sent without looking: %v, %d posts", err, f.posts)
		}
		f.listDown = false
		result, err := send(t.Context(), second)
		if err != nil || result != (sms.Result{Provider: "twilio", ID: "SM1", Found: true}) || f.posts != 1 {
			t.Fatalf("%v, %v, %d posts", result, err, f.posts)
		}
	})
	t.Run("not sent", func(t *testing.T) {
		f := &fakeTwilio{after: func(n int, w http.ResponseWriter) (bool, bool) {
			if n > 1 {
				return true, false
			}
			twilioError(w, 500, 20500, "Internal Server Error")
			return false, true
		}}
		f.messages = []map[string]string{ // an old one with the same text, and one that failed
			{"sid": "SM7", "to": "+491701234567", "body": "Héllo", "status": "delivered", "date_created": "Mon, 02 Jan 2006 15:04:05 +0000"},
			{"sid": "SM8", "to": "+491701234567", "body": "Héllo", "status": "failed", "date_created": time.Now().UTC().Format(time.RFC1123Z)},
		}
		send := f.sender(t, token)
		if _, err := send(t.Context(), message(1)); err == nil || strings.Contains(err.Error(), "may have") {
			t.Fatalf("%v", err)
		}
		if result, err := send(t.Context(), message(2)); err != nil || result != (sms.Result{Provider: "twilio", ID: "SM3"}) {
			t.Fatalf("%v, %v", result, err)
		}
	})
}

func TestRefusalsOfTwilio(t *testing.T) {
	f := &fakeTwilio{after: func(_ int, w http.ResponseWriter) (bool, bool) {
		w.Header().Set("Retry-After", "2")
		twilioError(w, 429, 20429, "Too Many Requests")
		return false, true
	}}
	_, err := f.sender(t, token)(t.Context(), message(1))
	if wait, _ := retry.Delay(err); wait != 2*time.Second || !strings.Contains(err.Error(), "20429: Too Many Requests") {
		t.Fatalf("%v", err)
	}
	if _, err := f.sender(t, "wrong-token")(t.Context(), message(1)); err == nil || !strings.Contains(err.Error(), "20003") || strings.Contains(err.Error(), "wrong-token") {
		t.Fatalf("%v", err)
	}
	posts := f.posts
	for _, payload := range []string{`null`, `[]`, `{}`, `{"to": "0170", "body": "x"}`, `{"to": "+4917012345"}`, `{"to": "+4917012345\n", "body": "x"}`} {
		if _, err := f.sender(t, token)(t.Context(), json.RawMessage(payload)); err == nil {
			t.Errorf("%s was sent", payload)
		}
	}
	if f.posts != posts {
		t.Error("a bad message was posted")
	}
}

func TestOptionsOfTwilio(t *testing.T) {
	key := task.EnvSecret("X")
	for name, make := range map[string]func() (task.Sender, error){
		"account": func() (task.Sender, error) { return sms.Twilio("../x", key, nil) },
		"token":   func() (task.Sender, error) { return sms.Twilio(account, task.Secret{}, nil) },
		"URL":     func() (task.Sender, error) { return sms.Twilio(account, key, &sms.TwilioOptions{BaseURL: "twilio"}) },
		"timeout": func() (task.Sender, error) { return sms.Twilio(account, key, &sms.TwilioOptions{Timeout: -1}) },
	} {
		if _, err := make(); err == nil {
			t.Errorf("a bad %s was accepted", name)
		}
	}
}
