package server

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/ratelimit/ratelimit/config"
	"github.com/ratelimit/ratelimit/internal/command"
)

// demoCall is a call that the example rules limit to 20 a minute.
const demoCall = `{"domain":"llm-gateway","descriptors":[{"entries":[{"key":"plan","value":"free"},{"key":"user","value":"you"},{"key":"PATH","value":"/v1/chat"}]}]}`

// greeting suggests first calls to a new user. Those of the demo reach a limit.
func (s *Service) greeting(demo bool) string {
	scheme, curl := "http", "curl"
	if s.cfg.Server.HTTP.TLS.Enabled() {
		scheme, curl = "https", "curl --insecure"
	}
	grpcurl := "grpcurl -plaintext"
	if s.cfg.Server.GRPC.TLS.Enabled() {
		grpcurl = "grpcurl -insecure"
	}
	base := scheme + "://" + reachable(s.http.listener.Addr())
	var text strings.Builder
	fmt.Fprintf(&text, "ratelimit %s answers gRPC on %s and HTTP on %s\n", command.Version(), s.grpc.listener.Addr(), s.http.listener.Addr())
	if demo {
		fmt.Fprintf(&text, `try in another terminal:
  call() { %s -s -H 'content-type: application/json' %s/json -d '%s' "$@"; }
  for i in $(seq 25); do call -o /dev/null -w '%%{http_code} '; done; echo    # 20 times 200, then 429
  call -i    # retry-after says when to come again
`, curl, base, demoCall)
	} else {
		text.WriteString("try:\n")
	}
	if body := sample(s.InForce.Load().Rules); body != "" && !demo {
		fmt.Fprintf(&text, `  %s -i -H 'content-type: application/json' %s/json -d '%s'
  %s -d '%s' %s envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit
`, curl, base, body, grpcurl, body, reachable(s.grpc.listener.Addr()))
	}
	fmt.Fprintf(&text, "  %s %s/metrics\n", curl, base)
	if len(s.admin.names) > 0 {
		fmt.Fprintf(&text, "  %s console%s    # decisions, entities and limits in a browser\n", os.Args[0], whereData(s.cfg))
	}
	return text.String()
}

// whereData is the flag by which a command finds the service at its data directory, which serve --data may have named.
func whereData(cfg *config.Config) string {
	dir := cfg.Store.Embedded.Data
	switch {
	case dir == "" || AdminSocket(cfg) != filepath.Join(dir, SocketName):
		return ""
	case strings.ContainsAny(dir, " '\"$`\\"):
		dir = strconv.Quote(dir)
	}
	return " --data " + dir
}

// reachable returns an address to call a listener at from this machine.
func reachable(a net.Addr) string {
	host, port, err := net.SplitHostPort(a.String())
	if err != nil || a.Network() == "unix" {
		return a.Network() + ":" + a.String()
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}
