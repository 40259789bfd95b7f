package envoytest_test

import (
	"net/http"
	"slices"
	"testing"

	"github.com/ratelimit/ratelimit/test/envoytest"
)

// codes sends n requests and returns how many got each code.
func codes(t *testing.T, envoy *envoytest.Envoy, n int, path string, header http.Header) map[int]int {
	t.Helper()
	got := make(map[int]int)
	for range n {
		got[envoy.Get(t, path, header).Code]++
	}
	return got
}

// wantCodes checks that of n requests the first admitted are answered, and the
// others denied.
func wantCodes(t *testing.T, envoy *envoytest.Envoy, who, path string, header http.Header, n, admitted int) {
	t.Helper()
	got := codes(t, envoy, n, path, header)
	if got[http.StatusOK] != admitted || got[http.StatusTooManyRequests] != n-admitted {
		t.Errorf("%s: of %d requests to %s got codes %v, want %d times 200, then 429", who, n, path, got, admitted)
	}
}

// Each of the four rules of the policy limits by itself; a request that one denies takes
// nothing of the others.
func TestEnvoyGatewayShape(t *testing.T) {
	envoytest.Need(t)
	g := startGateway(t, "shape-envoy-gateway.yaml", "shape.ratelimit.yaml")
	user := func(name string) http.Header { return http.Header{"X-User-Id": {name}} }
	wantCodes(t, g.envoy, "a user", "/api", user("alice"), 8, 5)
	wantCodes(t, g.envoy, "admins", "/api", http.Header{"X-Org-Id": {"admin"}}, 4, 3)
	wantCodes(t, g.envoy, "another organisation, and after it everyone", "/api", http.Header{"X-Org-Id": {"acme"}}, 4, 2)
	if answer := g.envoy.Get(t, "/api", user("bob")); answer.Code != http.StatusTooManyRequests {
		t.Errorf("a user, when the limit of everyone is used up: got %d, want 429", answer.Code)
	}
	for descriptor, want := range map[envoytest.Entry]string{
		{Key: "rule-0-match-0", Value: "bob"}:              "5",
		{Key: "rule-1-match-0", Value: "rule-1-match-0"}:   "0",
		{Key: "rule-3-match--1", Value: "rule-3-match--1"}: "0",
	} {
		const route = "httproute/default/api/rule/0/match/0/*"
		got, err := g.service.Available("default/eg/http", "requests", envoytest.Entry{Key: route, Value: route}, descriptor)
		if err != nil || got != want {
			t.Errorf("left for %v: got %s and %v, want %s", descriptor, got, err, want)
		}
	}
	got, err := g.service.Available("default/eg/http", "requests", envoytest.Entry{Key: "httproute/default/api/rule/0/match/0/*"},
		envoytest.Entry{Key: "masked_remote_address", Value: "127.0.0.0/8"}, envoytest.Entry{Key: "remote_address", Value: "127.0.0.1"})
	if err != nil || got != "90" {
		t.Errorf("left for the address, after 10 admitted requests: got %s and %v, want 90", got, err)
	}
	wantNothingLost(t, g.envoy, 17)
}

// Tokens are charged to the user and to the provider's quota, once each; a request that
// the user's limit denies is charged to neither.
func TestAIGatewayShape(t *testing.T) {
	envoytest.Need(t)
	g := startGateway(t, "shape-ai-gateway.yaml", "shape.ratelimit.yaml")
	ask := func(total string, want int) {
		t.Helper()
		header := hundred("x-user-id", "alice", "x-ai-eg-model", "gpt-4o", "x-total-tokens", total)
		if answer := g.ask(t, "", question{inJSON, header}); answer.Code != want {
			t.Errorf("a question of %s tokens: got %d, want %d", total, answer.Code, want)
		}
	}
	// The quota takes 1 before each request, too.
	backend := []envoytest.Entry{{Key: "backend_name", Value: "default/openai"}, {Key: "model_name_override", Value: "gpt-4o"}}
	everyone := append(slices.Clone(backend), envoytest.Entry{Key: "rule-1-match--1", Value: "rule-1-match--1"})
	wantUsed := func(user, quota int) func() error {
		return func() error {
			const route = "httproute/default/llm/rule/0/match/0/*"
			g.domain, g.entries = "default/ai/http", []envoytest.Entry{{Key: route, Value: route}, {Key: "rule-0-match-0", Value: "alice"}, {Key: "rule-0-match-1", Value: "rule-0-match-1"}}
			if err := g.wantLeft(100_000 - user); err != nil {
				return err
			}
			g.domain, g.entries = "ai-gateway-quota", everyone
			return g.wantLeft(100_000 - quota)
		}
	}
	ask("100", http.StatusOK)
	envoytest.Await(t, "100 tokens", wantUsed(100, 101))
	ask("99900", http.StatusOK)
	envoytest.Await(t, "all tokens of the user", wantUsed(100_000, 100_002))
	ask("100", http.StatusTooManyRequests)
	awaitAndStay(t, "the charges came once, and none for the denied request", wantUsed(100_000, 100_002))
	if got := g.counted(t, "ratelimit_charges_total{", `result="booked"`); got != 4 {
		t.Errorf("charges that the service booked: got %d, want 4", got)
	}
}

// A bucket rule of a QuotaPolicy is charged besides the default bucket.
func TestAIGatewayBucketRule(t *testing.T) {
	envoytest.Need(t)
	g := startGateway(t, "shape-ai-gateway.yaml", "shape.ratelimit.yaml")
	header := hundred("x-user-id", "bob", "x-ai-eg-model", "gpt-4o", "x-tier", "premium")
	if answer := g.ask(t, "", question{inJSON, header}); answer.Code != http.StatusOK {
		t.Fatalf("got %d, want 200", answer.Code)
	}
	g.domain = "ai-gateway-quota"
	for key, want := range map[string]int{"rule-0-x-tier|premium-match-0": 199_899, "rule-1-match--1": 99_899} {
		g.entries = []envoytest.Entry{{Key: "backend_name", Value: "default/openai"}, {Key: "model_name_override", Value: "gpt-4o"}, {Key: key, Value: key}}
		envoytest.Await(t, key, func() error { return g.wantLeft(want) })
	}
}

// The path is limited with any query.
func TestIstioShape(t *testing.T) {
	envoytest.Need(t)
	g := startGateway(t, "shape-istio.yaml", "shape.ratelimit.yaml")
	wantCodes(t, g.envoy, "the page", "/productpage?u=1", nil, 1, 1)
	wantCodes(t, g.envoy, "the page with another query", "/productpage?u=2", nil, 2, 0)
	wantCodes(t, g.envoy, "another path", "/productpages", nil, 5, 5)
	wantNothingLost(t, g.envoy, 8)
}
