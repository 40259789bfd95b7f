package envoytest_test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/ratelimit/ratelimit/test/envoytest"
)

// The ports of the files in examples/envoy.
const (
	servicePort  = 8081
	upstreamPort = 9000
)

// example returns the path of a file of examples/envoy.
func example(t *testing.T, name string) string {
	t.Helper()
	root, err := envoytest.Root()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(root, "examples", "envoy", name)
}

// patient returns a file of Envoy with calls that may take long. Else a busy machine would leave some
// undecided.
func patient(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), filepath.Base(file))
	if err := os.WriteFile(out, bytes.ReplaceAll(text, []byte(" timeout: 0.25s\n"), []byte(" timeout: 10s\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	return out
}

// writeRules writes a configuration file of the test's own.
func writeRules(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ratelimit.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// startUpstream starts a server that answers every request with 200.
func startUpstream(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusOK)
	}))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// startAll starts the service with rules, an upstream, and Envoy in front of them.
func startAll(t *testing.T, envoyFile, rules string) (*envoytest.Envoy, *envoytest.Service) {
	t.Helper()
	service := envoytest.StartService(t, rules, "", "")
	envoy := envoytest.StartEnvoy(t, envoyFile, envoytest.Ports{
		servicePort:  {service.GRPC},
		upstreamPort: {startUpstream(t)},
	})
	return envoy, service
}

// apiKey returns the header with an API key.
func apiKey(key string) http.Header {
	return http.Header{"X-Api-Key": {key}}
}

// number reads a header that must be a whole number.
func number(t *testing.T, response envoytest.Answer, header string) int {
	t.Helper()
	values := response.Header.Values(header)
	if len(values) != 1 {
		t.Fatalf("%d: header %s: got %q, want one value", response.Code, header, values)
	}
	n, err := strconv.Atoi(values[0])
	if err != nil {
		t.Fatalf("%d: header %s: got %q, want a whole number", response.Code, header, values[0])
	}
	return n
}

// wantNothingLost checks that Envoy had a decision for every one of n requests.
func wantNothingLost(t *testing.T, envoy *envoytest.Envoy, n int64) {
	t.Helper()
	stats := envoy.Stats(t, "cluster.upstream.ratelimit.")
	for name, want := range map[string]int64{"error": 0, "failure_mode_allowed": 0} {
		if got := stats["cluster.upstream.ratelimit."+name]; got != want {
			t.Errorf("Envoy's counter ratelimit.%s: got %d, want %d", name, got, want)
		}
	}
	got := stats["cluster.upstream.ratelimit.ok"] + stats["cluster.upstream.ratelimit.over_limit"]
	if got != n {
		t.Errorf("decisions that Envoy counted: got %d, want %d", got, n)
	}
}

// looker asks a service how a descriptor stands, and takes nothing.
type looker struct{ client rls.RateLimitServiceClient }

// newLooker returns a looker at the service.
func newLooker(t *testing.T, service *envoytest.Service) looker {
	t.Helper()
	conn, err := grpc.NewClient(service.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return looker{rls.NewRateLimitServiceClient(conn)}
}

// remaining returns the tokens that a descriptor of one entry has left.
func (l looker) remaining(t *testing.T, domain, key, value string) uint32 {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	response, err := l.client.ShouldRateLimit(ctx, &rls.RateLimitRequest{
		Domain: domain,
		Descriptors: []*common.RateLimitDescriptor{{
			Entries:    []*common.RateLimitDescriptor_Entry{{Key: key, Value: value}},
			HitsAddend: wrapperspb.UInt64(0),
		}},
	})
	if err != nil {
		t.Fatalf("look at %s=%q: %v", key, value, err)
	}
	if len(response.GetStatuses()) != 1 || response.GetStatuses()[0].GetCurrentLimit() == nil {
		t.Fatalf("look at %s=%q: got %v, want one status with its limit", key, value, response)
	}
	return response.GetStatuses()[0].GetLimitRemaining()
}
