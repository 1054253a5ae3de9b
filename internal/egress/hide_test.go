package egress

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"regexp"
	"testing"
)

// address is an address of IPv4, or one of IPv6 with a port.
var address = regexp.MustCompile(`\d+\.\d+\.\d+\.\d+|\[[0-9a-f:]+\]|::1`)

// cut is a handler that ends its connection: before the answer, or within it.
func cut(begin bool) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if begin {
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte("x"))
			w.(http.Flusher).Flush()
		}
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		_ = conn.(*net.TCPConn).SetLinger(0) // reset it
		_ = conn.Close()
	}
}

// Whoever may choose an address learns from no error what it resolves to.
func TestErrorsDoNotNameAddresses(t *testing.T) {
	t.Parallel()
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	before, within := httptest.NewServer(cut(false)), httptest.NewServer(cut(true))
	t.Cleanup(before.Close)
	t.Cleanup(within.Close)
	tls := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(tls.Close)
	for what, c := range map[string]struct {
		scheme, port string
		options      Options
	}{
		"refused":                {"http", portIn(t, closed.URL), Options{}},
		"not listening":          {"http", portIn(t, closed.URL), Options{Allow: []string{"hooks.example"}}},
		"reset before an answer": {"http", portIn(t, before.URL), Options{Allow: []string{"hooks.example"}}},
		"reset within an answer": {"http", portIn(t, within.URL), Options{Allow: []string{"hooks.example"}}},
		"an unknown authority":   {"https", portIn(t, tls.URL), Options{Allow: []string{"hooks.example"}}},
		"no TLS":                 {"https", portIn(t, before.URL), Options{Allow: []string{"hooks.example"}}},
	} {
		c.options.Resolver = resolver(t, toLoopback)
		_, _, err := get(t, client(t, &c.options), c.scheme+"://hooks.example:"+c.port+"/")
		if err == nil || address.MatchString(err.Error()) {
			t.Errorf("%s: %v", what, err)
		}
		refused := (*RefusedError)(nil)
		if is := errors.As(err, &refused); is != (what == "refused") || is && !refused.Resolved {
			t.Errorf("%s: refused: %v", what, is)
		}
	}
}

func portIn(t *testing.T, raw string) string {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return u.Port()
}

func TestHiddenErrorsCanBeTold(t *testing.T) {
	t.Parallel()
	dial := &net.OpError{Op: "dial", Net: "tcp", Addr: net.TCPAddrFromAddrPort(netip.MustParseAddrPort("10.1.2.3:443")), Err: errors.New("connection refused")}
	lookup := &net.DNSError{Err: "server misbehaving", Name: "hooks.example", Server: "10.0.0.2:53"}
	for want, err := range map[string]error{
		"dial: connection refused":                              &url.Error{Op: "Post", URL: "http://x/secret", Err: dial},
		"look up hooks.example: server misbehaving":             lookup,
		"dial: look up hooks.example: server misbehaving":       &url.Error{Op: "Post", URL: "http://x/secret", Err: &net.OpError{Op: "dial", Net: "tcp", Err: lookup}},
		"transport connection broken: dial: connection refused": &url.Error{Err: &wrapped{"transport connection broken: ", dial}},
		`address of host "a" is private and is not in the list of allowed addresses (--egress-allow, or Allow in Go)`: &url.Error{Err: &net.OpError{Op: "dial", Addr: dial.Addr, Err: &RefusedError{Host: "a", Reason: "is private"}}},
		"nothing to hide": errors.New("nothing to hide"),
	} {
		hidden := hide(err)
		if hidden.Error() != want {
			t.Errorf("%v became %v", err, hidden)
		}
		var op *net.OpError
		var of *net.DNSError
		var refused *RefusedError
		if want != "nothing to hide" && !errors.As(hidden, &op) && !errors.As(hidden, &of) && !errors.As(hidden, &refused) {
			t.Errorf("%v lost what it was", hidden)
		}
	}
}

type wrapped struct {
	text string
	err  error
}

func (w *wrapped) Error() string { return w.text + w.err.Error() }
func (w *wrapped) Unwrap() error { return w.err }
