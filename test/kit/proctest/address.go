// Package proctest is for tests of other processes: an address to listen on, and a log that is read while
// it is written. It needs no package of the program.
package proctest

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"testing"
)

// FreeAddress returns a local address without a listener, which no other test gets until the end of
// this one, in this process or another. Its port is below those that outgoing connections get,
// so that a program that is started again finds its old address free.
func FreeAddress(tb testing.TB) string {
	tb.Helper()
	var err error
	for range 100 {
		address := fmt.Sprintf("127.0.0.1:%d", 20000+rand.IntN(10000))
		var claim io.Closer
		if claim, err = reserve(tb.Context(), address); err == nil {
			tb.Cleanup(func() { _ = claim.Close() }) // it has nothing to flush
			return address
		}
	}
	tb.Fatalf("no free port: %v", err)
	return ""
}

// reserve claims an address at which nothing listens. The claim is the UDP port of the same number: it is in no
// program's way, and ends with its process.
func reserve(ctx context.Context, address string) (claim io.Closer, err error) {
	var listen net.ListenConfig
	claim, err = listen.ListenPacket(ctx, "udp", address)
	if err != nil {
		return nil, err
	}
	listener, err := listen.Listen(ctx, "tcp", address)
	if err == nil {
		err = listener.Close()
	}
	if err != nil {
		_ = claim.Close() // the address is not returned
		return nil, err
	}
	return claim, nil
}
