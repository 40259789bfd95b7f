package config

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/ratelimit/ratelimit/config/yamlcfg"
)

// Server says where the program listens.
type Server struct {
	GRPC  GRPC
	HTTP  HTTP
	Admin Admin
	// Metrics is a listener for metrics alone, beside those of HTTP.
	Metrics Metrics
	// Statsd gets metrics of envoyproxy/ratelimit.
	Statsd Statsd
	// Debug is a listener for /rlconfig and /stats.
	Debug Debug
}

// Debug is a listener that shows the limits in force and counters, as envoyproxy/ratelimit has it.
type Debug struct {
	Address string // host:port; "" = there is none
}

// Metrics is a listener for metrics alone.
type Metrics struct {
	Address string // host:port; "" = there is none
	Path    string // default "/metrics"
}

func (m *Metrics) schema() yamlcfg.Schema {
	return yamlcfg.Object{Title: "server.metrics", Needs: []string{"address"}, Keys: []yamlcfg.Key{
		key("address", "as of gRPC", yamlcfg.Address(&m.Address)),
		key("path", "where they are", metricsPath(&m.Path)),
	}}
}

// metricsPath is a path of a URL.
func metricsPath(out *string) yamlcfg.Schema {
	return yamlcfg.Scalar{Of: yamlcfg.Shape{Type: []string{"string"}, Pattern: "^/"}, Read: func(n yamlcfg.Node) {
		yamlcfg.Name(out).Decode(n)
		if err := CheckPath(*out); err != nil {
			n.Failf("%s", err)
		}
	}}
}

// CheckPath refuses what is no plain path of a URL.
func CheckPath(path string) error {
	if !strings.HasPrefix(path, "/") || strings.ContainsAny(path, " {}?#%") || strings.Contains(path, "//") {
		return fmt.Errorf("%.100q must be a path, such as /metrics", path)
	}
	return nil
}

func (s *Server) schema() yamlcfg.Schema {
	return keys(
		key("grpc", "the Rate Limit Service", s.GRPC.schema()),
		key("http", "`/json`, `/v1/explain`, `/metrics`, `/healthz`, `/readyz`: [The HTTP side](#the-http-side)", s.HTTP.schema()),
		key("metrics", "listener for metrics alone, beside `/metrics` of HTTP", s.Metrics.schema()),
		key("statsd", "StatsD server that gets the [metrics of envoyproxy/ratelimit](metrics.md#names-of-envoyproxyratelimit)", s.Statsd.schema()),
		key("debug", "listener for `/rlconfig`, the limits in force, and `/stats`", yamlcfg.Object{Title: "server.debug", Needs: []string{"address"}, Keys: []yamlcfg.Key{
			key("address", "as of gRPC", yamlcfg.Address(&s.Debug.Address)),
		}}),
		key("admin", "[backup, restore, changes of state](#administration)", s.Admin.schema()),
	)
}

// check refuses two listeners on one address: the second could not start.
func (s *Server) check(r *yamlcfg.Report) {
	type listener struct{ path, address string }
	all := []listener{{"server.grpc.address", s.GRPC.Address}, {"server.http.address", s.HTTP.Address}}
	if s.Metrics.Address != "" {
		all = append(all, listener{"server.metrics.address", s.Metrics.Address})
	}
	if s.Debug.Address != "" {
		all = append(all, listener{"server.debug.address", s.Debug.Address})
	}
	if address, tcp := s.Admin.TCP(); tcp {
		all = append(all, listener{"server.admin.address", address})
	}
	for i, l := range all {
		for _, earlier := range all[:i] {
			if overlap(earlier.address, l.address) {
				r.Fail(r.Find(l.path), "is %s, where %s listens already, %s: give one of them another port", l.address, earlier.path, earlier.address)
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
