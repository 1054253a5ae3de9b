package server_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/internal/api"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/test/enginetest"
)

// doors makes two doors, of which only services may break one.
func doors(t *testing.T) *secured {
	t.Helper()
	return doorsOn(t, enginetest.SQLite)
}

func doorsOn(t *testing.T, database string) *secured {
	t.Helper()
	s := secureOn(t, database)
	s.token = s.tokens[api.Admin]
	options := object{"events": object{"client": []string{"OPEN"}, "service": []string{"OPEN", "BREAK"}}}
	s.want(http.StatusOK, http.MethodPut, "/v1/statecharts/door", object{"definition": json.RawMessage(door), "options": options})
	for _, id := range []string{"front", "back"} {
		s.want(http.StatusCreated, http.MethodPost, "/v1/actors", object{"type": "door", "id": id})
	}
	s.token = s.actor
	return s
}

// Cases 53 and 54 of the notes on actors, over HTTP.
func TestClientCannotSendWhatIsForServices(t *testing.T) {
	t.Parallel()
	s := doors(t)
	s.want(http.StatusOK, http.MethodPost, "/v1/actors/door/front/events", object{"type": "OPEN"})
	if a := s.do(http.MethodPost, "/v1/actors/door/front/events", object{"type": "BREAK"}); a.status != http.StatusForbidden {
		t.Errorf("%d: %s", a.status, a.body)
	}
	for _, forged := range []string{"xstate.after.3600000.door.open", "xstate.done.actor.x", "xstate.stop", "RESUME"} {
		if a := s.do(http.MethodPost, "/v1/actors/door/front/events", object{"type": forged}); a.status < 400 || a.status > 499 {
			t.Errorf("%s: %d: %s", forged, a.status, a.body)
		}
	}
}

// Case 55.
func TestTokenOfAnotherActorIsNone(t *testing.T) {
	t.Parallel()
	s := doors(t)
	access, err := auth.New(s.eng, nil)
	enginetest.NoError(t, err)
	made := func(scope auth.ActorScope, good time.Duration) string {
		issued, err := access.CreateActor(t.Context(), scope, good)
		enginetest.NoError(t, err)
		return issued.Secret
	}
	for what, token := range map[string]string{
		"of another id":   made(auth.ActorScope{Type: "door", ID: "back", CallerKind: "client", CallerID: "ada"}, time.Hour),
		"of another type": made(auth.ActorScope{Type: "gate", ID: "front", CallerKind: "client", CallerID: "ada"}, time.Hour),
		"expired":         made(auth.ActorScope{Type: "door", ID: "front", CallerKind: "client", CallerID: "ada"}, time.Microsecond),
		"without alg":     "eyJhbGciOiJub25lIn0.eyJ0eXBlIjoiZG9vciIsImlkIjoiZnJvbnQifQ.",
		"of the system":   "perdure_at_" + strings.Repeat("A", 43),
	} {
		for _, path := range []string{"/events", "/snapshot"} {
			method := map[string]string{"/events": http.MethodPost, "/snapshot": http.MethodGet}[path]
			var body any
			if method == http.MethodPost {
				body = object{"type": "OPEN"}
			}
			if a := s.do(method, "/v1/actors/door/front"+path, body, "Authorization", "Bearer "+token); a.status != http.StatusUnauthorized {
				t.Errorf("%s on %s: %d: %s", what, path, a.status, a.body)
			}
		}
	}
	if a := s.do(http.MethodPost, "/v1/actors/door/front/tokens", object{"caller": object{"type": "system", "id": "x"}}, "Authorization", "Bearer "+s.tokens[api.Admin]); a.status != 422 {
		t.Errorf("a token of the system was made: %d: %s", a.status, a.body)
	}
}

// Case 56. A caller that the token does not allow is refused; what an event says about
// its caller is not heard.
func TestCallerIsThatOfTheToken(t *testing.T) {
	t.Parallel()
	for _, database := range []string{enginetest.SQLite, enginetest.Postgres} {
		s := doorsOn(t, database)
		for _, named := range []string{"service:billing", "client:eve", "client:", "system:x", "ada", "client:ada:x"} {
			for path, body := range map[string]any{"/events": object{"type": "OPEN"}, "/snapshot": nil, "/stream": nil, "/socket": nil} {
				method := map[bool]string{true: http.MethodGet, false: http.MethodPost}[body == nil]
				if a := s.do(method, "/v1/actors/door/front"+path+"?caller="+named, body); a.status != http.StatusForbidden {
					t.Errorf("%s as %s: %d: %s", path, named, a.status, a.body)
				}
			}
		}
		s.want(http.StatusOK, http.MethodPost, "/v1/actors/door/front/events?caller=client:ada", object{"type": "OPEN", "caller": object{"type": "system", "id": "root"}})
		s.want(http.StatusOK, http.MethodGet, "/v1/actors/door/front/snapshot?caller=client:ada", nil)
		s.token = s.tokens[api.Admin]
		log := string(s.do(http.MethodGet, "/v1/actors/door/front/log", nil).body)
		if !strings.Contains(log, `"caller":"client:ada"`) || strings.Contains(log, "billing") || strings.Contains(log, `"caller":"system:root"`) {
			t.Errorf("%s", log)
		}
		s.want(http.StatusOK, http.MethodGet, "/v1/actors/door/front/snapshot?caller=service:billing", nil)
		for named, status := range map[string]int{"system:x": http.StatusForbidden, "nobody": http.StatusUnprocessableEntity} {
			s.want(status, http.MethodGet, "/v1/actors/door/front/snapshot?caller="+named, nil)
			s.want(status, http.MethodPost, "/v1/actors/door/front/events?caller="+named, object{"type": "OPEN"})
		}
	}
}
