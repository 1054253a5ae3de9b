// Package egress makes the requests that go to addresses which users may choose:
// webhooks, steps in other languages, providers with an address of their own.
//
// Whoever can choose an address can try to make this process talk to what only
// it can reach: itself, its network, the metadata service of its cloud. A Client
// therefore decides on the address that is dialled, after the name was resolved,
// each time it dials; so neither a strange notation nor a name that resolves
// differently the second time gets past it. It follows no redirects, ignores
// the proxies of the environment, and bounds time and size of an answer.
package egress

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/perdure/perdure/fault"
)

// Defaults of Options.
const (
	DefaultTimeout   = 15 * time.Second
	DefaultMaxAnswer = 1 << 20
)

// maxHeader is how many bytes of header an answer may have.
const maxHeader = 64 << 10

// Options configure a Client. The zero value of every field is its default.
type Options struct {
	// Allow lists what may be reached although it is not public: prefixes
	// (10.1.0.0/16), addresses (127.0.0.1), hosts (billing.internal) and all
	// hosts below a domain (*.internal). Whatever a listed host resolves to is
	// allowed, except link-local addresses, among them the metadata services
	// of clouds; only a prefix or an address can allow those. Default: nothing.
	Allow []string
	// Ports are the only ports that may be reached. Default: all.
	Ports []int
	// Timeout bounds a request from the dial to the end of the answer.
	// Default: DefaultTimeout.
	Timeout time.Duration
	// MaxAnswer is the largest body of an answer in bytes, after it was
	// decompressed. Default: DefaultMaxAnswer.
	MaxAnswer int64
	// Resolver looks names up. Default: that of the system.
	Resolver *net.Resolver
}

// Client makes requests to public addresses. It is safe for concurrent use.
type Client struct {
	http      *http.Client
	transport *http.Transport
	allow     allowList
	ports     []int
	maxAnswer int64
	fence     func(netip.Addr) error // of tests: the last word before a dial
}

// New returns a client.
func New(options *Options) (*Client, error) {
	o := options.withDefaults()
	if o.Timeout < 0 || o.MaxAnswer < 0 {
		return nil, fault.Invalidf("egress", "has a negative timeout or size")
	}
	allow, err := parseAllow(o.Allow)
	if err != nil {
		return nil, err
	}
	for _, p := range o.Ports {
		if p < 1 || p > 65535 {
			return nil, fault.Invalidf("egress port", "is %d; 1 to 65535 are possible", p)
		}
	}
	c := &Client{allow: allow, ports: slices.Clone(o.Ports), maxAnswer: o.MaxAnswer}
	dialer := &net.Dialer{Timeout: 10 * time.Second, Resolver: o.Resolver, ControlContext: c.control}
	c.transport = &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return dialer.DialContext(withHost(ctx, address), network, address)
		},
		Proxy: nil, ForceAttemptHTTP2: true, TLSHandshakeTimeout: 10 * time.Second, MaxResponseHeaderBytes: maxHeader,
		MaxIdleConnsPerHost: 8, MaxIdleConns: 64, IdleConnTimeout: 30 * time.Second,
	}
	c.http = &http.Client{
		Transport: c.transport, Timeout: o.Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c, nil
}

func (o *Options) withDefaults() Options {
	var options Options
	if o != nil {
		options = *o
	}
	if options.Timeout == 0 {
		options.Timeout = DefaultTimeout
	}
	if options.MaxAnswer == 0 {
		options.MaxAnswer = DefaultMaxAnswer
	}
	return options
}

// Close closes the connections that are idle. The client stays usable.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// Do sends a request and returns the answer, redirects included as they are. The
// caller closes its body. Errors quote neither the URL, which may hold a secret, nor
// the address that its host resolves to, which may be internal. A *RefusedError says that nothing was sent.
func (c *Client) Do(r *http.Request) (*http.Response, error) {
	if err := c.check(r.URL); err != nil {
		return nil, err
	}
	response, err := c.http.Do(r)
	if err != nil {
		return nil, hide(err)
	}
	if response.ContentLength > c.maxAnswer {
		_ = response.Body.Close() // nothing of it is wanted
		return nil, &TooLargeError{Max: c.maxAnswer}
	}
	response.Body = &capped{body: response.Body, left: c.maxAnswer, max: c.maxAnswer}
	return response, nil
}

// RefusedError says that an address may not be reached. Nothing was sent to it.
type RefusedError struct {
	// Host is the host as the URL has it.
	Host string
	// Reason says what is wrong with the address: "is private".
	Reason string
	// Resolved is true if the host is a name, and the address was found when it was
	// dialled. It may resolve to another one later.
	Resolved bool
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("address of host %q %s, and is not on the list of allowed ones", e.Host, e.Reason)
}

type hostKey struct{}

// withHost tells control which host is being dialled.
func withHost(ctx context.Context, address string) context.Context {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = address
	}
	return context.WithValue(ctx, hostKey{}, host)
}

// control is called with each address that is about to be connected to, after
// the name was resolved and the socket was made.
func (c *Client) control(ctx context.Context, network, address string, _ syscall.RawConn) error {
	host, _ := ctx.Value(hostKey{}).(string)
	if network != "tcp4" && network != "tcp6" {
		return &RefusedError{Host: host, Reason: "is not on a TCP network"}
	}
	text, port, err := net.SplitHostPort(address)
	if err != nil {
		return &RefusedError{Host: host, Reason: "cannot be read"}
	}
	if err := c.checkPort(host, port); err != nil {
		return err
	}
	ip, err := netip.ParseAddr(text)
	if err != nil {
		return &RefusedError{Host: host, Reason: "cannot be read"}
	}
	if reason := class(ip); reason != "" && !c.allow.permits(host, ip) {
		return &RefusedError{Host: host, Reason: reason, Resolved: true}
	}
	if c.fence != nil {
		return c.fence(ip)
	}
	return nil
}

func (c *Client) checkPort(host, port string) error {
	n, err := strconv.Atoi(port)
	if err != nil || n < 1 || n > 65535 {
		return &RefusedError{Host: host, Reason: "has no valid port"}
	}
	if len(c.ports) > 0 && !slices.Contains(c.ports, n) {
		return &RefusedError{Host: host, Reason: "has port " + port}
	}
	return nil
}
