package task_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/task"
	"github.com/perdure/perdure/task/mail"
)

// What a provider answers, however bad, is a row in queues.error; the worker
// goes on and the process comes to its end.
func (Conformance) BadAnswersOfAProviderAreRecorded(t *testing.T, db enginetest.Database) {
	answers := []func(http.ResponseWriter){
		func(w http.ResponseWriter) { fmt.Fprint(w, "<html>not JSON</html>") },
		func(w http.ResponseWriter) { // 100 MB
			for range 100 {
				if _, err := w.Write([]byte(strings.Repeat("a", 1<<20))); err != nil {
					return
				}
			}
		},
		func(w http.ResponseWriter) {
			w.Header().Set("Retry-After", "60")
			w.WriteHeader(http.StatusTooManyRequests)
		},
		func(w http.ResponseWriter) { w.WriteHeader(http.StatusInternalServerError) },
		func(w http.ResponseWriter) { fmt.Fprint(w, `{"id": "at last"}`) },
	}
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		answer := answers[asked]
		asked++
		answer(w)
	}))
	defer server.Close()
	key := filepath.Join(t.TempDir(), "key")
	enginetest.NoError(t, os.WriteFile(key, []byte("re_secret"), 0o600))
	resend, err := mail.Resend(task.FileSecret(key), &mail.ResendOptions{BaseURL: server.URL})
	enginetest.NoError(t, err)

	f := newFixture(t, db, &task.Options{Concurrency: 1, Senders: map[string]task.Sender{"email": resend}})
	first := f.email(t)
	f.process(t, 2)              // not JSON
	f.after(t, 5*time.Second, 2) // 100 MB
	f.after(t, 10*time.Second, 1)
	f.hasFacts(t, "email", first, 2, 2, 0)
	second := f.email(t)
	f.process(t, 2) // 429
	f.hasFacts(t, "email", second, 1, 0, 0)
	f.clock.Advance(time.Minute)
	f.process(t, 2) // 500, and the supervisor
	f.after(t, 10*time.Minute, 2)
	f.hasFacts(t, "email", second, 2, 1, 1)
	f.hasErrors(t, "not the expected JSON", "longer than", "responded 429", "responded 500")
	for _, message := range f.errors(t) {
		if strings.Contains(message, "re_secret") {
			t.Fatalf("the key is in an error: %s", message)
		}
	}
}
