package server_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"

	"github.com/perdure/perdure/internal/api"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/server"
)

// dial opens a socket of an actor with a token.
func (s *secured) dial(path, token string) *websocket.Conn {
	s.Helper()
	conn, res, err := websocket.Dial(enginetest.Context(s), strings.Replace(s.url, "http", "ws", 1)+path,
		&websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer " + token}}})
	enginetest.NoError(s, err)
	s.Cleanup(func() { _ = conn.CloseNow() })
	if res.Body != nil {
		s.Cleanup(func() { _ = res.Body.Close() })
	}
	return conn
}

// answer reads messages of a socket until one has one of the kinds, or the socket is
// closed.
func (s *secured) answer(conn *websocket.Conn, kinds ...string) (kind string, closed websocket.StatusCode) {
	s.Helper()
	for {
		var m object
		if err := wsjson.Read(enginetest.Context(s), conn, &m); err != nil {
			return "", websocket.CloseStatus(err)
		}
		for _, kind := range kinds {
			if m.text("kind") == kind {
				return kind, 0
			}
		}
	}
}

// A token that ends, or whose role is lowered, ends its streams and sockets, with a code
// that says so. A socket writes nothing from the moment that the token has ended.
func TestTheEndOfATokenEndsItsStreams(t *testing.T) {
	t.Parallel()
	for _, database := range []string{enginetest.SQLite, enginetest.Postgres} {
		for how, c := range map[string]struct {
			end    string // of the token
			status string
			code   websocket.StatusCode
		}{
			"revoked": {"update T.tokens set revoked_at = created_at where name = 'operator'", `"status":401`, 4401},
			"expired": {"update T.tokens set expires_at = created_at where name = 'operator'", `"status":401`, 4401},
			"lowered": {"update T.tokens set role = 'viewer' where name = 'operator'", `"status":403`, 4403},
		} {
			t.Run(database+" "+how, func(t *testing.T) {
				t.Parallel()
				s := doorsOn(t, database)
				token := s.tokens[api.Operator]
				var streams []*reader
				for _, path := range []string{"/v1/stream", "/v1/outbox/tail", "/v1/actors/door/front/stream"} {
					streams = append(streams, s.stream(path, "Authorization", "Bearer "+token))
				}
				idle, writing := s.dial("/v1/actors/door/front/socket", token), s.dial("/v1/actors/door/front/socket", token)
				enginetest.NoError(t, wsjson.Write(enginetest.Context(t), writing, object{"id": "1", "event": object{"type": "OPEN"}}))
				if kind, _ := s.answer(writing, "receipt", "error"); kind != "receipt" {
					t.Fatalf("before the end: %q", kind)
				}
				prefix := map[string]string{enginetest.SQLite: "perdure_", enginetest.Postgres: "perdure."}[database]
				s.db.Exec(t, strings.ReplaceAll(c.end, "T.", prefix))
				enginetest.NoError(t, wsjson.Write(enginetest.Context(t), writing, object{"id": "2", "event": object{"type": "CLOSE"}}))
				if kind, code := s.answer(writing, "receipt", "error"); kind == "receipt" || kind == "" && code != c.code {
					t.Errorf("a write after the end: %q, %d", kind, code)
				}
				for _, stream := range streams {
					if e := stream.next("closed"); !strings.Contains(e.data, c.status) {
						t.Errorf("closed: %+v", e)
					}
				}
				if _, code := s.answer(idle); code != c.code {
					t.Errorf("a socket was closed with %d, want %d", code, c.code)
				}
				s.token = s.tokens[api.Admin]
				if v := s.get("/v1/actors/door/front/snapshot"); v["value"] != "open" {
					t.Errorf("the door is %v", v["value"])
				}
			})
		}
	}
}

// A token of an actor that is revoked ends its socket.
func TestARevokedTokenOfAnActorEndsItsSocket(t *testing.T) {
	t.Parallel()
	s := doors(t)
	access, err := auth.New(s.eng, nil)
	enginetest.NoError(t, err)
	issued, err := access.CreateActor(t.Context(), auth.ActorScope{Type: "door", ID: "front", CallerKind: "client", CallerID: "ada"}, time.Hour)
	enginetest.NoError(t, err)
	conn := s.dial("/v1/actors/door/front/socket", issued.Secret)
	if kind, _ := s.answer(conn, "snapshot"); kind != "snapshot" {
		t.Fatal("no snapshot")
	}
	enginetest.NoError(t, access.Revoke(t.Context(), issued.ID))
	if _, code := s.answer(conn); code != 4401 {
		t.Errorf("it was closed with %d", code)
	}
}

// A request that waits is answered with 401 when its token ends.
func TestTheEndOfATokenEndsItsWaitingRequests(t *testing.T) {
	t.Parallel()
	for what, path := range map[string]string{"instance": "/v1/instances/{id}/wait?timeout=5m", "actor": "/v1/actors/door/front/snapshot?wait_for_state=open&timeout=5m"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := doors(t)
			s.fixture = reopen(s.fixture, func(o *server.Options) { o.MaxStreams = 1 })
			s.token = s.tokens[api.Admin]
			s.want(http.StatusOK, http.MethodPut, "/v1/definitions/slow", object{"version": 1, "url": "https://example.com/", "steps": []object{{"name": "a"}}})
			id := s.want(http.StatusCreated, http.MethodPost, "/v1/instances", object{"definition": "slow", "delay": "1h"}).text("id")
			get := func(path string) answer {
				return s.do(http.MethodGet, path, nil, "Authorization", "Bearer "+s.tokens[api.Operator])
			}
			answers := make(chan answer, 1)
			go func() {
				a := get(strings.Replace(path, "{id}", id, 1))
				for a.status == http.StatusTooManyRequests { // the request below was there
					a = get(strings.Replace(path, "{id}", id, 1))
				}
				answers <- a
			}()
			enginetest.Eventually(t, "the request waits: the token may have no other one", func() bool {
				return get("/v1/actors/door/front/snapshot").status == http.StatusTooManyRequests
			})
			s.db.Exec(t, "update perdure_tokens set revoked_at = created_at where name = 'operator'")
			if a := <-answers; a.status != http.StatusUnauthorized {
				t.Errorf("%d: %s", a.status, a.body)
			}
		})
	}
}
