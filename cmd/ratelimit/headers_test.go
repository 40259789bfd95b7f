package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/test/kit/programtest"
)

// TestHeadersReachAnswers compares each group of headers in a file with the answers
// of the service.
func TestHeadersReachAnswers(t *testing.T) {
	const rules = `
limits: {system: {rpm: 60/minute, tpm: {rate: 1000/minute, burst: 1500}}}
domains:
- domain: d
  rules:
  - {match: {k: "*"}, entity: "{k}", resource: r, consume: {rpm: 1, tpm: hits}}
`
	const body = `{"domain":"d","descriptors":[{"entries":[{"key":"k","value":"v"}],"hitsAddend":"500"}]}`
	for _, tt := range []struct {
		groups string
		want   map[string]string
	}{
		{"[]", map[string]string{}},
		{"[retry-after]", map[string]string{}}, // on a denial only
		{"[x-ratelimit]", map[string]string{
			"X-Ratelimit-Limit": `60, 60;w=60;name="rpm"`, "X-Ratelimit-Remaining": "59", "X-Ratelimit-Reset": "1",
		}},
		{"[{openai: {requests: rpm}}]", map[string]string{
			"X-Ratelimit-Limit-Requests": "60", "X-Ratelimit-Remaining-Requests": "59", "X-Ratelimit-Reset-Requests": "1s",
		}},
		{"[{openai: {tokens: tpm}}]", map[string]string{
			"X-Ratelimit-Limit-Tokens": "1500", "X-Ratelimit-Remaining-Tokens": "1000", "X-Ratelimit-Reset-Tokens": "30s",
		}},
		{"[ietf]", map[string]string{
			"Ratelimit-Policy": `"rpm";q=60;w=60, "tpm";q=1500;w=90`, "Ratelimit": `"rpm";r=59;t=1, "tpm";r=1000;t=30`,
		}},
	} {
		r := start(t, "--config", programtest.WriteFile(t, "ratelimit.yaml", "headers: "+tt.groups+rules))
		resp, err := http.Post("http://"+r.http+"/json", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		got := map[string]string{}
		for name, values := range resp.Header {
			if name != "Content-Type" && name != "Content-Length" && name != "Date" {
				got[name] = strings.Join(values, " and ")
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", tt.groups, diff)
		}
	}
}
