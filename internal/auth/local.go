package auth

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/perdure/perdure/fault"
)

// Any reports whether any API token is valid now.
func (a *Access) Any(ctx context.Context) (bool, error) {
	var found bool
	if err := a.lookup(ctx, a.rt.Store.AnyToken(a.rt.Now(), &found)); err != nil {
		return false, fmt.Errorf("read tokens: %w", err)
	}
	return found, nil
}

// local decides on a request without credentials. After the first API token was created,
// such requests are never accepted again, even if all tokens have expired or were revoked.
// An administrator then creates a new token on the command line.
func (a *Access) local(ctx context.Context, r *http.Request) (Principal, error) {
	if !a.options.Open || !fromHere(r) {
		return Principal{}, ErrUnauthenticated
	}
	var ever bool
	if err := a.lookup(ctx, a.rt.Store.EverToken(&ever)); err != nil {
		return Principal{}, fmt.Errorf("read tokens: %w", err)
	}
	if ever {
		return Principal{}, ErrUnauthenticated
	}
	return Principal{Name: "local", Label: "this host", Role: Admin}, nil
}

// forwarded are the headers that proxies and their services add to a request, or the
// prefixes of their names.
var forwarded = []string{
	"Forwarded", "X-Forwarded", "X-Real-Ip", "Via", "X-Client-Ip", "X-Cluster-Client-Ip", "True-Client-Ip", "X-Original-", "X-Proxy",
	"Cf-", "Cdn-Loop", "Fastly-", "Akamai-", "X-Azure-", "X-Appengine-", "X-Cloud-Trace-Context", "X-Amz", "X-Envoy-", "X-Varnish", "X-Arr-", "Proxy-",
	"Ngrok-", "Tailscale-", "X-Vercel-", "Fly-", "X-Railway-", "X-Sendfile-Type", "Surrogate-Capability",
	"Client-Ip", "Wl-Proxy-", "X-Remote-", "Remote-User", "X-Auth-Request-", "X-Goog-", "Do-Connecting-Ip", "X-Nf-", "X-Kong-", "X-Scheme", "X-Request-Start",
	"Front-End-Https", "X-Ssl", "Max-Forwards",
}

// proxied reports whether a proxy has forwarded the request.
func proxied(h http.Header) bool {
	for name := range h {
		for _, prefix := range forwarded {
			if len(name) >= len(prefix) && strings.EqualFold(name[:len(prefix)], prefix) {
				return true
			}
		}
	}
	return false
}

// fromHere reports whether a request comes from this host and was meant for it. A page of
// another site can make a browser on this host send a request to a name that resolves to
// loopback. The name in the request then reveals it.
func fromHere(r *http.Request) bool {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !from.Addr().Unmap().IsLoopback() {
		return false
	}
	return !proxied(r.Header) && loopbackHost(r.Host)
}

// loopbackHost reports whether a host, with or without a port, is written as a loopback
// address or name.
func loopbackHost(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.ToLower(strings.Trim(host, "[]"))
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.Unmap().IsLoopback()
	}
	return host == "localhost"
}

// Loopback reports whether a server that listens on an address can be reached only from its
// own host.
func Loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err == nil && loopbackHost(host)
}

// CheckListen refuses to serve an address that other hosts can reach while there is no
// token to authenticate them.
func (a *Access) CheckListen(ctx context.Context, address string) error {
	if Loopback(address) {
		return nil
	}
	found, err := a.Any(ctx)
	if err != nil {
		return err
	}
	if !found {
		return fault.Invalidf("address "+address, "is not loopback, and there is no API token: create one with \"perdure token create\"")
	}
	return nil
}
