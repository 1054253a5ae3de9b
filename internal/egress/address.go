package egress

import "net/netip"

// special is a block of addresses that are not public, with a description.
type special struct {
	prefix netip.Prefix
	is     string
}

func block(prefix, is string) special { return special{netip.MustParsePrefix(prefix), is} }

// special4 are the blocks of IPv4 that are not part of the public internet: the registry
// of special-purpose addresses, multicast, and addresses inside public blocks at which
// clouds serve metadata.
var special4 = []special{
	block("0.0.0.0/8", "is this host"),
	block("10.0.0.0/8", "is private"),
	block("100.64.0.0/10", "is in a carrier network"),
	block("127.0.0.0/8", "is loopback"),
	block("168.63.129.16/32", "is a metadata service"),
	block("169.254.0.0/16", "is link-local"),
	block("172.16.0.0/12", "is private"),
	block("192.0.0.0/24", "is reserved for protocols"),
	block("192.0.2.0/24", "is for documentation"),
	block("192.88.99.0/24", "is a relay of 6to4"),
	block("192.168.0.0/16", "is private"),
	block("198.18.0.0/15", "is for benchmarks"),
	block("198.51.100.0/24", "is for documentation"),
	block("203.0.113.0/24", "is for documentation"),
	block("224.0.0.0/4", "is multicast"),
	block("240.0.0.0/4", "is reserved"),
}

// special6 are the blocks of IPv6 with their own description. Addresses outside 2000::/3
// are not public even if they are not listed.
var special6 = []special{
	block("::/128", "is this host"),
	block("::1/128", "is loopback"),
	block("::/96", "is an IPv4 address in IPv6"),
	block("64:ff9b:1::/48", "is translated by a local network"),
	block("2001::/32", "is a Teredo tunnel"),
	block("2001::/23", "is reserved for protocols"),
	block("2001:db8::/32", "is for documentation"),
	block("2002::/16", "is a 6to4 tunnel"),
	block("3fff::/20", "is for documentation"),
	block("fc00::/7", "is private"),
	block("fe80::/10", "is link-local"),
	block("fec0::/10", "is site-local"),
	block("ff00::/8", "is multicast"),
}

var (
	// nat64 is the prefix of public IPv4 addresses in networks without IPv4.
	nat64  = netip.MustParsePrefix("64:ff9b::/96")
	global = netip.MustParsePrefix("2000::/3")
)

// class returns the reason why an address is not public, or "" if it is public.
func class(ip netip.Addr) string {
	if ip.Zone() != "" {
		return "has a zone of a network interface"
	}
	ip = plain(ip)
	if ip.Is4() {
		return find(special4, ip)
	}
	if is := find(special6, ip); is != "" {
		return is
	}
	if !global.Contains(ip) {
		return "is not public"
	}
	return ""
}

func find(blocks []special, ip netip.Addr) string {
	for _, b := range blocks {
		if b.prefix.Contains(ip) {
			return b.is
		}
	}
	return ""
}

// plain returns the IPv4 address that an IPv6 address represents, if the system or the
// network would connect to it.
func plain(ip netip.Addr) netip.Addr {
	ip = ip.Unmap()
	if nat64.Contains(ip) {
		b := ip.As16()
		return netip.AddrFrom4([4]byte(b[12:]))
	}
	return ip
}
