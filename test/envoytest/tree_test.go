package envoytest_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"gopkg.in/yaml.v3"

	"github.com/ratelimit/ratelimit/test/envoytest"
	"github.com/ratelimit/ratelimit/test/kit/xdstest"
)

// The limits of the two domains of shape-ai-gateway.yaml as a file of envoyproxy/ratelimit
// has them. They refill one token in more than eight hours.
const aiGatewayTree = `
headers: [retry-after]
include: [{path: "*.limits.yaml"}]
`

const userTree = `
domain: default/ai/http
descriptors:
- key: httproute/default/llm/rule/0/match/0/*
  value: httproute/default/llm/rule/0/match/0/*
  descriptors:
  - key: rule-0-match-0
    descriptors:
    - {key: rule-0-match-1, value: rule-0-match-1, rate_limit: {unit: year, requests_per_unit: 1000, name: tpm}}
`

const quotaTree = `
domain: ai-gateway-quota
descriptors:
- key: backend_name
  descriptors:
  - key: model_name_override
    descriptors:
    - {key: "rule-0-x-tier|premium-match-0", quota_mode: true, rate_limit: {unit: year, requests_per_unit: 2000, name: tpm}}
    - {key: rule-1-match--1, quota_mode: true, rate_limit: {unit: year, requests_per_unit: 1002, name: tpm}}
`

// Envoy's charges after the response count in files of envoyproxy/ratelimit: a charge
// past the limit is debt, and the next request is denied.
func TestEnvoyChargesEnvoyproxyFiles(t *testing.T) {
	envoytest.Need(t)
	rules := writeRules(t, aiGatewayTree)
	writeBeside(t, rules, "user.limits.yaml", userTree)
	writeBeside(t, rules, "quota.limits.yaml", quotaTree)
	chargesTrees(t, rules)
}

// So they do with the same rules from a control plane, as Envoy AI Gateway hands them out.
func TestEnvoyChargesRulesOfAControlPlane(t *testing.T) {
	envoytest.Need(t)
	p := xdstest.New(t)
	p.Start("127.0.0.1:0")
	p.Set("1", resourceOf(t, userTree), resourceOf(t, quotaTree))
	chargesTrees(t, writeRules(t, "xds: {address: '"+p.Address+"', node: "+xdstest.Node+"}"))
}

// resourceOf returns the resource of a control plane with the rules of a file.
func resourceOf(t *testing.T, file string) *ratelimitv3.RateLimitConfig {
	t.Helper()
	var value map[string]any
	if err := yaml.Unmarshal([]byte(strings.ReplaceAll(file, "unit: year", "unit: YEAR")), &value); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	resource := new(ratelimitv3.RateLimitConfig)
	if err := protojson.Unmarshal(text, resource); err != nil {
		t.Fatal(err)
	}
	resource.Name = resource.GetDomain()
	return resource
}

// chargesTrees has Envoy ask and charge for the rules of both domains.
func chargesTrees(t *testing.T, rules string) {
	t.Helper()
	g := startGatewayWith(t, example(t, "shape-ai-gateway.yaml"), envoytest.StartService(t, rules, "", ""))
	const route = "httproute/default/llm/rule/0/match/0/*"
	user := func(name string) []envoytest.Entry {
		return []envoytest.Entry{{Key: route, Value: route}, {Key: "rule-0-match-0", Value: name}, {Key: "rule-0-match-1", Value: "rule-0-match-1"}}
	}
	backend := []envoytest.Entry{{Key: "backend_name", Value: "default/openai"}, {Key: "model_name_override", Value: "gpt-4o"}, {Key: "rule-1-match--1", Value: "rule-1-match--1"}}
	ask := func(name, total string, want int, more ...string) {
		t.Helper()
		header := hundred(append([]string{"x-user-id", name, "x-ai-eg-model", "gpt-4o", "x-total-tokens", total}, more...)...)
		if answer := g.ask(t, "", question{inJSON, header}); answer.Code != want {
			t.Errorf("%s asks for %s tokens: got %d, want %d", name, total, answer.Code, want)
		}
	}
	left := func(name string, users, quota int) {
		t.Helper()
		envoytest.Await(t, "the charges", func() error {
			g.domain, g.entries = "default/ai/http", user(name)
			if err := g.wantLeft(users); err != nil {
				return err
			}
			g.domain, g.entries = "ai-gateway-quota", backend
			return g.wantLeft(quota)
		})
	}
	ask("alice", "700", http.StatusOK)
	left("alice", 300, 301) // the quota counts 1 before each request too
	ask("alice", "700", http.StatusOK)
	left("alice", -400, -400) // which are into debt
	ask("alice", "700", http.StatusTooManyRequests)
	ask("bob", "700", http.StatusTooManyRequests) // by the only quota of the call
	left("bob", 1000, -400)
	ask("bob", "100", http.StatusOK, "x-tier", "premium") // one bucket with tokens is enough
	left("bob", 900, -500)                                // a bucket without tokens takes the charge, and not the 1
}

// writeBeside writes a file into the directory of another.
func writeBeside(t *testing.T, file, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(filepath.Dir(file), name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
