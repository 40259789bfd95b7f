package config_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/config"
)

func TestHeaders(t *testing.T) {
	for _, tt := range []struct {
		headers string
		want    config.Headers
	}{
		{"", config.Headers{RetryAfter: true, XRateLimit: true}},
		{"[]", config.Headers{}},
		{"[ietf]", config.Headers{IETF: true}},
		{"[{openai: {requests: rpm}}]", config.Headers{OpenAI: config.OpenAIHeaders{Requests: "rpm"}}},
		{"[{openai: {tokens: tpm}}]", config.Headers{OpenAI: config.OpenAIHeaders{Tokens: "tpm"}}},
		{"[x-ratelimit, {openai: {requests: rpm, tokens: tpm}}]", config.Headers{XRateLimit: true, OpenAI: config.OpenAIHeaders{Requests: "rpm", Tokens: "tpm"}}},
		{"[{openai: {requests: r.p-m_1, tokens: r.p-m_1}}, ietf, x-ratelimit, retry-after]", config.Headers{
			RetryAfter: true, XRateLimit: true, IETF: true, OpenAI: config.OpenAIHeaders{Requests: "r.p-m_1", Tokens: "r.p-m_1"},
		}},
	} {
		if got := parse(t, "headers: "+tt.headers+"\n").Headers; got != tt.want {
			t.Errorf("%s: got %+v, want %+v", tt.headers, got, tt.want)
		}
	}
}

// A name that no rule consumes is most likely a mistake. This holds for a shadow rule too, and for
// a file of envoyproxy/ratelimit.
func TestHeadersOfNoLimit(t *testing.T) {
	const domains = `
limits: {system: {rpm: 1/minute}}
domains:
- domain: a
  rules:
  - {match: {a: "*"}, entity: "{a}", resource: r, consume: {rpm: 1}}
  - {match: {b: "*"}, entity: "{b}", resource: r, consume: {tried: 1}, limits: {tried: 1/minute}, mode: shadow}
  - {match: {b: "*"}, entity: "{b}", resource: r, consume: {own: 1}, limits: {own: 1/minute}}
`
	for _, tt := range []struct{ headers, want string }{
		{"[x-ratelimit, {openai: {requests: rpm, tokens: own}}]", ""},
		{"[x-ratelimit, {openai: {requests: rpm, tokens: tpm}}]", "test.yaml:1: warning: headers[1].openai.tokens: no rule consumes tpm: these headers are never sent"},
		{"[{openai: {requests: tried}}]", "test.yaml:1: warning: headers[0].openai.requests: no rule consumes tried: these headers are never sent"},
	} {
		got := parse(t, "headers: "+tt.headers+domains).Warnings.Error()
		if diff := cmp.Diff(tt.want, strings.TrimSpace(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.headers, diff)
		}
	}
}

// TestHeadersPage loads the configuration that docs/headers.md starts from.
func TestHeadersPage(t *testing.T) {
	page, err := os.ReadFile("../docs/headers.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(page), "```yaml\n")
	block, _, _ = strings.Cut(block, "```")
	c := parse(t, block)
	want := config.Headers{RetryAfter: true, OpenAI: config.OpenAIHeaders{Requests: "rpm", Tokens: "tpm"}}
	if c.Headers != want || len(c.Warnings) > 0 {
		t.Errorf("got %+v and warnings %v, want %+v", c.Headers, c.Warnings, want)
	}
}
