package webhook_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/internal/test/leaktest"
	"github.com/perdure/perdure/internal/webhook"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

var (
	noon = time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	body = []byte(`{"type":"alarm.fired","data":{}}`)
)

func secret(t testing.TB, fill byte) webhook.Secret {
	t.Helper()
	s, err := webhook.NewSecret(bytes.NewReader(bytes.Repeat([]byte{fill}, 32)))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func sign(t testing.TB, id string, secrets ...webhook.Secret) http.Header {
	t.Helper()
	header := http.Header{}
	if err := webhook.Sign(header, id, noon, body, secrets...); err != nil {
		t.Fatal(err)
	}
	return header
}

// The example of the Standard Webhooks libraries.
func TestSignatureIsThatOfTheStandard(t *testing.T) {
	t.Parallel()
	s, err := webhook.ParseSecret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		t.Fatal(err)
	}
	header, payload, at := http.Header{}, []byte(`{"test": 2432232314}`), time.Unix(1614265330, 0)
	if err := webhook.Sign(header, "msg_p5jXN8AQM9LWM0D4loKWxJek", at, payload, s); err != nil {
		t.Fatal(err)
	}
	if got, want := header.Get("webhook-signature"), "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; got != want {
		t.Errorf("signature %s, want %s", got, want)
	}
	if m, err := webhook.Verify(header, payload, at, s); err != nil || m.ID != "msg_p5jXN8AQM9LWM0D4loKWxJek" || !m.Sent.Equal(at) {
		t.Errorf("%+v, %v", m, err)
	}
}

func TestEitherSideMayChangeItsSecretFirst(t *testing.T) {
	t.Parallel()
	old, fresh, other := secret(t, 1), secret(t, 2), secret(t, 3)
	for _, c := range []struct {
		signs, knows []webhook.Secret
		good         bool
	}{
		{[]webhook.Secret{old}, []webhook.Secret{old}, true},
		{[]webhook.Secret{fresh, old}, []webhook.Secret{old}, true},
		{[]webhook.Secret{fresh, old}, []webhook.Secret{fresh}, true},
		{[]webhook.Secret{old}, []webhook.Secret{fresh, old}, true},
		{[]webhook.Secret{fresh}, []webhook.Secret{fresh, old}, true},
		{[]webhook.Secret{old}, []webhook.Secret{fresh}, false},
		{[]webhook.Secret{fresh, old}, []webhook.Secret{other}, false},
	} {
		_, err := webhook.Verify(sign(t, "m1", c.signs...), body, noon, c.knows...)
		if (err == nil) != c.good {
			t.Errorf("signed with %d, verified with %d: %v", len(c.signs), len(c.knows), err)
		}
	}
}

func TestChangedMessagesAreRefused(t *testing.T) {
	t.Parallel()
	s := secret(t, 1)
	for name, change := range map[string]func(h http.Header) (payload []byte, now time.Time){
		"another body":     func(http.Header) ([]byte, time.Time) { return append(bytes.Clone(body), ' '), noon },
		"no body":          func(http.Header) ([]byte, time.Time) { return nil, noon },
		"another id":       func(h http.Header) ([]byte, time.Time) { h.Set("webhook-id", "m2"); return body, noon },
		"no id":            func(h http.Header) ([]byte, time.Time) { h.Del("webhook-id"); return body, noon },
		"two ids":          func(h http.Header) ([]byte, time.Time) { h.Add("webhook-id", "m1"); return body, noon },
		"another time":     func(h http.Header) ([]byte, time.Time) { h.Set("webhook-timestamp", "1794744001"); return body, noon },
		"the time as text": func(h http.Header) ([]byte, time.Time) { h.Set("webhook-timestamp", "noon"); return body, noon },
		"the time with +":  func(h http.Header) ([]byte, time.Time) { prefix(h, "webhook-timestamp", "+"); return body, noon },
		"the time with 0":  func(h http.Header) ([]byte, time.Time) { prefix(h, "webhook-timestamp", "0"); return body, noon },
		"no signature":     func(h http.Header) ([]byte, time.Time) { h.Del("webhook-signature"); return body, noon },
		"empty signature":  func(h http.Header) ([]byte, time.Time) { h.Set("webhook-signature", ""); return body, noon },
		"another version":  func(h http.Header) ([]byte, time.Time) { replace(h, "v1,", "v2,"); return body, noon },
		"asymmetric":       func(h http.Header) ([]byte, time.Time) { replace(h, "v1,", "v1a,"); return body, noon },
		"no version":       func(h http.Header) ([]byte, time.Time) { replace(h, "v1,", ""); return body, noon },
		"cut signature":    func(h http.Header) ([]byte, time.Time) { replace(h, "=", ""); return body, noon },
		"two signatures":   func(h http.Header) ([]byte, time.Time) { h.Add("webhook-signature", "v1,x"); return body, noon },
		"late":             func(http.Header) ([]byte, time.Time) { return body, noon.Add(webhook.Tolerance + time.Second) },
		"from the future":  func(http.Header) ([]byte, time.Time) { return body, noon.Add(-webhook.Tolerance - time.Second) },
		"endless signature": func(h http.Header) ([]byte, time.Time) {
			prefix(h, "webhook-signature", strings.Repeat("v1,x ", 1000))
			return body, noon
		},
	} {
		header := sign(t, "m1", s)
		payload, now := change(header)
		_, err := webhook.Verify(header, payload, now, s)
		if refused := (*webhook.VerifyError)(nil); !errors.As(err, &refused) {
			t.Errorf("%s: %v, want it refused", name, err)
		}
	}
}

func prefix(h http.Header, name, text string) { h.Set(name, text+h.Get(name)) }

func replace(h http.Header, old, with string) {
	h.Set("webhook-signature", strings.ReplaceAll(h.Get("webhook-signature"), old, with))
}

// The parts of what is signed are joined by dots, so the same text could be
// read as another message.
func TestSignatureFitsOneMessageOnly(t *testing.T) {
	t.Parallel()
	s, header := secret(t, 1), http.Header{}
	at := strconv.FormatInt(noon.Unix(), 10)
	if err := webhook.Sign(header, "m1", time.Unix(5, 0), []byte(at+".{}"), s); err != nil {
		t.Fatal(err)
	}
	header.Set("webhook-id", "m1.5")
	header.Set("webhook-timestamp", at)
	if _, err := webhook.Verify(header, []byte("{}"), noon, s); err == nil {
		t.Error("it was accepted as another message")
	}
}

func TestMessagesAreGoodForTheWholeTolerance(t *testing.T) {
	t.Parallel()
	s := secret(t, 1)
	for _, now := range []time.Time{noon.Add(webhook.Tolerance), noon.Add(-webhook.Tolerance)} {
		if _, err := webhook.Verify(sign(t, "m1", s), body, now, s); err != nil {
			t.Error(err)
		}
	}
}

func TestUnknownVersionsAreSkipped(t *testing.T) {
	t.Parallel()
	s := secret(t, 1)
	header := sign(t, "m1", s)
	prefix(header, "webhook-signature", "v1a,AAAA v9,x v1,short  ")
	if _, err := webhook.Verify(header, body, noon, s); err != nil {
		t.Error(err)
	}
}

func TestBadSecretsAndIDsAreRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "whsec_", "whsec_c2hvcnQ=", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_!!!!", "whsec_" + strings.Repeat("A", 100)} {
		if _, err := webhook.ParseSecret(text); err == nil || text != "" && strings.Contains(err.Error(), strings.TrimPrefix(text, "whsec_")+"x") {
			t.Errorf("%q: %v", text, err)
		}
	}
	one := secret(t, 1).Reveal()
	for text, n := range map[string]int{"": 0, one: 1, one + "," + one: 2, one + " \n" + one: 2, one + "," + one + "," + one: 0, one + ",x": 0} {
		if all, err := webhook.ParseSecrets(text); (err == nil) != (n > 0) || err == nil && len(all) != n {
			t.Errorf("%q: %d secrets, %v; want %d", text, len(all), err, n)
		}
	}
	for _, id := range []string{"", "a.b", "a b", "a\nb", "ä", strings.Repeat("x", webhook.MaxID+1)} {
		if err := webhook.Sign(http.Header{}, id, noon, body, secret(t, 1)); err == nil {
			t.Errorf("id %q was accepted", id)
		}
	}
	if err := webhook.Sign(http.Header{}, "m1", noon, body); err == nil {
		t.Error("signed without a secret")
	}
	if err := webhook.Sign(http.Header{}, "m1", noon, body, webhook.Secret{}); err == nil {
		t.Error("signed with an empty secret")
	}
}

func TestSecretsDoNotShowThemselves(t *testing.T) {
	t.Parallel()
	s := secret(t, 7)
	hidden := strings.TrimPrefix(s.Reveal(), "whsec_")
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "secret", s, "all", []webhook.Secret{s})
	encoded, err := json.Marshal(map[string]any{"secret": s})
	if err != nil {
		t.Fatal(err)
	}
	shown := fmt.Sprintf("%v %+v %#v %s %q %s %s", s, s, s, s, []webhook.Secret{s}, log.String(), encoded)
	if strings.Contains(shown, hidden) || strings.Contains(shown, "BwcHBw") || strings.Contains(shown, "0x7, 0x7") || strings.Contains(shown, "7 7 7") {
		t.Errorf("the secret is in %s", shown)
	}
	if again, err := webhook.ParseSecret(s.Reveal()); err != nil || again.Reveal() != s.Reveal() {
		t.Errorf("%v", err)
	}
}

func FuzzVerify(f *testing.F) {
	s := secret(f, 1)
	good := sign(f, "m1", s)
	f.Add("m1", good.Get("webhook-timestamp"), good.Get("webhook-signature"), body)
	f.Add("m1", "1794744000", "v1,", []byte{})
	f.Add("m1.1", "1", "v1,AAAA v1a,x ,, v1", body)
	f.Fuzz(func(t *testing.T, id, timestamp, signature string, payload []byte) {
		header := http.Header{"Webhook-Id": {id}, "Webhook-Timestamp": {timestamp}, "Webhook-Signature": {signature}}
		_, err := webhook.Verify(header, payload, noon, s)
		if err != nil {
			if refused := (*webhook.VerifyError)(nil); !errors.As(err, &refused) {
				t.Errorf("%v is not a *VerifyError", err)
			}
			return
		}
		again := http.Header{}
		if err := webhook.Sign(again, id, noon, payload, s); err != nil || again.Get("webhook-timestamp") == timestamp && !strings.Contains(signature, again.Get("webhook-signature")) {
			t.Errorf("%q was accepted without its signature", signature)
		}
	})
}
