package egress

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/perdure/perdure/internal/test/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// canary is a server that must not be reached. It listens on all addresses of
// the machine.
type canary struct {
	port    string
	reached atomic.Int64
}

func newCanary(t *testing.T) *canary {
	t.Helper()
	c := &canary{}
	listener, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	_ = server.Listener.Close() // of its own, in favour of ours
	server.Listener = &counting{listener, &c.reached}
	server.Start()
	t.Cleanup(server.Close)
	_, c.port, _ = net.SplitHostPort(listener.Addr().String())
	return c
}

// counting counts connections: a request need not get as far as the handler.
type counting struct {
	net.Listener
	n *atomic.Int64
}

func (c *counting) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err == nil {
		c.n.Add(1)
	}
	return conn, err
}

// resolver returns a resolver that asks a DNS server of the test's own. It gives
// every name the addresses that answer returns for it; n counts the questions
// for that name and kind from 1.
func resolver(t *testing.T, answer func(name string, n int) []string) *net.Resolver {
	t.Helper()
	var (
		mu    sync.Mutex
		asked = map[string]int{}
	)
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go func() {
			defer server.Close()
			serveDNS(server, func(name, kind string) []string {
				mu.Lock()
				defer mu.Unlock()
				asked[name+kind]++
				return answer(name, asked[name+kind])
			})
		}()
		return client, nil
	}}
}

// serveDNS answers questions on a stream: two bytes of length, then a message.
func serveDNS(conn net.Conn, answer func(name, kind string) []string) {
	for {
		var head [2]byte
		if _, err := io.ReadFull(conn, head[:]); err != nil {
			return
		}
		query := make([]byte, int(head[0])<<8|int(head[1]))
		if _, err := io.ReadFull(conn, query); err != nil {
			return
		}
		reply, err := dnsReply(query, answer)
		if err != nil {
			return
		}
		_, _ = conn.Write(append([]byte{byte(len(reply) >> 8), byte(len(reply))}, reply...))
	}
}

func dnsReply(query []byte, answer func(name, kind string) []string) ([]byte, error) {
	var m dnsmessage.Message
	if err := m.Unpack(query); err != nil {
		return nil, err
	}
	q := m.Questions[0]
	m.Response, m.Additionals = true, nil
	header := dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: 0}
	for _, text := range answer(strings.TrimSuffix(q.Name.String(), "."), q.Type.String()) {
		ip := netip.MustParseAddr(text)
		switch {
		case q.Type == dnsmessage.TypeA && ip.Is4():
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.AResource{A: ip.As4()}})
		case q.Type == dnsmessage.TypeAAAA && ip.Is6():
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.AAAAResource{AAAA: ip.As16()}})
		}
	}
	return m.Pack()
}

// toLoopback answers every name with this machine.
func toLoopback(string, int) []string { return []string{"127.0.0.1", "::1"} }

func client(t *testing.T, o *Options) *Client {
	t.Helper()
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	c.fence = fence(t)
	t.Cleanup(c.Close)
	return c
}

// fence keeps the tests on this machine, also when what they test is broken.
func fence(t *testing.T) func(netip.Addr) error {
	return func(ip netip.Addr) error {
		if ip.Unmap().IsLoopback() {
			return nil
		}
		t.Errorf("%v would have been dialled", ip)
		return errors.New("outside of the machine")
	}
}

// get requests a URL and returns the answer's status and body.
func get(t *testing.T, c *Client, url string) (int, string, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		return 0, "", err
	}
	response, err := c.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return response.StatusCode, string(body), err
}
