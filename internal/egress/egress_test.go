package egress

import (
	"bytes"
	"compress/gzip"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/fault"
)

var loopback = []string{"127.0.0.1", "::1"}

func TestPublicAddressesAreNotRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"1.1.1.1", "8.8.8.8", "93.184.216.34", "100.63.255.255", "100.128.0.1", "172.15.255.255", "172.32.0.1", "192.0.1.1", "198.17.255.255",
		"223.255.255.255", "2606:4700:4700::1111", "2a00:1450:4001:81b::200e", "64:ff9b::101:101", "::ffff:1.1.1.1", "2001:4860:4860::8888",
	} {
		if is := class(netip.MustParseAddr(text)); is != "" {
			t.Errorf("%s %s", text, is)
		}
	}
}

func TestAnswerThatIsTooLargeIsAnError(t *testing.T) {
	t.Parallel()
	for name, handler := range map[string]http.HandlerFunc{
		"with its length": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1001")
			_, _ = w.Write(make([]byte, 1001))
		},
		"in chunks": func(w http.ResponseWriter, _ *http.Request) {
			for range 1001 {
				_, _ = w.Write([]byte("x"))
				w.(http.Flusher).Flush()
			}
		},
		"compressed": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			_, _ = z.Write(make([]byte, 1<<20))
			_ = z.Close()
		},
	} {
		server := httptest.NewServer(handler)
		_, body, err := get(t, client(t, &Options{Allow: loopback, MaxAnswer: 1000}), server.URL)
		if large := (*TooLargeError)(nil); !errors.As(err, &large) || len(body) > 1000 {
			t.Errorf("%s: %d bytes, %v", name, len(body), err)
		}
		server.Close()
	}
}

func TestAnswerOfExactlyTheLimitIsRead(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(bytes.Repeat([]byte("x"), 1000)) }))
	defer server.Close()
	_, body, err := get(t, client(t, &Options{Allow: loopback, MaxAnswer: 1000}), server.URL)
	if err != nil || len(body) != 1000 {
		t.Errorf("%d bytes, %v", len(body), err)
	}
}

func TestAnswerWithHugeHeadersIsAnError(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Big", strings.Repeat("x", 2*maxHeader))
	}))
	defer server.Close()
	if _, _, err := get(t, client(t, &Options{Allow: loopback}), server.URL); err == nil {
		t.Error("it was accepted")
	}
}

func TestServerThatNeverAnswersIsGivenUp(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		<-release // the body never ends
	}))
	defer server.Close()
	defer close(release)
	if _, _, err := get(t, client(t, &Options{Allow: loopback, Timeout: 50 * time.Millisecond}), server.URL); err == nil {
		t.Error("no error")
	}
}

func TestOnlyConfiguredPortsAreReached(t *testing.T) {
	t.Parallel()
	canary := newCanary(t)
	c := client(t, &Options{Allow: loopback, Ports: []int{443}})
	for _, url := range []string{"http://127.0.0.1:" + canary.port, "http://127.0.0.1", "https://127.0.0.1:" + canary.port} {
		_, _, err := get(t, c, url)
		if refused := (*RefusedError)(nil); !errors.As(err, &refused) || !strings.HasPrefix(refused.Reason, "has port") {
			t.Errorf("%s: %v", url, err)
		}
	}
	if n := canary.reached.Load(); n != 0 {
		t.Errorf("canary was reached %d times", n)
	}
}

func TestErrorsDoNotQuoteTheURL(t *testing.T) {
	t.Parallel()
	c := client(t, &Options{Resolver: resolver(t, toLoopback)})
	for _, url := range []string{"http://hooks.example/secret-path?token=secret-query", "http://user:secret-password@hooks.example/"} {
		if _, _, err := get(t, c, url); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", url, err)
		}
		if _, err := c.CheckURL("url", url); err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", url, err)
		}
	}
}

func TestCheckURLRefusesWhatCanNeverBeReached(t *testing.T) {
	t.Parallel()
	c := client(t, nil)
	for _, url := range []string{"https://hooks.example/x?y", "http://93.184.216.34:8080", "https://[2606:4700::1]/", "https://hooks.example.:443"} {
		if u, err := c.CheckURL("url", url); err != nil || u.String() != url {
			t.Errorf("%s: %v, %v", url, u, err)
		}
	}
	for _, url := range []string{
		"http://127.0.0.1", "http://0x7f.1", "ftp://a.example", "https://u@a.example", "https://a.example#x", "https://a..example", "https://[::1%25lo]",
		"https://a.example/" + strings.Repeat("x", maxURL), "https://", "https://a.example:0",
	} {
		_, err := c.CheckURL("url", url)
		if invalid := (*fault.Invalid)(nil); !errors.As(err, &invalid) || invalid.Field != "url" {
			t.Errorf("%s: %v", url, err)
		}
	}
}

func TestBadOptionsAreRefused(t *testing.T) {
	t.Parallel()
	for _, o := range []*Options{
		{Timeout: -1},
		{MaxAnswer: -1},
		{Ports: []int{0}},
		{Ports: []int{70000}},
		{Allow: []string{""}},
		{Allow: []string{"10.0.0.0/33"}},
		{Allow: []string{"*."}},
		{Allow: []string{"*"}},
		{Allow: []string{"a b"}},
		{Allow: []string{"127.1"}},
		{Allow: []string{"fe80::1%eth0"}},
		{Allow: []string{"http://a.example"}},
	} {
		if _, err := New(o); err == nil {
			t.Errorf("%+v was accepted", *o)
		}
	}
}

func FuzzCheckURL(f *testing.F) {
	for _, form := range forms("80") {
		f.Add(form)
	}
	f.Add("https://hooks.example/")
	c, err := New(nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		u, err := c.CheckURL("url", raw)
		if err != nil {
			return
		}
		if u.User != nil || u.Scheme != "http" && u.Scheme != "https" {
			t.Errorf("%q was accepted", raw)
		}
		if ip, err := netip.ParseAddr(u.Hostname()); err == nil && class(ip) != "" {
			t.Errorf("%q was accepted", raw)
		}
	})
}
