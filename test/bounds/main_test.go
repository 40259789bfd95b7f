package bounds_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	rlsv3common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/ratelimit/ratelimit/test/envoytest"
)

// patience bounds the wait for an expected event on a busy machine.
const patience = 60 * time.Second

func TestMain(m *testing.M) { os.Exit(envoytest.Main(m)) }

// rules have a limit that no time of a test refills. Nothing is denied for want of a decision.
const rules = `
decision: {on_unavailable: allow}
drain: 0s
log: {format: json}
domains:
- domain: d
  rules:
  - {name: day, match: {key: "*"}, entity: "key/{key}", resource: r, limits: {day: 5/day}, consume: {day: 1}}
`

// program is a running `ratelimit serve`.
type program struct {
	cmd    *exec.Cmd
	grpc   string
	http   string
	config string
	exited chan struct{}

	mu  sync.Mutex
	log bytes.Buffer
}

// launch starts the program and waits until it answers; it is gone at the end of the test.
func launch(t *testing.T, change ...func(*exec.Cmd)) *program {
	t.Helper()
	p := &program{config: filepath.Join(t.TempDir(), "ratelimit.yaml"), exited: make(chan struct{})}
	if err := os.WriteFile(p.config, []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	p.cmd = exec.CommandContext(context.WithoutCancel(t.Context()), os.Getenv(envoytest.ProgramVariable), "serve", "--config", p.config,
		"--grpc-address", "127.0.0.1:0", "--http-address", "127.0.0.1:0")
	for _, c := range change {
		c(p.cmd)
	}
	out, err := p.cmd.StderrPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	ready := make(chan struct{})
	go p.read(out, ready)
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.exited
		if t.Failed() {
			t.Logf("log of the program:\n%s", p.said())
		}
	})
	select {
	case <-ready:
	case <-p.exited:
		t.Fatal("the program does not start")
	case <-time.After(patience):
		t.Fatal("the program does not answer")
	}
	return p
}

// read records the output of the program until it ends.
func (p *program) read(out io.Reader, ready chan struct{}) {
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var e struct {
			Message string `json:"msg"`
			GRPC    string `json:"grpc"`
			HTTP    string `json:"http"`
		}
		p.mu.Lock()
		fmt.Fprintln(&p.log, lines.Text())
		p.mu.Unlock()
		if json.Unmarshal(lines.Bytes(), &e) == nil && e.Message == "serving" {
			p.grpc, p.http = e.GRPC, e.HTTP
			close(ready)
		}
	}
	_ = p.cmd.Wait()
	close(p.exited)
}

func (p *program) said() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

// memory returns a number of bytes that Linux reports of the process.
func (p *program) memory(t *testing.T, field string) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "\n"+field+":")
	line, _, _ := strings.Cut(rest, "\n")
	kib, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(line, "kB")), 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", field, err)
	}
	return kib << 10
}

// metric returns the sum of a metric's series that have a text in their labels.
func (p *program) metric(t *testing.T, name, label string) (sum float64) {
	t.Helper()
	resp, err := http.Get("http://" + p.http + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		series, value, _ := strings.Cut(lines.Text(), " ")
		if base, _, _ := strings.Cut(series, "{"); base == name && strings.Contains(series, label) {
			n, err := strconv.ParseFloat(value, 64)
			if err != nil {
				t.Fatal(err)
			}
			sum += n
		}
	}
	return sum
}

// dial returns a client in order.
func (p *program) dial(t *testing.T) rlsv3.RateLimitServiceClient {
	t.Helper()
	conn, err := grpc.NewClient(p.grpc, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return rlsv3.NewRateLimitServiceClient(conn)
}

// callOf is a call with a descriptor for each key.
func callOf(keys ...string) *rlsv3.RateLimitRequest {
	r := &rlsv3.RateLimitRequest{Domain: "d"}
	for _, k := range keys {
		r.Descriptors = append(r.Descriptors, &rlsv3common.RateLimitDescriptor{Entries: []*rlsv3common.RateLimitDescriptor_Entry{{Key: "key", Value: k}}})
	}
	return r
}

// ask asks for one token of a key.
func ask(t *testing.T, client rlsv3.RateLimitServiceClient, key string) (admitted bool) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	got, err := client.ShouldRateLimit(ctx, callOf(key), grpc.WaitForReady(true))
	if err != nil {
		t.Fatal(err)
	}
	return got.GetOverallCode() == rlsv3.RateLimitResponse_OK
}

// exact takes all that a key has, and wants not one more than that.
func exact(t *testing.T, client rlsv3.RateLimitServiceClient, key string) {
	t.Helper()
	for i := range 8 {
		if got := ask(t, client, key); got != (i < 5) {
			t.Fatalf("%s: call %d: admitted %t", key, i+1, got)
		}
	}
}

// await polls until something holds.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %v", what, patience)
		}
	}
}
