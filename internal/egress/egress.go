// Package egress sends requests to addresses that users may choose: webhooks, remote
// steps, and providers with a configurable address.
//
// A user who chooses an address could make this process send requests to destinations
// that only this process can reach: itself, its network, the metadata service of its
// cloud (SSRF). Therefore a Client checks the resolved address each time it dials. So
// neither an unusual notation nor a name that resolves differently the second time
// bypasses the check. A Client follows no redirects, ignores proxies in the environment,
// and bounds the time and size of a response.
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

// maxHeader is the maximum size of the header of a response in bytes.
const maxHeader = 64 << 10

// Options configure a Client. The zero value of every field is its default.
type Options struct {
	// Allow lists destinations that may be reached although they are not public: prefixes
	// (10.1.0.0/16), addresses (127.0.0.1), hosts (billing.internal) and all hosts below
	// a domain (*.internal). All addresses of a listed host are allowed, except
	// link-local addresses, which include the metadata services of clouds. Only a prefix
	// or an address can allow those. Default: none.
	Allow []string
	// Ports are the only ports that may be reached. Default: all.
	Ports []int
	// Timeout bounds a request from the dial to the end of the response. Default:
	// DefaultTimeout.
	Timeout time.Duration
	// MaxAnswer is the maximum size of the body of a response in bytes, after
	// decompression. Default: DefaultMaxAnswer.
	MaxAnswer int64
	// Resolver resolves host names. Default: the system's resolver.
	Resolver *net.Resolver
}

// Client makes requests to public addresses. It is safe for concurrent use.
type Client struct {
	http      *http.Client
	transport *http.Transport
	allow     allowList
	ports     []int
	maxAnswer int64
	fence     func(netip.Addr) error // set by tests: the final check before a dial
}

// New returns a client.
func New(options *Options) (*Client, error) {
	o := options.withDefaults()
	if o.Timeout < 0 || o.MaxAnswer < 0 {
		return nil, fault.Invalidf("egress", "must not have a negative timeout or size")
	}
	allow, err := parseAllow(o.Allow)
	if err != nil {
		return nil, err
	}
	for _, p := range o.Ports {
		if p < 1 || p > 65535 {
			return nil, fault.Invalidf("egress port", "must be between 1 and 65535, got %d", p)
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

// Close closes idle connections. The client remains usable.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// Do sends a request and returns the response. It returns redirects without following
// them. The caller must close the body. Errors quote neither the URL, which may contain a
// secret, nor the resolved address, which may be internal. A *RefusedError means that
// nothing was sent.
func (c *Client) Do(r *http.Request) (*http.Response, error) {
	if err := c.check(r.URL); err != nil {
		return nil, err
	}
	response, err := c.http.Do(r)
	if err != nil {
		return nil, hide(err)
	}
	if response.ContentLength > c.maxAnswer {
		_ = response.Body.Close() // the response is not used
		return nil, &TooLargeError{Max: c.maxAnswer}
	}
	response.Body = &capped{body: response.Body, left: c.maxAnswer, max: c.maxAnswer}
	return response, nil
}

// RefusedError reports that an address is not allowed. Nothing was sent to it.
type RefusedError struct {
	// Host is the host in the URL.
	Host string
	// Reason is the reason why the address is refused: "is private".
	Reason string
	// Resolved is true if the host is a name whose address was found when it was dialed.
	// The name may resolve to another address later.
	Resolved bool
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("address of host %q %s and is not in the list of allowed addresses (--egress-allow, or Allow in Go)", e.Host, e.Reason)
}

type hostKey struct{}

// withHost returns a context that tells control which host is being dialed.
func withHost(ctx context.Context, address string) context.Context {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = address
	}
	return context.WithValue(ctx, hostKey{}, host)
}

// control is called for each address before the connection, after the name was resolved
// and the socket was created.
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
