// Package proctest is for tests of other processes: an address to listen on, and a log that is read while
// it is written. It needs no package of the program.
package proctest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
)

// FreeAddress returns a local address without a listener. Its port is below those
// that outgoing connections get, so that a program that is started again finds its
// old address free.
func FreeAddress(tb testing.TB) string {
	tb.Helper()
	var err error
	for range 100 {
		address := fmt.Sprintf("127.0.0.1:%d", 20000+rand.IntN(10000))
		var l net.Listener
		if l, err = new(net.ListenConfig).Listen(tb.Context(), "tcp", address); err == nil {
			if err := l.Close(); err != nil {
				tb.Fatal(err)
			}
			return address
		}
	}
	tb.Fatalf("no free port: %v", err)
	return ""
}
