package server_test

import (
	"net/http"
	"testing"

	"github.com/perdure/perdure/internal/api"
	"github.com/perdure/perdure/internal/test/enginetest"
)

// issue makes a token of a door for a client.
func (s *secured) issue(id, caller string) (token, secret string) {
	s.Helper()
	made := s.want(http.StatusCreated, http.MethodPost, "/v1/actors/door/"+id+"/tokens", object{"caller": object{"type": "client", "id": caller}})
	return made.text("id"), made.text("token")
}

// Tokens of actors are listed, those of one actor and those of all, and revoked.
func TestTokensOfActorsAreListedAndRevoked(t *testing.T) {
	t.Parallel()
	for _, database := range []string{enginetest.SQLite, enginetest.Postgres} {
		t.Run(database, func(t *testing.T) {
			t.Parallel()
			s := doorsOn(t, database)
			s.token = s.tokens[api.Admin]
			before := len(s.get("/v1/tokens/actors").list())
			front, secret := s.issue("front", "eve")
			other, _ := s.issue("front", "bob")
			back, _ := s.issue("back", "eve")
			var ids []string
			for cursor := ""; ; {
				page := s.get("/v1/tokens/actors?limit=2&cursor=" + cursor)
				for _, token := range page.list() {
					ids = append(ids, token.text("id"))
				}
				if page["next_cursor"] == nil {
					break
				}
				cursor = page.text("next_cursor")
			}
			if len(ids) != before+3 || ids[0] != back || ids[1] != other || ids[2] != front {
				t.Errorf("tokens of all actors: %v", ids)
			}
			for _, token := range s.get("/v1/actors/door/back/tokens").list() {
				if token.text("id") != back || token["actor"].(map[string]any)["id"] != "back" || token["caller"].(map[string]any)["id"] != "eve" || token["expires_at"] == nil {
					t.Errorf("%v", token)
				}
			}
			for _, path := range []string{"/v1/tokens/actors", "/v1/actors/door/front/tokens"} {
				for _, role := range []api.Role{api.Viewer, api.Operator} {
					if a := s.do(http.MethodGet, path, nil, "Authorization", "Bearer "+s.tokens[role]); a.status != http.StatusForbidden {
						t.Errorf("%s as %v: %d", path, role, a.status)
					}
				}
				if a := s.do(http.MethodGet, path, nil, "Authorization", "Bearer "+secret); a.status < 400 {
					t.Errorf("%s with the token of an actor: %d", path, a.status)
				}
			}
			s.want(http.StatusUnprocessableEntity, http.MethodGet, "/v1/tokens/actors?cursor=x", nil)
			s.want(http.StatusNoContent, http.MethodDelete, "/v1/tokens/"+front, nil)
			if a := s.do(http.MethodGet, "/v1/actors/door/front/snapshot", nil, "Authorization", "Bearer "+secret); a.status != http.StatusUnauthorized {
				t.Errorf("the revoked token: %d: %s", a.status, a.body)
			}
		})
	}
}

// The tokens of an actor end with it, and so do their streams. An actor that gets its
// name later is not theirs.
func TestTokensOfADeletedActorEnd(t *testing.T) {
	t.Parallel()
	for _, database := range []string{enginetest.SQLite, enginetest.Postgres} {
		t.Run(database, func(t *testing.T) {
			t.Parallel()
			s := doorsOn(t, database)
			s.token = s.tokens[api.Admin]
			_, front := s.issue("front", "eve")
			_, back := s.issue("back", "eve")
			conn := s.dial("/v1/actors/door/front/socket", front)
			if kind, _ := s.answer(conn, "snapshot"); kind != "snapshot" {
				t.Fatal("no snapshot")
			}
			stream := s.stream("/v1/actors/door/front/stream", "Authorization", "Bearer "+front)
			s.want(http.StatusNoContent, http.MethodDelete, "/v1/actors/door/front", nil)
			s.want(http.StatusCreated, http.MethodPost, "/v1/actors", object{"type": "door", "id": "front"})
			if _, code := s.answer(conn); code < 0 {
				t.Errorf("the socket was closed with %d", code)
			}
			for stream.lines.Scan() { // until it ends
			}
			enginetest.NoError(t, stream.lines.Err())
			for _, path := range []string{"/v1/actors/door/front/snapshot", "/v1/actors/door/front/stream"} {
				if a := s.do(http.MethodGet, path, nil, "Authorization", "Bearer "+front); a.status != http.StatusUnauthorized {
					t.Errorf("%s: %d: %s", path, a.status, a.body)
				}
			}
			if tokens := s.get("/v1/actors/door/front/tokens").list(); len(tokens) != 0 {
				t.Errorf("left: %v", tokens)
			}
			if a := s.do(http.MethodGet, "/v1/actors/door/back/snapshot", nil, "Authorization", "Bearer "+back); a.status != http.StatusOK {
				t.Errorf("the token of another actor: %d: %s", a.status, a.body)
			}
		})
	}
}
