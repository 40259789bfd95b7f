package bounds_test

import (
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/status"
)

// Messages that are small on the wire, and 15 MiB when they are unpacked, are not unpacked.
func TestCompressedMessages(t *testing.T) {
	t.Parallel()
	p := launch(t, func(c *exec.Cmd) { c.Env = append(os.Environ(), "GOMEMLIMIT=128MiB") })
	client := p.dial(t)
	exact(t, client, "before")
	before := p.memory(t, "VmRSS")
	large := callOf(strings.Repeat("x", 15<<20))
	var wg sync.WaitGroup
	for range 24 {
		wg.Go(func() {
			if _, err := client.ShouldRateLimit(t.Context(), large, grpc.UseCompressor(gzip.Name)); status.Code(err) != codes.Internal {
				t.Errorf("got %v, want Internal", err)
			}
		})
	}
	wg.Wait()
	if got := p.memory(t, "VmHWM") - before; got > 64<<20 {
		t.Errorf("it took %d MiB, want 64 at most", got>>20)
	}
}
