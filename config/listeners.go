package config

import (
	"net"
	"net/netip"
	"strconv"

	"github.com/ratelimit/ratelimit/config/yamlcfg"
)

// checkListeners refuses two listeners on one address: the second could not start.
func (f *file) checkListeners(d *yamlcfg.Decoder) {
	type listener struct{ path, address string }
	c := &f.cfg.Server
	all := []listener{{"server.grpc.address", c.GRPC.Address}, {"server.http.address", c.HTTP.Address}}
	if _, socket := c.Admin.Socket(); !socket && c.Admin.Address != AdminOff && c.Admin.Address != "" {
		all = append(all, listener{"server.admin.address", c.Admin.Address})
	}
	for i, l := range all {
		for _, earlier := range all[:i] {
			if overlap(earlier.address, l.address) {
				d.Fail(d.Find(l.path), "is %s, where %s listens already, %s: give one of them another port", l.address, earlier.path, earlier.address)
			}
		}
	}
}

// overlap reports whether two listeners cannot have their addresses at the same time. Port 0 is any
// free port, and so overlaps with none.
func overlap(a, b string) bool {
	hostA, portA := splitAddress(a)
	hostB, portB := splitAddress(b)
	if portA != portB || portA == 0 {
		return false
	}
	return hostA == hostB || covers(hostA, hostB) || covers(hostB, hostA)
}

func splitAddress(address string) (host string, port uint64) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0
	}
	if port, err = strconv.ParseUint(text, 10, 16); err != nil {
		return "", 0
	}
	if host == "localhost" {
		host = "127.0.0.1"
	}
	return host, port
}

// covers reports whether a host stands for all addresses of the machine, and the other host is one
// of them.
func covers(host, other string) bool {
	if host == "" {
		return true
	}
	addr, err := netip.ParseAddr(host)
	if err != nil || !addr.IsUnspecified() {
		return false
	}
	of, err := netip.ParseAddr(other)
	return addr.Is6() || err != nil || of.Is4() // [::] stands for the IPv4 addresses too
}
