package server_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket/wsjson"

	"github.com/perdure/perdure/internal/api"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/server"
)

// safe keeps a pin, which it was made with and which it is told.
const safe = `{"id":"safe","initial":"shut","context":{"public":{"pin":"planted-1","count":0},"private":{}},"states":{"shut":{"on":{"SET":{"actions":[
	{"type":"xstate.assign","params":{"assignment":{"public":{"pin":{"$expr":"event.pin"},"count":{"$expr":"context.public.count + 1"}}}}},
	{"type":"xstate.log","params":{"value":{"pin":"planted-log"}}}]}}}}}`

// What the rules take out is in no answer to an API token: not in snapshots, receipts,
// streams and sockets either. The token of an actor sees what the actor shows it.
func TestSnapshotsForAPITokensAreRedacted(t *testing.T) {
	t.Parallel()
	for _, database := range []string{enginetest.SQLite, enginetest.Postgres} {
		t.Run(database, func(t *testing.T) {
			t.Parallel()
			f := secureOn(t, database)
			access, err := auth.New(f.eng, nil)
			enginetest.NoError(t, err)
			s := &secured{fixture: reopen(f.fixture, func(o *server.Options) { o.Auth, o.Redact = access, []string{"pin"} }), tokens: f.tokens}
			s.token = s.tokens[api.Admin]
			s.want(http.StatusOK, http.MethodPut, "/v1/statecharts/safe", object{"definition": json.RawMessage(safe)})
			s.want(http.StatusCreated, http.MethodPost, "/v1/actors", object{"type": "safe", "id": "1"})
			issued, err := access.CreateActor(t.Context(), auth.ActorScope{Type: "safe", ID: "1", CallerKind: "client", CallerID: "ada"}, 0)
			enginetest.NoError(t, err)
			for role, token := range map[string]string{"viewer": s.tokens[api.Viewer], "operator": s.tokens[api.Operator], "admin": s.tokens[api.Admin], "client": issued.Secret} {
				for what, text := range s.shown(role, token) {
					if !strings.Contains(text, "count") {
						t.Errorf("%s of %s: %s", what, role, text)
					}
					if open := strings.Contains(text, "planted"); open != (role == "client") {
						t.Errorf("%s of %s: %s", what, role, text)
					}
				}
			}
		})
	}
}

// shown returns what a token is shown of the safe, by all routes that show it.
func (s *secured) shown(role, token string) map[string]string {
	s.Helper()
	path, bearer := "/v1/actors/safe/1", []string{"Authorization", "Bearer " + token}
	all := map[string]string{"the snapshot": string(s.do(http.MethodGet, path+"/snapshot", nil, bearer...).body)}
	stream, conn := s.stream(path+"/stream", bearer...), s.dial(path+"/socket", token)
	all["the first event"] = stream.next("snapshot").data
	read := func(kind string) string {
		for {
			var m json.RawMessage
			enginetest.NoError(s, wsjson.Read(enginetest.Context(s), conn, &m))
			if strings.Contains(string(m), `"kind":"`+kind+`"`) {
				return string(m)
			}
		}
	}
	all["the first message"] = read("snapshot")
	writer := token
	if role == "viewer" {
		writer = s.tokens[api.Operator]
	}
	event := object{"type": "SET", "pin": "planted-" + role}
	sent := s.do(http.MethodPost, path+"/events", event, "Authorization", "Bearer "+writer)
	if writer == token {
		all["the receipt"] = string(sent.body)
	}
	all["the patch"] = stream.next("patch").data
	all["the patch of the socket"] = read("patch")
	if role != "viewer" {
		enginetest.NoError(s, wsjson.Write(enginetest.Context(s), conn, object{"id": "1", "event": event}))
		all["the receipt of the socket"] = read("receipt")
	}
	return all
}

// Addresses of webhooks are checked when they are stored.
func TestAddressesOfWebhooksAreCheckedWhenTheyAreStored(t *testing.T) {
	t.Parallel()
	for _, database := range []string{enginetest.SQLite, enginetest.Postgres} {
		f := open(t, enginetest.New(t, database), nil)
		for url, status := range map[string]int{
			"http://127.0.0.1/": 422, "http://169.254.169.254/latest/": 422, "http://10.0.0.1/": 422, "http://0x7f.1/": 422, "ftp://example.org/": 422,
			"http://user:secret@example.org/": 422, "https://hooks.example.org/x": 200,
		} {
			a := f.do(http.MethodPut, "/v1/alarms/x", object{"type": "webhook", "delay": "1h", "webhook": url})
			if a.status != status || strings.Contains(string(a.body), "secret") {
				t.Errorf("%s: %d: %s", url, a.status, a.body)
			}
		}
	}
}
