package server_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/internal/api"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/test/enginetest"
	"github.com/perdure/perdure/server"
)

var update = flag.Bool("update", false, "write the golden files")

// secured is a server whose requests need a token, with one of each role.
type secured struct {
	*fixture
	tokens map[api.Role]string
	actor  string
}

func secure(t *testing.T) *secured {
	t.Helper()
	return secureOn(t, enginetest.SQLite)
}

func secureOn(t *testing.T, database string) *secured {
	t.Helper()
	var access *auth.Access
	s := &secured{tokens: map[api.Role]string{}}
	f := open(t, enginetest.New(t, database), nil)
	access, err := auth.New(f.eng, nil)
	enginetest.NoError(t, err)
	s.fixture = reopen(f, func(o *server.Options) { o.Auth = access })
	for _, role := range []api.Role{api.Viewer, api.Operator, api.Admin} {
		issued, err := access.Create(t.Context(), role.String(), role, 0)
		enginetest.NoError(t, err)
		s.tokens[role] = issued.Secret
	}
	issued, err := access.CreateActor(t.Context(), auth.ActorScope{Type: "door", ID: "front", CallerKind: "client", CallerID: "ada"}, time.Hour)
	enginetest.NoError(t, err)
	s.actor = issued.Secret
	return s
}

// concrete fills the names of a route's path, with things that do not exist: whoever
// may use the route is told so, and nobody changes anything.
func concrete(r api.Route) string {
	return strings.NewReplacer("{type}", "door", "{id}", "1", "{name}", "none", "{key}", "k", "{kind}", "instances").Replace(r.Path)
}

// ask sends a request for a route and returns its status; a stream is left at once.
func (s *secured) ask(r api.Route, path, token string) int {
	s.Helper()
	var body *bytes.Reader
	body = bytes.NewReader(nil)
	if r.Method == http.MethodPost || r.Method == http.MethodPut || r.Method == http.MethodPatch {
		body = bytes.NewReader([]byte("{}"))
	}
	req, err := http.NewRequestWithContext(s.Context(), r.Method, s.url+path, body)
	enginetest.NoError(s, err)
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := http.DefaultClient.Do(req)
	enginetest.NoError(s, err)
	_ = res.Body.Close()
	return res.StatusCode
}

// Every role on every route: who may not gets 401 or 403 and nothing else does.
func TestEveryRoleOnEveryRoute(t *testing.T) {
	t.Parallel()
	s := secure(t)
	for _, r := range api.Routes {
		path := concrete(r)
		if status := s.ask(r, path, ""); r.Role != api.Anyone && status != http.StatusUnauthorized {
			t.Errorf("%s without a token: %d, want 401", r.ID, status)
		}
		for role, token := range s.tokens {
			status := s.ask(r, path, token)
			if refused := status == http.StatusForbidden; refused != (role < r.Role) || status == http.StatusUnauthorized && r.Role != api.Anyone {
				t.Errorf("%s as %s: %d, but it needs %s", r.ID, role, status, r.Role)
			}
			if status >= 500 {
				t.Errorf("%s as %s: %d", r.ID, role, status)
			}
		}
	}
}

// The token of an actor opens the routes of that actor for its caller, and no other.
func TestTheTokenOfAnActorOpensThatActorOnly(t *testing.T) {
	t.Parallel()
	s := secure(t)
	for _, r := range api.Routes {
		own := strings.NewReplacer("{type}", "door", "{id}", "front", "{name}", "none", "{key}", "k", "{kind}", "instances").Replace(r.Path)
		status := s.ask(r, own, s.actor)
		if allowed := status != http.StatusForbidden; allowed != r.Actor {
			t.Errorf("%s of its actor: %d, allowed is %v", r.ID, status, r.Actor)
		}
		want := http.StatusForbidden
		if r.Actor {
			want = http.StatusUnauthorized
		}
		if status := s.ask(r, concrete(r), s.actor); status != want {
			t.Errorf("%s of another actor: %d, want %d", r.ID, status, want)
		}
	}
}

// A viewer can change nothing: no method but GET, except where nothing is stored.
func TestAViewerOnlyReads(t *testing.T) {
	t.Parallel()
	harmless := []string{"check-statechart", "begin-session", "end-session"}
	for _, r := range api.Routes {
		if r.Role < api.Operator && r.Method != http.MethodGet && !slices.Contains(harmless, r.ID) {
			t.Errorf("%s needs only %s", r.ID, r.Role)
		}
	}
	s := secure(t)
	f := s.db
	f.Unchanged(t, func() {
		for _, r := range api.Routes {
			if r.Method != http.MethodGet && !slices.Contains(harmless, r.ID) {
				s.ask(r, concrete(r), s.tokens[api.Viewer])
			}
		}
	})
}

// The document has exactly the routes that are served, with their roles, and is the
// one that is kept with the documentation.
func TestTheOpenAPIDocumentEqualsTheHandlers(t *testing.T) {
	t.Parallel()
	f := open(t, enginetest.New(t, enginetest.SQLite), nil)
	raw := f.do(http.MethodGet, "/openapi.json", nil).body
	var doc struct {
		OpenAPI string
		Paths   map[string]map[string]struct {
			OperationID string `json:"operationId"`
			Role        string `json:"x-perdure-role"`
			Responses   map[string]any
		}
	}
	enginetest.NoError(t, json.Unmarshal(raw, &doc))
	if !strings.HasPrefix(doc.OpenAPI, "3.1") {
		t.Errorf("version %s", doc.OpenAPI)
	}
	documented := 0
	for _, methods := range doc.Paths {
		documented += len(methods)
	}
	if documented != len(api.Routes) {
		t.Errorf("%d operations are documented, %d are served", documented, len(api.Routes))
	}
	for _, r := range api.Routes {
		op, ok := doc.Paths[r.Path][strings.ToLower(r.Method)]
		if !ok || op.OperationID != r.ID || op.Role != r.Role.String() || op.Responses["default"] == nil {
			t.Errorf("%s is documented as %+v", r.ID, op)
		}
		if a := f.served(r); a == http.StatusMethodNotAllowed {
			t.Errorf("%s is documented and not served", r.ID)
		}
	}
	golden(t, filepath.Join("..", "docs", "reference", "openapi.json"), raw)
}

// served asks for a route and returns the status; what it names does not exist.
func (f *fixture) served(r api.Route) int {
	f.Helper()
	return (&secured{fixture: f}).ask(r, concrete(r), "")
}

// golden compares with a file that is kept.
func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		enginetest.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		enginetest.NoError(t, os.WriteFile(path, got, 0o644))
	}
	want, err := os.ReadFile(path)
	enginetest.NoError(t, err)
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not what the server says: run go test ./server -update", path)
	}
}
