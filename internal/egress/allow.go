package egress

import (
	"net/netip"
	"strings"

	"github.com/perdure/perdure/fault"
)

// allowList lists destinations that may be reached although they are not public.
type allowList struct {
	prefixes []netip.Prefix
	hosts    map[string]bool
	domains  []string // with a leading dot
}

// CheckAllow returns an error if New would refuse an entry of Options.Allow.
func CheckAllow(entry string) error {
	_, err := parseAllow([]string{entry})
	return err
}

func parseAllow(entries []string) (allowList, error) {
	list := allowList{hosts: map[string]bool{}}
	for _, entry := range entries {
		if !list.add(strings.TrimSpace(entry)) {
			return allowList{}, fault.Invalidf("allowed address", "must be a prefix, address, host or *.domain, got %q", entry)
		}
	}
	return list, nil
}

func (l *allowList) add(entry string) bool {
	if prefix, err := netip.ParsePrefix(entry); err == nil {
		l.prefixes = append(l.prefixes, prefix.Masked())
		return true
	}
	if ip, err := netip.ParseAddr(strings.Trim(entry, "[]")); err == nil {
		ip = ip.Unmap()
		l.prefixes = append(l.prefixes, netip.PrefixFrom(ip, ip.BitLen()))
		return ip.Zone() == ""
	}
	domain, below := strings.CutPrefix(entry, "*.")
	if !validName(domain) {
		return false
	}
	if below {
		l.domains = append(l.domains, "."+canonical(domain))
		return true
	}
	l.hosts[canonical(domain)] = true
	return true
}

// canonical returns a host name in the form in which names are compared.
func canonical(host string) string { return strings.ToLower(strings.TrimSuffix(host, ".")) }

// permits reports whether the address of a host is allowed.
func (l *allowList) permits(host string, ip netip.Addr) bool {
	if ip.Zone() != "" {
		return false
	}
	ip = plain(ip)
	for _, p := range l.prefixes {
		if p.Contains(ip) {
			return true
		}
	}
	return !isMetadata(ip) && l.named(canonical(host))
}

func (l *allowList) named(host string) bool {
	if l.hosts[host] {
		return true
	}
	for _, d := range l.domains {
		if strings.HasSuffix(host, d) {
			return true
		}
	}
	return false
}

// metadata are the addresses at which clouds return credentials to any client.
var metadata = []netip.Addr{
	netip.MustParseAddr("168.63.129.16"), netip.MustParseAddr("100.100.100.200"), netip.MustParseAddr("192.0.0.192"),
	netip.MustParseAddr("fd00:ec2::254"), netip.MustParseAddr("fd20:ce::254"),
}

func isMetadata(ip netip.Addr) bool {
	for _, m := range metadata {
		if m == ip {
			return true
		}
	}
	return ip.IsLinkLocalUnicast()
}
