package bounds_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/test/kit/rawgrpc"
)

// attackVariable is in the environment of an attacker: address, connections, how long.
const attackVariable = "RATELIMIT_TEST_ATTACK"

// TestAttacker is no test but the attacker of [TestHeadersWithoutEnd], in a process of its own.
// Each connection opens streams until it is closed, and then there is another in its place.
func TestAttacker(t *testing.T) {
	fields := strings.Fields(os.Getenv(attackVariable))
	if len(fields) != 3 {
		t.Skip("it is started by another test")
	}
	conns, _ := strconv.Atoi(fields[1])
	lasts, err := time.ParseDuration(fields[2])
	if err != nil {
		t.Fatal(err)
	}
	end := time.Now().Add(lasts)
	var wg sync.WaitGroup
	for range conns {
		wg.Go(func() {
			for time.Now().Before(end) {
				attack(fields[0], end)
			}
		})
	}
	wg.Wait()
}

// attack opens 2,000 streams on one connection, and waits until it is closed.
func attack(address string, end time.Time) {
	conn, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }()
	stop := time.AfterFunc(time.Until(end), func() { _ = conn.Close() })
	defer stop.Stop()
	r, err := rawgrpc.New(conn)
	for i := 0; err == nil && i < 2000; i++ {
		if _, ok := r.Open(); !ok {
			return
		}
	}
	<-r.Closed()
}

// startAttack attacks at the lowest priority: attacker, program and client share the processors.
// The result waits for its end.
func startAttack(t *testing.T, address string, conns int, lasts time.Duration) (wait func()) {
	t.Helper()
	attacker := exec.CommandContext(t.Context(), "nice", "-n", "19", os.Args[0], "-test.run=^TestAttacker$")
	attacker.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d %v", attackVariable, address, conns, lasts))
	if err := attacker.Start(); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := attacker.Wait(); err != nil {
			t.Errorf("the attacker: %v", err)
		}
	}
}

// memoryGroup has a program run in a control group of so much memory, beyond which the kernel ends
// it. Where the test may make none it is skipped.
func memoryGroup(t *testing.T, limit int64) func(*exec.Cmd) {
	t.Helper()
	text, _ := os.ReadFile("/proc/self/cgroup")
	for line := range strings.Lines(string(text)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		parent, file := filepath.Join("/sys/fs/cgroup", fields[2]), "memory.max"
		if fields[1] == "memory" {
			parent, file = filepath.Join("/sys/fs/cgroup/memory", fields[2]), "memory.limit_in_bytes"
		} else if fields[1] != "" {
			continue
		}
		group, err := os.MkdirTemp(parent, "ratelimit-test-") //nolint:usetesting // a group, not a directory of files
		if err != nil {
			continue
		}
		t.Cleanup(func() { _ = os.Remove(group) })
		limitFile := filepath.Join(group, file)
		if _, err := os.Stat(limitFile); err != nil {
			continue // without the controller
		}
		if err := os.WriteFile(limitFile, strconv.AppendInt(nil, limit, 10), 0o600); err != nil {
			continue
		}
		return func(c *exec.Cmd) {
			c.Path, c.Args = "/bin/sh", append([]string{"sh", "-c", `echo $$ > "$0" && exec "$@"`, filepath.Join(group, "cgroup.procs")}, c.Args...)
		}
	}
	t.Skip("the test may make no control group with a limit of memory")
	return nil
}

// Headers without messages, from some connections or many that come again when they are closed,
// neither stop calls of others nor take the memory.
func TestHeadersWithoutEnd(t *testing.T) {
	for _, conns := range floodConns() {
		t.Run(fmt.Sprintf("GOMEMLIMIT=128MiB, %d connections", conns), func(t *testing.T) {
			headersWithoutEnd(t, conns, 128<<20, func(c *exec.Cmd) { c.Env = append(os.Environ(), "GOMEMLIMIT=128MiB") })
		})
		t.Run(fmt.Sprintf("group of 512 MiB, %d connections", conns), func(t *testing.T) {
			headersWithoutEnd(t, conns, 512<<20, memoryGroup(t, 512<<20))
		})
	}
}

func headersWithoutEnd(t *testing.T, conns int, limit int64, change func(*exec.Cmd)) {
	p := launch(t, change)
	client := p.dial(t)
	exact(t, client, "before")
	resident, before, handlers := p.memory(t, "VmRSS"), p.memory(t, "RssAnon"), p.metric(t, "go_goroutines", "")
	wait := startAttack(t, p.grpc, conns, floodTime)
	await(t, "the attack is there", func() bool {
		return p.metric(t, "ratelimit_streams_held_total", "") >= 64 || p.metric(t, "ratelimit_connections_closed_total", "evicted") >= 64
	})
	began := time.Now()
	for i := range 2000 {
		if got := ask(t, client, "during"); got != (i < 5) {
			t.Fatalf("call %d: admitted %t", i+1, got)
		}
	}
	took := time.Since(began)
	if took > 5*time.Second {
		t.Errorf("2,000 calls took %v, want 5s at most", took)
	}
	exact(t, p.dial(t), "on a new connection")
	most := p.metric(t, "ratelimit_max_streams", "")
	if got := p.metric(t, "ratelimit_streams", ""); got > most {
		t.Errorf("%v streams, want %v at most", got, most)
	}
	wait()
	peak := p.memory(t, "VmHWM")
	exact(t, client, "after")
	if peak-resident > limit*3/4 {
		t.Errorf("it took %d MiB more at its peak, want %d at most", (peak-resident)>>20, limit*3/4>>20)
	}
	await(t, "its goroutines have ended", func() bool { return p.metric(t, "go_goroutines", "") < handlers+20 })
	began = time.Now()
	await(t, "its memory is back", func() bool { // garbage is collected when there are calls, else after minutes
		for range 500 {
			ask(t, client, "after")
		}
		return p.memory(t, "RssAnon")-before < 64<<20
	})
	back := time.Since(began)
	if got := p.metric(t, "ratelimit_degraded_total", ""); got > 0 {
		t.Errorf("%v calls were decided by policy", got)
	}
	t.Logf("2,000 calls in %v; %d MiB before, %d at the peak; %d MiB of data before, %d after %v",
		took.Round(time.Millisecond), resident>>20, peak>>20, before>>20, p.memory(t, "RssAnon")>>20, back.Round(time.Millisecond))
}
