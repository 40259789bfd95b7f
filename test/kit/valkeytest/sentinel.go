package valkeytest

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/ratelimit/ratelimit/test/kit/proctest"
)

// StartSentinel starts a sentinel with a password of its own. It watches a primary under a name, and
// promotes a replica of it half a second after it died.
func StartSentinel(tb testing.TB, primary *Server, name, password string) *Server {
	tb.Helper()
	host, port, err := net.SplitHostPort(primary.Address)
	if err != nil {
		tb.Fatal(err)
	}
	s := &Server{Address: proctest.FreeAddress(tb), Dir: tb.TempDir(), Password: password, tb: tb}
	_, own, err := net.SplitHostPort(s.Address)
	if err != nil {
		tb.Fatal(err)
	}
	config := fmt.Sprintf("port %s\nbind 127.0.0.1\ndir %s\nrequirepass %s\nsentinel monitor %s %s %s 1\n", own, s.Dir, password, name, host, port) +
		fmt.Sprintf("sentinel down-after-milliseconds %s 500\nsentinel failover-timeout %[1]s 2000\n", name)
	if primary.Password != "" {
		config += fmt.Sprintf("sentinel auth-pass %s %s\n", name, primary.Password)
	}
	file := filepath.Join(s.Dir, "sentinel.conf")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(s.Kill)
	s.run([]string{file, "--sentinel"})
	return s
}
