package descriptor_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
)

func TestExplain(t *testing.T) {
	t.Parallel()
	rules := compileDomains(t, reference(t))
	tests := []struct {
		name   string
		domain string
		desc   descriptor.Descriptor
		want   string
	}{
		{"request", "llm-gateway", entries("api_key", "k\r\n", "model", "gpt-4"), `
rule: "requests" (domains[0].rules[1])
  take: entity "key/k\r\n", resource "gpt-4"
    rpm: 1
not rule "unlimited-admins": api_key "k\r\n" does not match "admin-*"
`},
		{"plan", "llm-gateway", entries("plan", "paid", "user", "u", "PATH", "/v1/chat"), `
rule: "by-plan" (domains[0].rules[5])
  take: entity "user/u", resource "chat"
    plan: "paid"
    limit: rpm 600/minute
    limit: tpm 400000/minute burst 600000
    rpm: 1
  take: entity "user/u", resource "all"
    limits: its own
    limit: rpd 10000/day
    rpd: 1
not rule "unlimited-admins": key api_key missing
not rule "requests": key api_key missing
not rule "tokens": key api_key missing
not rule "tokens-reserved": key api_key missing
not rule "settle": key op missing
`},
		{"too many keys", "llm-gateway", entries("remote_address", "10.0.0.1", "foo\n", "x"), `
rule: none in domain "llm-gateway"; the descriptor is admitted
not rule "unlimited-admins": key api_key missing
not rule "requests": key api_key missing
not rule "tokens": key api_key missing
not rule "tokens-reserved": key api_key missing
not rule "settle": key op missing
not rule "by-plan": key plan missing
not rule "office": has key "foo\n", which the rule does not name
not rule "trial": key plan missing
`},
		{"shadow", "llm-gateway", entries("plan", "trial"), `
rule: none in domain "llm-gateway"; the descriptor is admitted
shadow rule: "trial"
  take: entity "trial", resource "all"
    limits: its own
    limit: rps 10/second burst 20
    rps: 1
not rule "unlimited-admins": key api_key missing
not rule "requests": key api_key missing
not rule "tokens": key api_key missing
not rule "tokens-reserved": key api_key missing
not rule "settle": key op missing
not rule "by-plan": key user missing
not rule "office": key remote_address missing
`},
		{"unlimited", "llm-gateway", entries("api_key", "admin-"), `
rule: "unlimited-admins" (domains[0].rules[0])
  unlimited: admitted, and nothing is taken
`},
		{"domain", "nowhere", entries("a", "b"), `
domain: unknown, so no rule matches
`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			e := rules.Explain(test.domain, &test.desc)
			if diff := cmp.Diff(strings.TrimPrefix(test.want, "\n"), e.String()); diff != "" {
				t.Errorf("explanation (-want +got):\n%s", diff)
			}
		})
	}
}

func TestExplainShowsLongValuesCut(t *testing.T) {
	t.Parallel()
	rules := compile(t, rule(key("k", "x")))
	desc := entries("k", strings.Repeat("y", 1<<20))
	e := rules.Explain("d", &desc)
	if got := len(e.String()); got > 1000 {
		t.Errorf("explanation of a long value: got %d bytes", got)
	}
}

func TestExplainAmounts(t *testing.T) {
	t.Parallel()
	spec := rule(key("k", "*"))
	spec.Overdraw = true
	spec.Takes[0].Parents = []string{"p/{k}"}
	spec.Takes[0].Consume = []descriptor.ConsumeSpec{consume("a", 0, 2500), consume("b", 100, 0)}
	rules := compile(t, spec)
	desc := entries("k", "v")
	desc.Hits, desc.HitsSet = 3, true
	e := rules.Explain("d", &desc)
	want := `rule: "rule-1" (rule)
  charge: entity "e", resource "r"
    parent: "p/v"
    a: 7.5
    b: 0.1
`
	if diff := cmp.Diff(want, e.String()); diff != "" {
		t.Errorf("explanation (-want +got):\n%s", diff)
	}
	desc.Hits = 0
	e = rules.Explain("d", &desc)
	if got := e.String(); !strings.Contains(got, "b: a look") {
		t.Errorf("explanation of a look: got\n%s", got)
	}
}
