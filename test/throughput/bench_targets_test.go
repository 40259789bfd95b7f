//go:build bench && !race && unix

package throughput_test

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	rlsv3common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"

	"github.com/ratelimit/ratelimit/test/kit/benchtable"
)

// rules admit all calls. Each has a bucket of its key and model.
const rules = `
log: {format: json}
domains:
- domain: bench
  rules:
  - name: requests
    match: {api_key: "*", model: "*"}
    entity: "key/{api_key}"
    resource: "{model}"
    limits: {rpm: 1000000000/second}
    consume: {rpm: 1}
`

// A load is that of an Envoy of two threads under pressure.
const (
	callers     = 64
	connections = 2
	keys        = 1000
	round       = 500 * time.Millisecond
)

// TestBenchTargets measures both servers in alternating rounds; make bench runs it. Ratios are of
// neighbouring rounds, and the median counts.
func TestBenchTargets(t *testing.T) {
	const leastRate, mostP99 = 1.15, 1.0
	service := newLoad(t, startService(t, build(t, "cmd/ratelimit"), rules).grpc)
	answer, err := service.clients[0].ShouldRateLimit(t.Context(), service.requests[0])
	if err != nil || len(answer.GetResponseHeadersToAdd()) != 3 || len(answer.GetStatuses()) != 1 {
		t.Fatalf("got %v, %v", answer, err)
	}
	noop := newLoad(t, startNoop(t, answer))
	service.round(t)
	noop.round(t)
	var rate, noopRate, rateRatio, p99, noopP99, p99Ratio measures
	for i := range rate {
		if i%2 == 0 {
			rate[i], p99[i] = service.round(t)
			noopRate[i], noopP99[i] = noop.round(t)
		} else {
			noopRate[i], noopP99[i] = noop.round(t)
			rate[i], p99[i] = service.round(t)
		}
		rateRatio[i], p99Ratio[i] = rate[i]/noopRate[i], p99[i]/noopP99[i]
	}
	var table benchtable.Table
	table.Add(benchtable.Row{
		Name:     fmt.Sprintf("RLS over gRPC, throughput, %d callers", callers),
		Measured: fmt.Sprintf("%.2f× a no-op handler (%.0f/s, no-op %.0f/s)", benchtable.Median(rateRatio[:]), benchtable.Median(rate[:]), benchtable.Median(noopRate[:])),
		Target:   fmt.Sprintf("at least %.2f×", leastRate),
		OK:       benchtable.Median(rateRatio[:]) >= leastRate,
	})
	table.Add(benchtable.Row{
		Name:     fmt.Sprintf("RLS over gRPC, p99, %d callers", callers),
		Measured: fmt.Sprintf("%.2f× a no-op handler (%.2f ms, no-op %.2f ms)", benchtable.Median(p99Ratio[:]), benchtable.Median(p99[:])*1e3, benchtable.Median(noopP99[:])*1e3),
		Target:   fmt.Sprintf("at most %.1f×", mostP99),
		OK:       benchtable.Median(p99Ratio[:]) <= mostP99,
	})
	if err := table.Write(os.Stdout); err != nil {
		t.Fatal(err)
	}
	if table.Failed() {
		t.Error("a target was missed")
	}
}

// measures has one number for each round.
type measures [21]float64

// build builds a program of the module as a release has it.
func build(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), filepath.Base(name))
	out, err := exec.CommandContext(t.Context(), "go", "build", "-pgo=auto", "-trimpath", "-o", path, "github.com/ratelimit/ratelimit/"+name).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// service is a running program.
type service struct {
	grpc, admin string // addresses
	pid         int
}

// startService starts the program with a configuration.
func startService(t *testing.T, program, config string) *service {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ratelimit.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, "serve", "--config", file, "--grpc-address", "127.0.0.1:0", "--http-address", "127.0.0.1:0")
	out, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Wait() }) // the end of the test's context kills it
	lines := bufio.NewScanner(out)
	var all []string
	for lines.Scan() {
		var e struct {
			Message string `json:"msg"`
			GRPC    string `json:"grpc"`
			Admin   string `json:"admin"`
		}
		if json.Unmarshal(lines.Bytes(), &e) == nil && e.Message == "serving" {
			go func() { _, _ = io.Copy(io.Discard, out) }()
			admin, _, _ := strings.Cut(e.Admin, ",") // the socket comes after
			return &service{e.GRPC, admin, cmd.Process.Pid}
		}
		all = append(all, lines.Text())
	}
	t.Fatalf("the program does not start:\n%s", strings.Join(all, "\n"))
	return nil
}

// startNoop starts the no-op server with an answer, and returns its address.
func startNoop(t *testing.T, answer *rlsv3.RateLimitResponse) string {
	t.Helper()
	data, err := proto.Marshal(answer)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), build(t, "test/throughput/noop"))
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err == nil {
		_, err = fmt.Fprintln(in, base64.StdEncoding.EncodeToString(data))
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Wait() })
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(address)
}

// load is a client with calls to make.
type load struct {
	requests []*rlsv3.RateLimitRequest
	clients  []rlsv3.RateLimitServiceClient
}

func newLoad(t *testing.T, address string) *load {
	t.Helper()
	l := &load{}
	for i := range keys {
		l.requests = append(l.requests, &rlsv3.RateLimitRequest{Domain: "bench", Descriptors: []*rlsv3common.RateLimitDescriptor{{
			Entries: []*rlsv3common.RateLimitDescriptor_Entry{{Key: "api_key", Value: fmt.Sprintf("key-%d", i)}, {Key: "model", Value: "gpt-4"}},
		}}})
	}
	for range connections {
		conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		l.clients = append(l.clients, rlsv3.NewRateLimitServiceClient(conn))
	}
	return l
}

// round makes calls for the time of a round. It returns the calls a second and the 99th percentile of
// their time, in seconds.
func (l *load) round(t *testing.T) (rate, p99 float64) {
	t.Helper()
	var all [callers][]time.Duration
	var wg sync.WaitGroup
	start := time.Now()
	for c := range callers {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(c)))
			took := make([]time.Duration, 0, 1<<12)
			for begin := time.Now(); begin.Sub(start) < round; {
				got, err := l.clients[c%len(l.clients)].ShouldRateLimit(t.Context(), l.requests[r.IntN(len(l.requests))])
				if err != nil || got.GetOverallCode() != rlsv3.RateLimitResponse_OK {
					t.Errorf("got %v, %v", got, err)
					return
				}
				end := time.Now()
				took = append(took, end.Sub(begin))
				begin = end
			}
			all[c] = took
		})
	}
	wg.Wait()
	elapsed := time.Since(start)
	took := slices.Concat(all[:]...)
	if len(took) == 0 {
		t.Fatal("no call was answered")
	}
	slices.Sort(took)
	return float64(len(took)) / elapsed.Seconds(), took[len(took)*99/100].Seconds()
}
