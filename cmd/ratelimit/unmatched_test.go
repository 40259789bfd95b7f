package main

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/test/kit/programtest"
)

// firstYAML is the first configuration of a page.
var firstYAML = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// pageConfig writes the first configuration of a page into a file.
func pageConfig(t *testing.T, page, section string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../..", page))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), section)
	found := firstYAML.FindStringSubmatch(rest)
	if found == nil {
		t.Fatalf("%s has no configuration in %s", page, section)
	}
	return programtest.WriteFile(t, "page.yaml", found[1])
}

// A gateway whose domain is mistyped is denied by the configuration of README.
func TestAMistypedDomainIsDenied(t *testing.T) {
	r := start(t, "--config", pageConfig(t, "README.md", "## Configure"))
	descriptors := `"descriptors":[{"entries":[{"key":"api_key","value":"k-9"},{"key":"model","value":"gpt-4"}]}]}`
	for domain, want := range map[string]int{"llm-gateway": http.StatusOK, "llm-gatewy": http.StatusTooManyRequests} {
		if code, answer := r.call(t, `{"domain":"`+domain+`",`+descriptors); code != want {
			t.Errorf("the domain %s: got %d, want %d: %+v", domain, code, want, answer)
		}
	}
	r.stop(command.ErrInterrupted)
	r.wait(t)
}

// Configurations that are shown to be copied deny an unknown domain.
func TestShownConfigurationsDenyUnknownDomains(t *testing.T) {
	files := map[string][]string{
		"the reference":             {"--demo"},
		"the page on configuration": {"-c", pageConfig(t, "docs/configuration.md", "## A first configuration")},
		"the page on LLM gateways":  {"-c", "../../examples/llm/ratelimit.yaml"},
	}
	for _, name := range []string{"compose/rules", "compose/rules-valkey", "dynamodb", "envoy-gateway", "istio", "kustomize/overlay", "kustomize/overlay-valkey", "test", "valkey"} {
		files["examples/"+name] = []string{"-c", "../../examples/" + name + "/ratelimit.yaml"}
	}
	for name, flags := range files {
		code, stdout, stderr := output(t, append([]string{"explain"}, append(flags, "mistyped", "api_key=k-9")...)...)
		if code != command.ExitOK || !regexp.MustCompile(`answer +denied\n`).MatchString(stdout) {
			t.Errorf("%s: exit code %d, %s%s", name, code, stdout, stderr)
		}
	}
}

// A call with a mistyped domain or key is named in the log of the service, without the
// values of its descriptors.
func TestServiceNamesWhatIsMistyped(t *testing.T) {
	r := start(t, "--config", programtest.WriteFile(t, "c.yaml", programtest.TwoPerMinute))
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
	r.stop(command.ErrInterrupted)
	r.wait(t)
}
