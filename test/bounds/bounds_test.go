package bounds_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"

	"github.com/ratelimit/ratelimit/test/kit/rawgrpc"
)

// raw returns a client that is not in order.
func (p *program) raw(t *testing.T) *rawgrpc.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", p.grpc)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	r, err := rawgrpc.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// 66,000 calls without a message, on one connection or on many, cost little, and other
// clients still get exact decisions.
func TestCallsWithoutMessages(t *testing.T) {
	t.Parallel()
	p := launch(t, func(c *exec.Cmd) { c.Env = append(os.Environ(), "GOMEMLIMIT=256MiB") })
	client := p.dial(t)
	exact(t, client, "before")
	before := p.memory(t, "VmRSS")
	all := make([]*rawgrpc.Conn, 0, 66)
	for range cap(all) { // together as many as fill the counter of calls in flight
		r := p.raw(t)
		all = append(all, r)
		for range 1000 {
			if _, ok := r.Open(); !ok {
				break
			}
		}
	}
	for range 66_000 { // beyond the bound of one connection
		if _, ok := all[0].Open(); !ok {
			break
		}
	}
	for i := range 10 {
		exact(t, client, fmt.Sprint("during/", i))
	}
	if got := p.memory(t, "VmHWM") - before; got > 256<<20 {
		t.Errorf("it took %d MiB, want 256 at most", got>>20)
	}
	if got := p.metric(t, "ratelimit_degraded_total", ""); got > 0 {
		t.Errorf("%v calls were decided by policy", got)
	}
	await(t, "all are closed", func() bool {
		for _, r := range all {
			if !r.Gone() {
				return false
			}
		}
		return true
	})
	exact(t, client, "after")
	await(t, "all are counted", func() bool {
		return p.metric(t, "ratelimit_connections_closed_total", `listener="grpc"`) >= 66
	})
	if got := strings.Count(p.said(), "closing connections that ask for too much"); got != 1 {
		t.Errorf("logged %d times, want once", got)
	}
}

// Large messages that never end do not take the memory.
func TestMessagesWithoutEnd(t *testing.T) {
	t.Parallel()
	p := launch(t, func(c *exec.Cmd) { c.Env = append(os.Environ(), "GOMEMLIMIT=128MiB") })
	client := p.dial(t)
	before := p.memory(t, "RssAnon")
	part := make([]byte, 60<<10)
	var wg sync.WaitGroup
	for range 20 { // each 40 times 60 KiB
		r := p.raw(t)
		wg.Go(func() {
			for range 40 {
				stream, ok := r.Open()
				if !ok || !r.Send(stream, 1<<20, part, false) {
					return
				}
			}
		})
	}
	wg.Wait()
	exact(t, client, "during")
	if got := p.memory(t, "RssAnon") - before; got > 128<<20 {
		t.Errorf("it took %d MiB, want 128 at most", got>>20)
	}
	await(t, "connections are closed for their bytes", func() bool {
		return p.metric(t, "ratelimit_connections_closed_total", `reason="large"`) > 0
	})
}

// One message of 16 MiB of nothing costs less than 64 MiB, and is denied.
func TestAMessageOfEmptyEntries(t *testing.T) {
	t.Parallel()
	p := launch(t)
	client := p.dial(t)
	exact(t, client, "before")
	before := p.memory(t, "VmRSS")
	request := callOf("k")
	d := request.GetDescriptors()[0]
	for range 8<<20 - 50 {
		d.Entries = append(d.Entries, nil) // 2 bytes on the wire
	}
	got, err := client.ShouldRateLimit(t.Context(), request, grpc.MaxCallSendMsgSize(64<<20))
	if err != nil || got.GetOverallCode() != rlsv3.RateLimitResponse_OVER_LIMIT {
		t.Errorf("got %v, %v, want OVER_LIMIT", got, err)
	}
	if got := p.memory(t, "VmHWM") - before; got > 64<<20 {
		t.Errorf("it took %d MiB, want 64 at most", got>>20)
	}
}

// As many calls as Envoy may have open on a connection are answered.
func TestAThousandCallsAtOnce(t *testing.T) {
	t.Parallel()
	p := launch(t)
	client := p.dial(t)
	var wg sync.WaitGroup
	for i := range 1024 {
		wg.Go(func() {
			ctx, stop := context.WithTimeout(t.Context(), patience)
			defer stop()
			if _, err := client.ShouldRateLimit(ctx, callOf(strconv.Itoa(i))); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got := p.metric(t, "ratelimit_connections_closed_total", ""); got > 0 {
		t.Errorf("%v connections were closed", got)
	}
}

// Idle connections, more than there may be, keep out neither calls nor probes nor a reload.
func TestConnectionsWithoutEnd(t *testing.T) {
	t.Parallel()
	p := launch(t, func(c *exec.Cmd) {
		args := c.Args
		c.Path, c.Args = "/bin/sh", append([]string{"sh", "-c", `ulimit -n 64; exec "$0" "$@"`}, args...)
	})
	client := p.dial(t)
	exact(t, client, "before")
	hold := func(address, first string) {
		for range 200 {
			conn, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = conn.Close() })
			if _, err := io.WriteString(conn, first); err != nil {
				return // it was closed already
			}
		}
	}
	hold(p.grpc, "")
	hold(p.http, "POST /json HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{")
	exact(t, client, "during")
	exact(t, p.dial(t), "anew")
	resp, err := http.Get("http://" + p.http + "/readyz")
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("/readyz: %v, %v", resp, err)
	}
	_ = resp.Body.Close()
	if err := os.WriteFile(p.config, []byte(strings.Replace(rules, "5/day", "7/day", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	await(t, "the reload", func() bool { return strings.Contains(p.said(), "configuration loaded") })
	if got := p.metric(t, "ratelimit_connections_closed_total", `reason="evicted"`); got < 200 {
		t.Errorf("%v connections were evicted, want 200 at least", got)
	}
}

// A body that does not come is not awaited for ever.
func TestBodiesWithoutEnd(t *testing.T) {
	t.Parallel()
	p := launch(t)
	conn, err := net.Dial("tcp", p.http)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(conn, "POST /json HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"); err != nil {
		t.Fatal(err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	if _, err := io.Copy(io.Discard, conn); err != nil {
		t.Errorf("the connection is still open: %v", err)
	}
}

// Made-up keys do not take more memory than there is.
func TestKeysWithoutEnd(t *testing.T) {
	t.Parallel()
	const limit = 256 << 20
	p := launch(t, func(c *exec.Cmd) { c.Env = append(os.Environ(), "GOMEMLIMIT=256MiB") })
	client := p.dial(t)
	name := strings.Repeat("n", 200)
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 350 { // in all 140,000 keys, and there is room for 104,857
				keys := make([]string, 100)
				for j := range keys {
					keys[j] = fmt.Sprint(name, w, "/", i, "/", j)
				}
				if _, err := client.ShouldRateLimit(t.Context(), callOf(keys...)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if got := p.memory(t, "RssAnon"); got > limit {
		t.Errorf("the process takes %d MiB, want %d at most", got>>20, limit>>20)
	}
	if got := p.metric(t, "ratelimit_store_overflow_decisions_total", ""); got < 10_000 {
		t.Errorf("%v decisions by shared buckets: the store was not full", got)
	}
	if got := p.metric(t, "ratelimit_degraded_total", ""); got > 0 {
		t.Errorf("%v calls were decided by policy", got)
	}
	admitted := 0
	for range 20 {
		if ask(t, client, "another") {
			admitted++
		}
	}
	if admitted > 5 {
		t.Errorf("a new key was admitted %d times, want 5 at most", admitted)
	}
}
