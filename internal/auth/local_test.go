package auth_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/fault"
	"github.com/perdure/perdure/internal/auth"
	"github.com/perdure/perdure/internal/test/enginetest"
)

func local(t *testing.T, remote, host string, header ...string) *http.Request {
	t.Helper()
	r := with(t, header...)
	r.RemoteAddr, r.Host = remote, host
	return r
}

func (Conformance) MachineItselfIsAdministratorUntilThereIsAToken(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, &auth.Options{Open: true, Failures: 100})
	for _, r := range []*http.Request{
		local(t, "127.0.0.1:5", "127.0.0.1:7070"), local(t, "[::1]:5", "[::1]:7070"), local(t, "127.0.0.1:5", "localhost:7070"),
		local(t, "127.0.0.1:5", "LOCALHOST"), local(t, "[::ffff:127.0.0.1]:5", "localhost"),
	} {
		if who, err := f.Authenticate(r); err != nil || who.Role != auth.Admin {
			t.Errorf("from %s to %s: %+v, %v", r.RemoteAddr, r.Host, who, err)
		}
	}
	for what, r := range map[string]*http.Request{
		"another machine":      local(t, "198.51.100.7:5", "localhost:7070"),
		"rebound name":         local(t, "127.0.0.1:5", "evil.example:7070"),
		"name below localhost": local(t, "127.0.0.1:5", "localhost.evil.example"),
		"no host":              local(t, "127.0.0.1:5", ""),
		"behind a proxy":       local(t, "127.0.0.1:5", "localhost:7070", "X-Forwarded-For", "198.51.100.7"),
		"behind another":       local(t, "127.0.0.1:5", "localhost:7070", "Forwarded", "for=198.51.100.7"),
		"with a bad token":     local(t, "127.0.0.1:5", "localhost:7070", "Authorization", "Bearer x"),
		"unix socket":          local(t, "@", "localhost"),
	} {
		f.refuses(t, what, r)
	}
	for _, header := range []string{"Via", "X-Real-Ip", "X-Forwarded-Proto", "x-forwarded-server", "Cf-Connecting-Ip", "True-Client-Ip", "X-Amzn-Trace-Id", "X-Envoy-External-Address",
		"Client-Ip", "WL-Proxy-Client-IP", "X-Remote-Addr", "Remote-User", "X-Auth-Request-User", "X-Scheme", "X-Request-Start", "Front-End-Https", "Max-Forwards"} {
		f.refuses(t, header, local(t, "127.0.0.1:5", "localhost:7070", header, "x"))
	}
	f.create(t, auth.Viewer, 0)
	f.refuses(t, "there is a token", local(t, "127.0.0.1:5", "localhost:7070"))
}

// Once there was a token, the machine itself needs one for good: a token that ends does
// not open the server again.
func (Conformance) EndOfTheLastTokenOpensNothing(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, &auth.Options{Open: true, Failures: 100})
	here := func() *http.Request { return local(t, "127.0.0.1:5", "localhost:7070") }
	_, err := f.Authenticate(here())
	enginetest.NoError(t, err)
	issued, _ := f.create(t, auth.Admin, 0), f.create(t, auth.Admin, time.Hour)
	enginetest.NoError(t, f.Revoke(t.Context(), issued.ID))
	f.clock.Advance(2 * time.Hour)
	f.refuses(t, "all tokens have ended", here())
	f.clock.Advance(365 * 24 * time.Hour)
	for range 3 { // what has ended is removed when a token is created
		_, err := f.CreateActor(t.Context(), auth.ActorScope{Type: "door", ID: "front", CallerKind: "client", CallerID: "ada"}, time.Hour)
		enginetest.NoError(t, err)
	}
	f.refuses(t, "all tokens have ended long ago", here())
}

func TestServerThatOthersReachIsNeverOpen(t *testing.T) {
	t.Parallel()
	f := onSQLite(t, nil)
	f.refuses(t, "no token", local(t, "127.0.0.1:5", "localhost:7070"))
}

func (Conformance) AddressThatOthersReachNeedsAToken(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, nil)
	public := []string{"0.0.0.0:7070", ":7070", "[::]:7070", "192.168.1.2:7070", "perdure.example:7070", "localhost.example:7070", "x", ""}
	for _, address := range public {
		err := f.CheckListen(t.Context(), address)
		if invalid := enginetest.As[*fault.Invalid](t, err); !strings.Contains(invalid.Reason, "perdure token create") {
			t.Errorf("%s: %v", address, err)
		}
	}
	for _, address := range []string{"127.0.0.1:7070", "localhost:0", "[::1]:7070", "127.0.0.2:1"} {
		enginetest.NoError(t, f.CheckListen(t.Context(), address))
	}
	f.create(t, auth.Viewer, 0)
	for _, address := range public {
		enginetest.NoError(t, f.CheckListen(t.Context(), address))
	}
}

func TestAnswersCarryTheHeadersOfSafety(t *testing.T) {
	t.Parallel()
	handler := auth.Protect(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }), nil)
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, with(t))
	csp := w.Header().Get("Content-Security-Policy")
	if !strings.HasPrefix(csp, "default-src 'self';") || !strings.Contains(csp, "frame-ancestors 'none'") || strings.Contains(csp, "unsafe") || strings.Contains(csp, "*") {
		t.Errorf("policy %q", csp)
	}
	for name, want := range map[string]string{
		"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store",
		"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin", "Strict-Transport-Security": "max-age=31536000",
	} {
		if got := w.Header().Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

func TestOtherSitesCannotChangeAnything(t *testing.T) {
	t.Parallel()
	handler := auth.Protect(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }),
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	for _, c := range []struct {
		method string
		header []string
		want   int
	}{
		{"POST", nil, 204}, // a program
		{"POST", []string{"Sec-Fetch-Site", "same-origin"}, 204},
		{"POST", []string{"Origin", "https://perdure.example"}, 204},
		{"GET", []string{"Sec-Fetch-Site", "cross-site"}, 204},
		{"POST", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"POST", []string{"Sec-Fetch-Site", "same-site"}, 403},
		{"POST", []string{"Origin", "https://evil.example"}, 403},
		{"POST", []string{"Origin", "null"}, 403},
		{"PUT", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"PATCH", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"DELETE", []string{"Origin", "http://perdure.example.evil.example"}, 403},
	} {
		r := with(t, c.header...)
		r.Method = c.method
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code != c.want {
			t.Errorf("%s with %v: %d, want %d", c.method, c.header, w.Code, c.want)
		}
	}
}

// The shared check of open streams without credentials counts for this machine only, and
// a fresh one sees the first token.
func (Conformance) RecheckOfThisMachineIsNotThatOfOthers(t *testing.T, db enginetest.Database) {
	f := newFixture(t, db, &auth.Options{Open: true, Failures: 100})
	for range 3 {
		if who, err := f.Recheck(t.Context(), local(t, "127.0.0.1:5", "localhost:7070"), false); err != nil || who.Role != auth.Admin {
			t.Errorf("from this machine: %+v, %v", who, err)
		}
		for _, r := range []*http.Request{
			local(t, "198.51.100.7:5", "localhost:7070"), local(t, "127.0.0.1:5", "evil.example:7070"), local(t, "127.0.0.1:5", "localhost:7070", "Via", "x"),
		} {
			_, err := f.Recheck(t.Context(), r, false)
			enginetest.Is(t, err, auth.ErrUnauthenticated)
		}
	}
	f.create(t, auth.Viewer, 0)
	for _, fresh := range []bool{true, false} { // the second one has the result of the first, or its own
		_, err := f.Recheck(t.Context(), local(t, "127.0.0.1:5", "localhost:7070"), fresh)
		enginetest.Is(t, err, auth.ErrUnauthenticated)
	}
}
