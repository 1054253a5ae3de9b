package egress

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// hosts are ways to write, or to have written, an address that only this machine
// or its network can reach. Every name resolves to this machine.
var hosts = []string{
	"127.0.0.1", "127.0.0.2", "127.255.255.254", "localhost", "localhost.", "LOCALHOST", "localhost.localdomain", "foo.localhost",
	"127.1", "127.0.1", "0", "0.0.0.0", "2130706433", "017700000001", "0x7f000001", "0x7F.0.0.1", "0177.0.0.1", "0177.0.0.01", "127.0.0.1.",
	"127.000.000.001", "00000127.0.0.1", "0x7f.1", "4294967296", "127.0.0.0x1",
	"[::1]", "[::]", "[0:0:0:0:0:0:0:1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]", "[::ffff:0:127.0.0.1]",
	"[64:ff9b::127.0.0.1]", "[64:ff9b::7f00:1]", "[64:ff9b:1::7f00:1]", "[2002:7f00:1::]", "[2001:0:7f00:1::]", "[2001::1]",
	"[::1%25lo]", "[fe80::1%25eth0]", "[fe80::1]", "[fec0::1]", "[fd00::1]", "[fd00:ec2::254]", "[ff02::1]", "[100::1]", "[5f00::1]",
	"10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "100.64.0.1", "100.100.100.200", "169.254.169.254", "[::ffff:a9fe:a9fe]",
	"0xA9FEA9FE", "2852039166", "0251.0376.0251.0376", "168.63.129.16", "192.0.0.192", "198.18.0.1", "224.0.0.1", "255.255.255.255", "240.0.0.1",
	"metadata.google.internal", "intranet", "127.0.0.1.nip.example", "rebind.example", "xn--localhost-.example",
	"①②⑦.⓪.⓪.①", "１２７.0.0.1", "127。0。0。1", "localhost%00.example", "localhost%2eexample", "ⓛocalhost",
}

// urls are addresses that are wrong in another part than the host. %s is the
// canary's port.
var urls = []string{
	"ftp://127.0.0.1:%s/", "gopher://127.0.0.1:%s/_x", "file:///etc/passwd", "unix:///run/x.sock", "http+unix://%%2Frun%%2Fx.sock/",
	"dict://127.0.0.1:%s/", "ws://127.0.0.1:%s/", "javascript:alert(1)", "data:text/plain,x", "//127.0.0.1:%s/", "127.0.0.1:%s", "", "/relative",
	"http:///path", "http://:%s/", "http:127.0.0.1:%s", "http://user@127.0.0.1:%s/", "http://user:secret@127.0.0.1:%s/", "http://@127.0.0.1:%s/",
	"http://public.example@127.0.0.1:%s/", "http://127.0.0.1:%s@public.example/", "http://public.example:secret@localhost:%s/",
	"http://127.0.0.1\\@public.example:%s/", "http://public.example#@127.0.0.1:%s/", "http://[::1", "http://127.0.0.1:%s0000/", "http://localhost:0/",
	"http://127.0.0.1:-%s/", "http://127.0.0.1 :%s/", "http://local\thost:%s/", "http://localhost%%0a:%s/",
	"HTTP://127.0.0.1:%s/", "hTTps://127.0.0.1:%s/",
}

// forms returns the URLs of all hosts and urls.
func forms(port string) []string {
	var all []string
	for _, h := range hosts {
		all = append(all, "http://"+net.JoinHostPort(strings.Trim(h, "[]"), port)+"/", "https://"+h+":"+port+"/x?y=z")
	}
	for _, u := range urls {
		all = append(all, strings.ReplaceAll(strings.ReplaceAll(u, "%s", port), "%%", "%"))
	}
	return all
}

func TestNoFormReachesTheMachineOrItsNetwork(t *testing.T) {
	t.Parallel()
	canary := newCanary(t)
	c := client(t, &Options{Resolver: resolver(t, toLoopback)})
	all := forms(canary.port)
	if len(all) < 100 {
		t.Fatalf("%d forms, want more", len(all))
	}
	for _, form := range all {
		if _, _, err := get(t, c, form); err == nil {
			t.Errorf("%s was answered", form)
		}
	}
	if n := canary.reached.Load(); n != 0 {
		t.Errorf("canary was reached %d times", n)
	}
}

// The check of the notation is for early messages; that of the dialled address
// must hold alone.
func TestNoFormGetsPastTheDial(t *testing.T) {
	t.Parallel()
	canary := newCanary(t)
	c := client(t, &Options{Resolver: resolver(t, toLoopback)})
	for _, host := range hosts {
		unescaped, err := url.PathUnescape(strings.Trim(host, "[]"))
		if err != nil {
			t.Fatal(err)
		}
		conn, err := c.transport.DialContext(t.Context(), "tcp", net.JoinHostPort(unescaped, canary.port))
		if err == nil {
			conn.Close()
			t.Errorf("%s was connected to", host)
		}
	}
	if n := canary.reached.Load(); n != 0 {
		t.Errorf("canary was reached %d times", n)
	}
}

func TestCanaryIsReachedWhenAllowed(t *testing.T) {
	t.Parallel()
	canary := newCanary(t)
	for _, c := range []struct {
		allow, host string
		reached     bool
	}{
		{"127.0.0.0/8", "127.0.0.1", true},
		{"127.0.0.1", "[::ffff:127.0.0.1]", true},
		{"127.0.0.1", "localhost.", true},
		{"::1", "[::1]", true},
		{"inner.example", "inner.example", true},
		{"inner.example", "INNER.example.", true},
		{"*.inner.example", "a.b.inner.example", true},
		{"*.inner.example", "inner.example", false},
		{"*.inner.example", "notinner.example", false},
		{"inner.example", "other.example", false},
		{"inner.example", "inner.example.evil.example", false},
		{"127.0.0.2", "127.0.0.1", false},
		{"10.0.0.0/8", "127.0.0.1", false},
	} {
		before := canary.reached.Load()
		_, _, err := get(t, client(t, &Options{Allow: []string{c.allow}, Resolver: resolver(t, toLoopback)}), "http://"+c.host+":"+canary.port)
		if reached := canary.reached.Load() > before; reached != c.reached || reached != (err == nil) {
			t.Errorf("%s with %s allowed: reached %v (%v), want %v", c.host, c.allow, reached, err, c.reached)
		}
	}
}

func TestAllowedNameCannotPointToMetadata(t *testing.T) {
	t.Parallel()
	answers := map[string]string{"a.example": "169.254.169.254", "b.example": "fd00:ec2::254", "c.example": "168.63.129.16", "d.example": "fe80::1"}
	c := client(t, &Options{Allow: []string{"*.example"}, Resolver: resolver(t, func(name string, _ int) []string { return []string{answers[name]} })})
	for name := range answers {
		_, _, err := get(t, c, "http://"+name+"/")
		if refused := (*RefusedError)(nil); !errors.As(err, &refused) {
			t.Errorf("%s: %v, want it refused", name, err)
		}
	}
}

// The first answer is an address that is allowed, every later one the canary's.
func TestNameThatResolvesDifferentlyTheSecondTimeIsRefused(t *testing.T) {
	t.Parallel()
	canary := newCanary(t)
	listener, err := net.Listen("tcp", "127.0.0.2:"+canary.port)
	if err != nil {
		listener, err = net.Listen("tcp", "127.0.0.2:0") // the canary has the port on all addresses
	}
	if err != nil {
		t.Fatalf("no second loopback address: %v", err)
	}
	good := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Connection", "close") }))
	_ = good.Listener.Close() // of its own, in favour of ours
	good.Listener = listener
	good.Start()
	defer good.Close()
	c := client(t, &Options{Allow: []string{"127.0.0.2"}, Resolver: resolver(t, func(_ string, n int) []string {
		if n == 1 {
			return []string{"127.0.0.2"}
		}
		return []string{"127.0.0.1"}
	})})
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	if _, _, err := get(t, c, "http://rebind.example:"+port); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		_, _, err := get(t, c, "http://rebind.example:"+canary.port)
		if refused := (*RefusedError)(nil); !errors.As(err, &refused) || refused.Reason != "is loopback" {
			t.Errorf("%v, want it refused", err)
		}
	}
	if n := canary.reached.Load(); n != 0 {
		t.Errorf("canary was reached %d times", n)
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	canary := newCanary(t)
	for _, status := range []int{301, 302, 303, 307, 308} {
		for _, to := range []string{"http://127.0.0.1:" + canary.port, "//[::1]:" + canary.port, "http://localhost:" + canary.port} {
			server := httptest.NewServer(http.RedirectHandler(to, status))
			// Even where the target is allowed, it is not gone to.
			c := client(t, &Options{Allow: []string{"127.0.0.0/8", "::1"}})
			got, _, err := get(t, c, server.URL)
			if err != nil || got != status {
				t.Errorf("redirect to %s: status %d, %v; want %d", to, got, err, status)
			}
			c.Close()
			server.Close()
		}
	}
	if n := canary.reached.Load(); n != 0 {
		t.Errorf("canary was reached %d times", n)
	}
}

func TestProxiesOfTheEnvironmentAreIgnored(t *testing.T) {
	canary := newCanary(t)
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"} {
		t.Setenv(name, "http://127.0.0.1:"+canary.port)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	defer server.Close()
	// net/http never asks a proxy for localhost, so the server has a name.
	c := client(t, &Options{Allow: []string{"proxied.example"}, Resolver: resolver(t, toLoopback)})
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	status, _, err := get(t, c, "http://proxied.example:"+port)
	if err != nil || status != http.StatusTeapot {
		t.Errorf("status %d, %v", status, err)
	}
	if n := canary.reached.Load(); n != 0 {
		t.Errorf("proxy was asked %d times", n)
	}
}
