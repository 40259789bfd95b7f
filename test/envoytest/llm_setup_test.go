package envoytest_test

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/test/envoytest"
)

// gateway is an Envoy between clients and an LLM provider, and the service that it
// asks.
type gateway struct {
	envoy    *envoytest.Envoy
	service  *envoytest.Service // the first of its replicas
	replicas []*envoytest.Service
	upstream *envoytest.Upstream
	domain   string
	entries  []envoytest.Entry // of the descriptor with the tokens, without the key
}

// startGateway starts an example with the rules that belong to it, which refill
// nothing while a test runs.
func startGateway(t *testing.T, file, rules string) *gateway {
	t.Helper()
	return startGatewayWith(t, example(t, file), envoytest.StartService(t, envoytest.WithoutRefill(t, example(t, rules)), "", ""))
}

// startGatewayWith starts an Envoy file in front of replicas of the service. Its calls may take
// longer than the file says. Else a busy machine would leave calls undecided or uncharged, and
// these tests are not about such calls.
func startGatewayWith(t *testing.T, file string, services ...*envoytest.Service) *gateway {
	t.Helper()
	upstream := envoytest.StartUpstream(t)
	g := startGatewayTo(t, file, upstream.Address, services...)
	g.upstream = upstream
	return g
}

// startGatewayTo is startGatewayWith in front of an upstream of the test's own.
func startGatewayTo(t *testing.T, file, upstream string, services ...*envoytest.Service) *gateway {
	t.Helper()
	g := &gateway{service: services[0], replicas: services}
	ports := envoytest.Ports{upstreamPort: {upstream}}
	for _, service := range services {
		ports[servicePort] = append(ports[servicePort], service.GRPC)
	}
	g.envoy = envoytest.StartEnvoy(t, patient(t, file), ports)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("Envoy's calls to the service: %v", g.envoy.Stats(t, "cluster.ratelimit.upstream_"))
		}
	})
	return g
}

// question is the request of a client.
type question struct {
	body   string
	header map[string]string // of examples/upstream, and of the descriptors
}

// The bodies of questions.
const (
	inJSON     = `{"model": "m", "messages": []}`
	streamed   = `{"model": "m", "messages": [], "stream": true, "stream_options": {"include_usage": true}}`
	usageSoFar = `{"model": "m", "messages": [], "stream": true, "stream_options": {"include_usage": true, "continuous_usage_stats": true}}`
	noUsage    = `{"model": "m", "messages": [], "stream": true}`
)

// post sends a question with an API key, with any compression that the client
// accepts.
func (g *gateway) post(ctx context.Context, key string, q question) (*http.Response, error) {
	header := http.Header{"X-Api-Key": {key}, "Accept-Encoding": {"gzip"}}
	for name, value := range q.header {
		header.Set(name, value)
	}
	return g.envoy.Post(ctx, "/v1/chat/completions", q.body, header)
}

// ask sends a question and reads the answer. One that breaks off has the code 0.
func (g *gateway) ask(t *testing.T, key string, q question) envoytest.Answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	response, err := g.post(ctx, key, q)
	if err != nil {
		t.Fatalf("key %s: %v", key, err)
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := envoytest.Read(response)
	if ctx.Err() != nil {
		t.Fatalf("key %s: %v", key, err)
	}
	if err != nil {
		return envoytest.Answer{}
	}
	if got := answer.Header.Get("Content-Encoding"); got != "" {
		t.Errorf("key %s: got the answer in %s, which no filter reads", key, got)
	}
	return answer
}

// leave sends a question that is to be streamed and held, and goes away after half of
// the answer.
func (g *gateway) leave(t *testing.T, key string, q question, lines int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	held := question{body: q.body, header: maps.Clone(q.header)}
	held.header["x-hold"] = key
	response, err := g.post(ctx, key, held)
	if err != nil {
		t.Fatalf("key %s: %v", key, err)
	}
	defer func() { _ = response.Body.Close() }()
	scanner := bufio.NewScanner(response.Body)
	for range lines {
		if !scanner.Scan() {
			t.Fatalf("key %s: half of the answer: %v", key, scanner.Err())
		}
	}
}

// awaitTokens waits until a key has used that many of its 100,000 tokens.
func (g *gateway) awaitTokens(t *testing.T, key string, used int) {
	t.Helper()
	envoytest.Await(t, "the tokens of "+key, func() error { return g.wantUsed(key, used) })
}

// awaitAndStay waits until is returns nil, and checks that it goes on to.
func awaitAndStay(t *testing.T, what string, is func() error) {
	t.Helper()
	envoytest.Await(t, what, is)
	envoytest.Stays(t, what, is)
}

// wantUsed returns an error unless a key has used that many of its 100,000 tokens.
func (g *gateway) wantUsed(key string, used int) error {
	return g.wantLeft(100_000-used, envoytest.Entry{Key: "api_key", Value: key})
}

// wantLeft returns an error unless the descriptor with the tokens, and with more
// entries, has that many left.
func (g *gateway) wantLeft(want int, more ...envoytest.Entry) error {
	entries := slices.Concat(more, g.entries)
	got, err := g.service.Available(g.domain, "tpm", entries...)
	if err != nil {
		return err
	}
	if got != strconv.Itoa(want) {
		return fmt.Errorf("tokens left for %v: got %s, want %d", entries, got, want)
	}
	return nil
}

// wantCalls returns an error unless Envoy made n calls to the service, and each was
// answered.
func (g *gateway) wantCalls(t *testing.T, n int) error {
	t.Helper()
	const all, ok = "cluster.ratelimit.upstream_rq_total", "cluster.ratelimit.upstream_rq_200"
	stats := g.envoy.Stats(t, "cluster.ratelimit.upstream_rq_")
	if stats[ok] != int64(n) || stats[all] != int64(n) {
		return fmt.Errorf("calls that Envoy made: got %d, %d answered, want %d", stats[all], stats[ok], n)
	}
	return nil
}

// counted returns the sum of the replicas' series that begin with prefix and have
// each of the labels, such as `kind="charge"`.
func (g *gateway) counted(t *testing.T, prefix string, labels ...string) int {
	t.Helper()
	sum := 0.0
	for _, replica := range g.replicas {
		metrics, err := replica.Metrics()
		if err != nil {
			t.Fatal(err)
		}
		for series, value := range metrics {
			if strings.HasPrefix(series, prefix) && !slices.ContainsFunc(labels, func(l string) bool { return !strings.Contains(series, l) }) {
				sum += value
			}
		}
	}
	return int(sum)
}
