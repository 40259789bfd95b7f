package main

import (
	"net/http"
	"strings"
	"testing"
)

// A call with a mistyped domain or key is named in the log of the service, without the
// values of its descriptors.
func TestServiceNamesWhatIsMistyped(t *testing.T) {
	r := start(t, "--config", write(t, "c.yaml", twoPerMinute))
	for _, test := range []struct {
		body string
		want []string // parts of the line
	}{
		{`{"domain":"shpo","descriptors":[{"entries":[{"key":"user","value":"canary"}]}]}`, []string{"unknown domain", "domain=shpo", "did_you_mean=shop"}},
		{`{"domain":"shop","descriptors":[{"entries":[{"key":"usr","value":"canary"}]}]}`, []string{"no rule matches", "domain=shop", "keys=[usr]"}},
	} {
		eventually(t, "the line about "+test.body, func() bool {
			resp, err := http.Post("http://"+r.http+"/json", "application/json", strings.NewReader(test.body))
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			for line := range strings.Lines(r.log.String()) {
				found := strings.Contains(line, "level=WARN")
				for _, part := range test.want {
					found = found && strings.Contains(line, part)
				}
				if found {
					return true
				}
			}
			return false
		})
	}
	if strings.Contains(r.log.String(), "canary") {
		t.Error("a value of a descriptor is in the log")
	}
	r.stop(errInterrupted)
	r.wait(t)
}
