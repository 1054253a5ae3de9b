package egress

import (
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"github.com/perdure/perdure/fault"
)

// maxURL is the maximum length of a URL in bytes.
const maxURL = 2048

// CheckURL parses a URL from a user. It returns an error if the URL can never be reached,
// so that a mistake is reported when the URL is stored. The addresses of a host name are
// checked only when it is dialed.
func (c *Client) CheckURL(field, raw string) (*url.URL, error) {
	u, err := CheckForm(field, raw)
	if err != nil {
		return nil, err
	}
	if err := c.check(u); err != nil {
		return nil, fault.Invalidf(field, "cannot be used: %s", err)
	}
	return u, nil
}

// CheckForm parses a URL from a user. It returns an error if no client can reach the URL,
// regardless of its options.
func CheckForm(field, raw string) (*url.URL, error) {
	if len(raw) > maxURL {
		return nil, fault.Invalidf(field, "must be at most %d bytes", maxURL)
	}
	u, err := url.Parse(raw)
	if err != nil {
		return nil, fault.Invalidf(field, "must be a URL")
	}
	if u.Fragment != "" {
		return nil, fault.Invalidf(field, "must not have a fragment")
	}
	if err := form(u); err != nil {
		return nil, fault.Invalidf(field, "cannot be used: it %s", err.Reason)
	}
	return u, nil
}

// check returns an error if the client cannot reach the URL, regardless of the addresses
// of its host.
func (c *Client) check(u *url.URL) error {
	if err := form(u); err != nil {
		return err
	}
	host := u.Hostname()
	if err := c.checkPort(host, portOf(u)); err != nil {
		return err
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return nil // a name
	}
	if reason := class(ip); reason != "" && !c.allow.permits(host, ip) {
		return &RefusedError{Host: host, Reason: reason}
	}
	return nil
}

// form returns an error if a URL is not a plain http or https URL with a host. It also
// refuses notations of addresses that only some resolvers support.
func form(u *url.URL) *RefusedError {
	host := u.Hostname()
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return &RefusedError{Host: host, Reason: "has a scheme other than http and https"}
	case u.Opaque != "" || host == "":
		return &RefusedError{Host: host, Reason: "has no host"}
	case u.User != nil:
		return &RefusedError{Host: host, Reason: "has a user in its URL"}
	}
	if n, err := strconv.Atoi(portOf(u)); err != nil || n < 1 || n > 65535 {
		return &RefusedError{Host: host, Reason: "has no valid port"}
	}
	ip, err := netip.ParseAddr(host)
	switch {
	case err == nil && ip.Zone() != "":
		return &RefusedError{Host: host, Reason: class(ip)}
	case err != nil && !validName(host):
		return &RefusedError{Host: host, Reason: "is not a name or an address in its usual form"}
	}
	return nil
}

// portOf returns the port of a URL.
func portOf(u *url.URL) string {
	if port := u.Port(); port != "" {
		return port
	}
	return map[string]string{"http": "80", "https": "443"}[u.Scheme]
}

// validName reports whether host is a name in ASCII whose last label is not a
// number: 127.1, 0x7f.1 and 2130706433 are names to some resolvers and loopback
// to others.
func validName(host string) bool {
	host = strings.TrimSuffix(host, ".")
	if host == "" || len(host) > 253 {
		return false
	}
	labels := strings.Split(host, ".")
	for _, l := range labels {
		if l == "" || len(l) > 63 || strings.IndexFunc(l, notInName) >= 0 {
			return false
		}
	}
	last := strings.ToLower(labels[len(labels)-1])
	return strings.Trim(last, "0123456789") != "" && !isHex(last)
}

func notInName(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_'
}

func isHex(label string) bool {
	digits, ok := strings.CutPrefix(label, "0x")
	return ok && strings.Trim(digits, "0123456789abcdef") == ""
}
