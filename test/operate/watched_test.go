package operate_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/test/envoytest"
)

const (
	watchedKeys  = 10_000
	watchedSlice = 2 * time.Second
	watchers     = 3 // people with the console open at an entity, and as many with ratelimit top
)

// watchedConfig is the service of BenchmarkWatched. Half of the decisions are denied.
const watchedConfig = `
server: {http: {address: "127.0.0.1:8080"}}
drain: 0s
log: {format: json}
limits: {system: {rpd: 100/day}}
domains:
- domain: shop
  rules:
  - {name: requests, match: {api_key: "*"}, entity: "{api_key}", resource: gpt-4, consume: {rpd: hits}}
`

// polls are the requests of a console that shows an entity, and of ratelimit top, and the time
// from one to the next.
var polls = []struct {
	path  string
	every time.Duration
}{
	{"/v1/decisions", time.Second},
	{"/v1/top?by=denied&size=10&namespace=default", 2 * time.Second},
	{"/v1/namespaces/default/buckets?entity=k-1&size=20", time.Second},
	{"/v1/top?by=denied&size=20&namespace=default", 2 * time.Second},
}

// BenchmarkWatched compares the decisions of a service without observers with those of one
// that some people watch. Each iteration is a slice of time of either, in turns.
func BenchmarkWatched(b *testing.B) {
	s := startService(b, watchedConfig)
	s.load(b)
	var n [2]int64
	var cpu [2]float64
	slice := func(watched int) {
		before := s.cpu(b)
		if watched == 1 {
			stop := s.watch(b)
			defer stop()
		}
		n[watched] += s.load(b)
		cpu[watched] += s.cpu(b) - before
	}
	for i := 0; b.Loop(); i++ {
		slice(i % 2)
		slice(1 - i%2)
	}
	seconds := float64(b.N) * watchedSlice.Seconds()
	unwatched, watched := cpu[0]/float64(n[0]), cpu[1]/float64(n[1])
	b.ReportMetric(float64(n[0])/seconds, "unwatched/s")
	b.ReportMetric(float64(n[1])/seconds, "watched/s")
	b.ReportMetric(100*(1-float64(n[1])/float64(n[0])), "%-of-throughput")
	b.ReportMetric(1e6*unwatched, "unwatched-CPU-µs")
	b.ReportMetric(1e6*watched, "watched-CPU-µs")
	b.ReportMetric(100*(watched/unwatched-1), "%-of-CPU")
	b.ReportMetric(0, "ns/op")
}

// answers is how many answers ratelimit bench counted.
var answers = regexp.MustCompile(`(?m)^(\d+) answers in `)

// load asks for as many decisions as the service makes in a slice of time, and returns how many.
func (s *service) load(b *testing.B) int64 {
	b.Helper()
	cmd := exec.CommandContext(b.Context(), os.Getenv(envoytest.ProgramVariable), "bench", "shop", "api_key=k-{n}", "--address", s.grpc,
		"--keys", strconv.Itoa(watchedKeys), "--workers", "64", "--duration", watchedSlice.String())
	out, err := cmd.Output()
	found := answers.FindSubmatch(out)
	if err != nil || found == nil {
		b.Fatalf("%v:\n%s", err, out)
	}
	n, err := strconv.ParseInt(string(found[1]), 10, 64)
	if err != nil {
		b.Fatal(err)
	}
	return n
}

// cpu returns the processor time of the service, in seconds, as Linux counts it.
func (s *service) cpu(b *testing.B) float64 {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.process))
	if err != nil {
		b.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), ") ") // behind the name
	fields := strings.Fields(after)
	user, userErr := strconv.ParseFloat(fields[11], 64)
	system, systemErr := strconv.ParseFloat(fields[12], 64)
	if err := errors.Join(userErr, systemErr); err != nil {
		b.Fatal(err)
	}
	return (user + system) / 100 // ticks a second
}

func fetch(b *testing.B, client *http.Client, url string) string {
	b.Helper()
	resp, err := client.Get(url)
	if err != nil {
		b.Error(err)
		return ""
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		b.Errorf("%s: %d, %v: %s", url, resp.StatusCode, err, text)
	}
	return string(text)
}

// watch has people watch the service until the function that it returns is called.
func (s *service) watch(b *testing.B) (stop func()) {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", s.socket)
	}}}
	var all sync.WaitGroup
	for range watchers {
		for _, poll := range polls {
			all.Go(func() {
				ticks := time.NewTicker(poll.every)
				defer ticks.Stop()
				for ctx.Err() == nil {
					if text := fetch(b, client, "http://localhost"+poll.path); !strings.HasPrefix(text, "{") {
						b.Error(fmt.Errorf("%s: %.100s", poll.path, text))
					}
					select {
					case <-ticks.C:
					case <-ctx.Done():
					}
				}
			})
		}
	}
	return func() { cancel(); all.Wait(); client.CloseIdleConnections() }
}
