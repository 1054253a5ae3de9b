package logging

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

// planted are secrets in the forms in which they come along, each with the part
// that must not be written.
var planted = []struct {
	write  func(*slog.Logger)
	secret string
}{
	{func(l *slog.Logger) { l.Info("connect to postgres://ada:hunter22@db/x") }, "hunter22"},
	{func(l *slog.Logger) { l.Info("connect", "url", "mysql://ada:p%40ss-word@db/x?tls=true") }, "p%40ss-word"},
	{func(l *slog.Logger) {
		l.Error("connect", "error", fmt.Errorf("dial: %w", errors.New("postgres://u:wrapped77@h/d")))
	}, "wrapped77"},
	{func(l *slog.Logger) { l.Info("connect to postgres://h/d?password=queried88&x=1") }, "queried88"},
	{func(l *slog.Logger) { l.Info("configure", "dsn_password", "byname99") }, "byname99"},
	{func(l *slog.Logger) { l.Info("request", "Authorization", "anything-at-all") }, "anything-at-all"},
	{func(l *slog.Logger) { l.Info("request", slog.Group("header", "Cookie", "session=abcdef")) }, "abcdef"},
	{func(l *slog.Logger) { l.With("api_key", "withkey123").Info("send") }, "withkey123"},
	{func(l *slog.Logger) { l.WithGroup("mail").Info("send", "secret", "ingroup456") }, "ingroup456"},
	{func(l *slog.Logger) { l.Info("header is Bearer abcdefgh12345") }, "abcdefgh12345"},
	{func(l *slog.Logger) { l.Info("header is basic dXNlcjpwYXNz") }, "dXNlcjpwYXNz"},
	{func(l *slog.Logger) { l.Info("use perdure_sk_0123456789abcdef now") }, "0123456789abcdef"},
	{func(l *slog.Logger) { l.Info("use", "value", "perdure_at_zyxwvut") }, "zyxwvut"},
	{func(l *slog.Logger) { l.Info("sign with whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw") }, "MfKQ9r8GKYqr"},
	{func(l *slog.Logger) { l.Info("resend", "k", "re_12345678_abcd") }, "12345678_abcd"},
	{func(l *slog.Logger) { l.Info("the known one is correct-horse") }, "correct-horse"},
	{func(l *slog.Logger) { l.Error("x", "error", errors.New("refused correct-horse")) }, "correct-horse"},
	{func(l *slog.Logger) { l.Info("x", "list", []string{"a", "correct-horse"}) }, "correct-horse"},
	{func(l *slog.Logger) { l.Info("x", "map", map[string]any{"a": "Bearer abcdefgh12345"}) }, "abcdefgh12345"},
	{func(l *slog.Logger) { l.Info("x", "v", struct{ URL string }{"https://u:structure1@h"}) }, "structure1"},
	{func(l *slog.Logger) { l.Warn("x", "TWILIO_TOKEN", 12345678) }, "12345678"},
}

func TestNoSecretIsWritten(t *testing.T) {
	t.Parallel()
	for _, people := range []bool{true, false} {
		for i, p := range planted {
			var out bytes.Buffer
			p.write(New(&out, Options{People: people, Secrets: []string{"correct-horse"}}))
			if strings.Contains(out.String(), p.secret) {
				t.Errorf("%d: people %v: %s", i, people, out.String())
			}
			if out.Len() == 0 {
				t.Errorf("%d: nothing was written", i)
			}
		}
	}
}

func TestOrdinaryTextStays(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	New(&out, Options{}).Info("served https://h/v1/hooks?cursor=abc", "took", 12, "error", errors.New("no such hook"))
	var line map[string]any
	if err := json.Unmarshal(out.Bytes(), &line); err != nil {
		t.Fatal(err)
	}
	if line["msg"] != "served https://h/v1/hooks?cursor=abc" || line["error"] != "no such hook" || line["took"] != 12.0 || line["level"] != "INFO" {
		t.Errorf("got %v", line)
	}
}
