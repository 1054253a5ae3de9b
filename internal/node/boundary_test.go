package node_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/clock"
	"github.com/perdure/perdure/internal/node"
	"github.com/perdure/perdure/internal/sample"
	"github.com/perdure/perdure/internal/test/enginetest"
)

// call is a request to a node.
type call struct {
	token, host, origin, forwarded string
}

// ask sends a request and returns the status.
func (c call) ask(t *testing.T, method, url string) int {
	t.Helper()
	body := ""
	if method == http.MethodPost {
		body = `{"action":"pause"}`
	}
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	enginetest.NoError(t, err)
	for name, value := range map[string]string{"Origin": c.origin, "X-Forwarded-For": c.forwarded} {
		if value != "" {
			r.Header.Set(name, value)
		}
	}
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	r.Host = c.host
	answer, err := http.DefaultClient.Do(r)
	enginetest.NoError(t, err)
	enginetest.NoError(t, answer.Body.Close())
	return answer.StatusCode
}

// boundary is a node with the routes of perdure dev.
func boundary(t *testing.T) (*perdure.Engine, *node.Node) {
	t.Helper()
	warp := clock.NewWarp(0)
	eng := enginetest.New(t, enginetest.SQLite).Open(t, &perdure.Options{Clock: warp})
	routes := sample.Routes(sample.NewControl(eng, warp), nil)
	routes["GET /v1/dev/messages"] = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	n, err := node.New(t.Context(), eng, node.Options{Listen: "127.0.0.1:0", MetricsListen: "127.0.0.1:0", Routes: routes, Version: "v1"})
	enginetest.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- n.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("run: %v", err)
		}
	})
	return eng, n
}

// The routes outside the API, each with the method and the least role that it needs.
var outside = []struct {
	method, path string
	role         auth.Role
}{
	{http.MethodGet, "/livez", auth.Anyone}, {http.MethodGet, "/readyz", auth.Anyone}, {http.MethodGet, "/healthz", auth.Anyone},
	{http.MethodGet, "/metrics", auth.Viewer}, {http.MethodGet, "/version", auth.Viewer}, {http.MethodGet, "/openapi.json", auth.Viewer},
	{http.MethodGet, "/v1/dev/messages?kind=email", auth.Viewer}, {http.MethodGet, "/v1/dev/clock", auth.Viewer}, {http.MethodPost, "/v1/dev/clock", auth.Operator},
	{http.MethodGet, "/v1/me", auth.Viewer}, // of the API, to compare with
}

// While there is no token, programs on this machine may use all routes, and pages of
// other sites and clients behind a proxy none.
func TestRoutesOutsideTheAPITrustThisMachineOnly(t *testing.T) {
	t.Parallel()
	_, n := boundary(t)
	for _, r := range outside {
		refused := http.StatusUnauthorized
		if r.role == auth.Anyone {
			refused = http.StatusOK
		}
		for name, c := range map[string]struct {
			call
			want int
		}{
			"this machine":    {call{}, http.StatusOK},
			"another host":    {call{host: "evil.test"}, refused},
			"a rebound name":  {call{host: "evil.test:7070", origin: "http://evil.test:7070"}, refused},
			"a proxy":         {call{forwarded: "192.0.2.1"}, refused},
			"a token unknown": {call{token: "perdure_sk_x"}, refused},
		} {
			if status := c.ask(t, r.method, n.URL()+r.path); status != c.want {
				t.Errorf("%s %s from %s: %d, want %d", r.method, r.path, name, status, c.want)
			}
		}
		if r.method != http.MethodPost {
			continue
		}
		if status := (call{origin: "http://evil.test"}).ask(t, r.method, n.URL()+r.path); status != http.StatusForbidden {
			t.Errorf("%s from a page of another site: %d", r.path, status)
		}
	}
}

// With tokens, the routes outside the API need the role that the security page says.
func TestRoutesOutsideTheAPINeedARole(t *testing.T) {
	t.Parallel()
	eng, n := boundary(t)
	access, err := auth.New(eng, nil)
	enginetest.NoError(t, err)
	issue := func(i auth.Issued, err error) auth.Issued {
		t.Helper()
		enginetest.NoError(t, err)
		return i
	}
	callers := map[string]struct {
		token string
		role  auth.Role
	}{"anonymous": {}}
	for _, role := range []auth.Role{auth.Viewer, auth.Operator, auth.Admin} {
		c := callers[role.String()]
		c.token, c.role = issue(access.Create(t.Context(), role.String(), role, 0)).Secret, role
		callers[role.String()] = c
	}
	revoked := issue(access.Create(t.Context(), "revoked", auth.Admin, 0))
	enginetest.NoError(t, access.Revoke(t.Context(), revoked.ID))
	c := callers["revoked"]
	c.token = revoked.Secret
	callers["revoked"] = c
	c.token = issue(access.CreateActor(t.Context(), auth.ActorScope{Type: "door", ID: "front", CallerKind: "client", CallerID: "ada"}, time.Hour)).Secret
	callers["actor"] = c
	for _, r := range outside {
		for name, c := range callers {
			want := http.StatusOK
			switch {
			case r.role == auth.Anyone:
			case name == "anonymous" || name == "revoked":
				want = http.StatusUnauthorized
			case c.role < r.role:
				want = http.StatusForbidden
			}
			if status := (call{token: c.token}).ask(t, r.method, n.URL()+r.path); status != want {
				t.Errorf("%s %s as %s: %d, want %d", r.method, r.path, name, status, want)
			}
		}
		if r.method == http.MethodPost {
			if status := (call{token: callers["admin"].token, origin: "http://evil.test"}).ask(t, r.method, n.URL()+r.path); status != http.StatusForbidden {
				t.Errorf("%s from a page of another site: %d", r.path, status)
			}
		}
	}
}

// The address for metrics has nothing else, and needs no token.
func TestMetricsHaveTheirOwnAddress(t *testing.T) {
	t.Parallel()
	eng, n := boundary(t)
	access, err := auth.New(eng, nil)
	enginetest.NoError(t, err)
	_, err = access.Create(t.Context(), "first", auth.Admin, 0)
	enginetest.NoError(t, err)
	if status, body := get(t, n.MetricsURL()); status != http.StatusOK || !strings.Contains(body, "perdure_build_info") {
		t.Errorf("%d %s", status, body)
	}
	if status := (call{host: "evil.test"}).ask(t, http.MethodGet, n.MetricsURL()); status != http.StatusForbidden {
		t.Errorf("for another host: %d", status)
	}
	if status := (call{forwarded: "192.0.2.1"}).ask(t, http.MethodGet, n.MetricsURL()); status != http.StatusForbidden {
		t.Errorf("through a proxy: %d", status)
	}
	for _, path := range []string{"/", "/livez", "/version", "/openapi.json", "/v1/me"} {
		if status := (call{}).ask(t, http.MethodGet, strings.TrimSuffix(n.MetricsURL(), "/metrics")+path); status != http.StatusNotFound {
			t.Errorf("%s: %d", path, status)
		}
	}
}
