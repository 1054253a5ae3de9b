package webhook_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/egress"
	"github.com/perdure/perdure/internal/webhook"
)

func sender(t *testing.T, allow ...string) *webhook.Sender {
	t.Helper()
	client, err := egress.New(&egress.Options{Allow: allow})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return webhook.NewSender(client, clock.System)
}

func TestReceiverVerifiesWhatWasSent(t *testing.T) {
	t.Parallel()
	s := secret(t, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		payload, _ := io.ReadAll(r.Body)
		m, err := webhook.Verify(r.Header, payload, clock.System.Now(), s)
		if err != nil || m.ID != "m1" || string(payload) != string(body) || r.Header.Get("Content-Type") != "application/json" || r.Header.Get("Traceparent") != "00-x" {
			t.Errorf("%v, %v, %s", r.Header, err, payload)
		}
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, "thanks")
	}))
	defer server.Close()
	answer, err := sender(t, "127.0.0.1").Send(t.Context(), webhook.Delivery{
		URL: server.URL, ID: "m1", Body: body, Secrets: []webhook.Secret{secret(t, 2), s}, Header: http.Header{"traceparent": {"00-x"}, "webhook-id": {"forged"}},
	})
	if err != nil || answer.Status != http.StatusAccepted || string(answer.Body) != "thanks" {
		t.Errorf("%+v, %v", answer, err)
	}
}

func TestRefusalSaysHowLongToWait(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status      int
		retry, date string
		after       time.Duration
		gone        bool
	}{
		{500, "", "", 0, false},
		{429, "7", "", 7 * time.Second, false},
		{503, "Sun, 15 Nov 2026 12:01:00 GMT", "Sun, 15 Nov 2026 12:00:00 GMT", time.Minute, false},
		{503, "Sun, 15 Nov 2026 11:00:00 GMT", "Sun, 15 Nov 2026 12:00:00 GMT", 0, false},
		{429, "-5", "", 0, false},
		{429, "soon", "", 0, false},
		{429, "4294967295", "", 24 * time.Hour, false},
		{410, "", "", 0, true},
		{302, "", "", 0, false},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", c.retry)
			w.Header().Set("Location", "http://127.0.0.1:1/")
			if c.date != "" {
				w.Header().Set("Date", c.date)
			}
			w.WriteHeader(c.status)
			_, _ = io.WriteString(w, "secret of the inner network")
		}))
		_, err := sender(t, "127.0.0.1").Send(t.Context(), webhook.Delivery{URL: server.URL, ID: "m1", Body: body, Secrets: []webhook.Secret{secret(t, 1)}})
		refused := (*webhook.StatusError)(nil)
		if !errors.As(err, &refused) || refused.Status != c.status || refused.After != c.after || webhook.Gone(err) != c.gone {
			t.Errorf("%d %q: %v", c.status, c.retry, err)
		}
		if strings.Contains(err.Error(), "inner network") {
			t.Errorf("the answer is quoted: %v", err)
		}
		server.Close()
	}
}

func TestSenderReachesOnlyWhatIsAllowed(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was reached") }))
	defer server.Close()
	for _, url := range []string{server.URL, "http://%zz/secret-path", "ftp://hooks.example/secret-path"} {
		_, err := sender(t).Send(t.Context(), webhook.Delivery{URL: url, ID: "m1", Body: body, Secrets: []webhook.Secret{secret(t, 1)}})
		if err == nil || strings.Contains(err.Error(), "secret-path") {
			t.Errorf("%s: %v", url, err)
		}
	}
}

func TestDeliveryWithoutSecretIsNotSent(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was sent") }))
	defer server.Close()
	if _, err := sender(t, "127.0.0.1").Send(t.Context(), webhook.Delivery{URL: server.URL, ID: "m1", Body: body}); err == nil {
		t.Error("no error")
	}
}
