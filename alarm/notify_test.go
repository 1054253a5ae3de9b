package alarm_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perdure/perdure/alarm"
	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/internal/webhook"
	"github.com/perdure/perdure/retry"
)

// post is a sender that keeps what it is given, or refuses it.
type post struct {
	mu     sync.Mutex
	refuse int // how many messages
	sent   []alarm.Message
}

func (p *post) Send(_ context.Context, m alarm.Message) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent = append(p.sent, m)
	if p.refuse > 0 {
		p.refuse--
		return errors.New("receiver is away")
	}
	return nil
}

// received returns the last message's URL and type, and its data.
func (p *post) received(t testing.TB) (url, typ string, data map[string]any) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	var body struct {
		Type string
		Data map[string]any
	}
	last := p.sent[len(p.sent)-1]
	enginetest.NoError(t, json.Unmarshal(last.Body, &body))
	return last.URL, body.Type, body.Data
}

// An alarm of the type webhook needs no handler: its fire is the message.
func (Conformance) AWebhookAlarmIsAMessage(t *testing.T, db enginetest.Database) {
	to := &post{refuse: 1}
	f := newFixture(t, db, &alarm.Options{Sender: to})
	key := alarm.Of("order", "7", "expiry")
	enginetest.NoError(t, f.alarms.Schedule(enginetest.Context(t), key, alarm.Webhook, map[string]int{"total": 3},
		&alarm.ScheduleOptions{Every: time.Hour, At: noon, Webhook: "https://example.org/hook", Retry: retry.Fixed(3, time.Second)}))
	process(t, newAlarms(t, f.eng, nil), 0) // nobody to send it there
	f.process(t, 1)
	equal(t, "attempts", f.is(t, key, alarm.Retrying).Attempts, 1)
	f.clock.Advance(time.Second)
	f.process(t, 1)
	equal(t, "messages", len(to.sent), 2)
	equal(t, "id of the second", to.sent[1].ID, to.sent[0].ID)
	url, typ, data := to.received(t)
	equal(t, "url", url, "https://example.org/hook")
	equal(t, "type", typ, "alarm.fired")
	equal(t, "attempt", data["attempt"].(float64), 2)
	equal(t, "scheduled", data["scheduled"].(string), "2026-03-01T12:00:00Z")
	equal(t, "next", data["next"].(string), "2026-03-01T13:00:00Z")
	equal(t, "payload", data["payload"].(map[string]any)["total"].(float64), 3)
	equal(t, "actor", data["actor"].(map[string]any)["id"].(string), "7")
	f.rows(t, 1)
}

// A notification is recorded with the outcome and has retries of its own.
func (Conformance) WhatBecomesOfAnAlarmIsNotified(t *testing.T, db enginetest.Database) {
	to := &post{}
	f := newFixture(t, db, &alarm.Options{Sender: to, Notify: "https://example.org/all", Retry: retry.Fixed(2, time.Second)})
	f.handle(t, "good", nil)
	f.handle(t, "bad", func(context.Context, string) error { return errors.New("no") })
	f.schedule(t, "x", "good", nil)
	to.refuse = 1
	f.process(t, 2) // the alarm and its notification
	f.rows(t, 1)    // which waits
	hidden, _, err := f.alarms.List(enginetest.Context(t), alarm.Filter{}, "", 0)
	enginetest.NoError(t, err)
	equal(t, "alarms in the list", len(hidden), 0)
	notices, _, err := f.alarms.List(enginetest.Context(t), alarm.Filter{Type: "perdure.notice"}, "", 0)
	enginetest.NoError(t, err)
	equal(t, "notifications in the list", len(notices), 1)
	f.clock.Advance(time.Second)
	f.process(t, 1)
	f.rows(t, 0)
	url, typ, data := to.received(t)
	equal(t, "url", url, "https://example.org/all")
	equal(t, "type", typ, "alarm.fired")
	equal(t, "id", data["id"].(string), "x")

	key := f.schedule(t, "y", "bad", &alarm.ScheduleOptions{Webhook: "https://example.org/own"})
	f.process(t, 2)
	url, typ, data = to.received(t)
	equal(t, "url", url, "https://example.org/own")
	equal(t, "type", typ, "alarm.failed")
	equal(t, "error", data["error"].(string), "no")
	f.clock.Advance(time.Second)
	f.process(t, 2)
	_, typ, _ = to.received(t)
	equal(t, "type", typ, "alarm.dead")
	f.is(t, key, alarm.Failed)
	f.rows(t, 1)
}

// A handler that sets its own alarm again has fired all the same; if it fails, there
// is nothing that would be tried again.
func (Conformance) AnAlarmThatSetsItselfAgainIsNotified(t *testing.T, db enginetest.Database) {
	to := &post{}
	f := newFixture(t, db, &alarm.Options{Sender: to, Notify: "https://example.org/"})
	f.handle(t, "again", func(ctx context.Context, id string) error {
		enginetest.NoError(t, f.alarms.Schedule(ctx, alarm.ID(id), "again", id, &alarm.ScheduleOptions{Delay: time.Hour}))
		if id == "bad" {
			return errors.New("no")
		}
		return nil
	})
	f.schedule(t, "bad", "again", nil)
	f.process(t, 1)
	f.schedule(t, "good", "again", nil)
	f.process(t, 2)
	equal(t, "messages", len(to.sent), 1)
	_, typ, data := to.received(t)
	equal(t, "message", typ+" "+data["id"].(string), "alarm.fired good")
	equal(t, "stats", f.alarms.Stats(), alarm.Stats{Fired: 2}) // and the notification
	f.rows(t, 2)
}

func (Conformance) AQuarantineIsNotified(t *testing.T, db enginetest.Database) {
	to := &post{}
	f := newFixture(t, db, &alarm.Options{MaxCrashes: 3, Sender: to, Notifications: []alarm.NotificationKind{alarm.NotifyDead}})
	f.handle(t, "a", nil)
	f.schedule(t, "x", "a", &alarm.ScheduleOptions{Webhook: "https://example.org/"})
	f.schedule(t, "y", "a", &alarm.ScheduleOptions{Webhook: "https://example.org/", Delay: time.Minute})
	for range 2 {
		f.abandon(t, 10*time.Second)
		f.clock.Advance(10 * time.Second)
		f.reap(t)
	}
	f.abandon(t, 10*time.Second)
	f.clock.Advance(time.Minute)
	f.process(t, 2) // y, whose fire is not notified, and the notification
	equal(t, "messages", len(to.sent), 1)
	_, typ, data := to.received(t)
	equal(t, "type", typ, "alarm.dead")
	equal(t, "id", data["id"].(string), "x")
	equal(t, "crashes", data["crashes"].(float64), 3)
}

// receiver answers every message with a status, and perhaps asks to wait.
func receiver(t *testing.T, status int, after string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if after != "" {
			w.Header().Set("Retry-After", after)
		}
		w.WriteHeader(status)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func (Conformance) AReceiverSaysWhenAMessageIsSentAgain(t *testing.T, db enginetest.Database) {
	send, err := alarm.NewSender(secret, &alarm.SenderOptions{Allow: []string{"127.0.0.1"}})
	enginetest.NoError(t, err)
	f := newFixture(t, db, &alarm.Options{Sender: send, Retry: retry.Fixed(3, 10*time.Second)})
	for _, c := range []struct {
		name   string
		status int
		after  string
		want   time.Duration // until the next attempt, 0 if there is none
	}{
		{"busy", http.StatusServiceUnavailable, "3600", time.Hour},
		{"impatient", http.StatusTooManyRequests, "1", 10 * time.Second},
		{"years", http.StatusServiceUnavailable, "99999999", 24 * time.Hour},
		{"silent", http.StatusInternalServerError, "", 10 * time.Second},
		{"gone", http.StatusGone, "", 0},
		{"gone for a while", http.StatusGone, "60", 0},
	} {
		key := f.schedule(t, c.name, alarm.Webhook, &alarm.ScheduleOptions{Webhook: receiver(t, c.status, c.after)})
		f.process(t, 1)
		if c.want == 0 {
			f.is(t, key, alarm.Failed)
			continue
		}
		equal(t, c.name+": the next attempt is in", f.is(t, key, alarm.Retrying).Due.Sub(f.clock.Now()), c.want)
	}
}

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

func TestMessagesAreSigned(t *testing.T) {
	t.Parallel()
	got := make(chan error, 1)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		key, err := webhook.ParseSecret(secret)
		if err == nil {
			_, err = webhook.Verify(r.Header, body, clock.System.Now(), key)
		}
		got <- err
	}))
	defer receiver.Close()
	send, err := alarm.NewSender(secret, &alarm.SenderOptions{Allow: []string{"127.0.0.1"}})
	enginetest.NoError(t, err)
	enginetest.NoError(t, send.Send(t.Context(), alarm.Message{URL: receiver.URL, ID: "1", Body: []byte(`{}`)}))
	enginetest.NoError(t, <-got)

	guarded, err := alarm.NewSender(secret, nil)
	enginetest.NoError(t, err)
	err = guarded.Send(t.Context(), alarm.Message{URL: receiver.URL, ID: "1", Body: []byte(`{}`)})
	if err == nil || !strings.Contains(err.Error(), "loopback") && !strings.Contains(err.Error(), "not public") && !strings.Contains(err.Error(), "127.0.0.1") {
		t.Fatalf("an address of this machine was answered with %v", err)
	}
	for _, bad := range []string{"", "whsec_x", "password"} {
		if _, err := alarm.NewSender(bad, nil); err == nil {
			t.Fatalf("the secret %q was accepted", bad)
		}
	}
	if _, err := alarm.NewSender(secret, &alarm.SenderOptions{Allow: []string{"//"}}); err == nil {
		t.Fatal("a bad exception was accepted")
	}
}
