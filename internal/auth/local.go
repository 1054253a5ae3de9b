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

// Any reports whether an API token is good now.
func (a *Access) Any(ctx context.Context) (bool, error) {
	var found bool
	if err := a.read(ctx, a.rt.Store.AnyToken(a.rt.Now(), &found)); err != nil {
		return false, fmt.Errorf("look for tokens: %w", err)
	}
	return found, nil
}

// local decides on a request without credentials.
func (a *Access) local(r *http.Request) (Principal, error) {
	if !a.options.Open || !fromHere(r) {
		return Principal{}, ErrUnauthenticated
	}
	found, err := a.Any(r.Context())
	if err != nil {
		return Principal{}, err
	}
	if found {
		return Principal{}, ErrUnauthenticated
	}
	return Principal{Name: "local", Label: "this machine", Role: Admin}, nil
}

// forwarded are the headers by which a proxy says that a request comes from
// somewhere else.
var forwarded = []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip", "Via"}

// fromHere reports whether a request comes from this machine and was meant for
// it. A page of another site can make a browser on this machine ask a name that
// resolves to loopback; the name in the request then shows it.
func fromHere(r *http.Request) bool {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !from.Addr().Unmap().IsLoopback() {
		return false
	}
	for _, name := range forwarded {
		if _, set := r.Header[name]; set {
			return false
		}
	}
	return loopbackHost(r.Host)
}

// loopbackHost reports whether a host, with or without a port, is this machine
// by the way it is written.
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

// Loopback reports whether a server that listens on an address can be reached
// from its own machine only.
func Loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err == nil && loopbackHost(host)
}

// CheckListen refuses to serve an address that others can reach while there is no
// token to tell them by.
func (a *Access) CheckListen(ctx context.Context, address string) error {
	if Loopback(address) {
		return nil
	}
	found, err := a.Any(ctx)
	if err != nil {
		return err
	}
	if !found {
		return fault.Invalidf("address "+address, "can be reached by others, but there is no API token yet: create one with \"perdure token create\"")
	}
	return nil
}
