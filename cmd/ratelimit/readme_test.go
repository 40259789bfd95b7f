package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/config"
	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/embedded"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// The first configuration of README is safe to copy: a key that makes up models has no
// more than the buckets of the listed ones and one, and an odd descriptor is refused.
func TestFirstConfigurationIsSafe(t *testing.T) {
	page, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, page2, _ := strings.Cut(string(page), "\n## Configure\n")
	text := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindStringSubmatch(page2)
	if text == nil {
		t.Fatal("README has no configuration")
	}
	cfg, err := config.Parse("readme.yaml", []byte(text[1]), nil)
	if err != nil || len(cfg.Warnings) > 0 {
		t.Fatalf("problems %v, warnings %v", err, cfg.Warnings)
	}
	now := time.Now() // the store drops buckets that are full by the clock
	store := embedded.New(embedded.Config{})
	t.Cleanup(func() { _ = store.Close(t.Context()) })
	l, err := limiter.New(limiter.Config{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.SetStatic(t.Context(), cfg.Static); err != nil {
		t.Fatal(err)
	}
	ask := func(entries ...descriptor.Entry) bool {
		var plan descriptor.Plan
		cfg.Rules.Plan(&descriptor.Call{Domain: "llm-gateway", Descriptors: []descriptor.Descriptor{{Entries: entries}}}, &plan)
		var d limiter.Decision
		if plan.Outcomes[0].Kind != descriptor.Takes {
			return !plan.Outcomes[0].Deny
		}
		if err := l.Decide(t.Context(), now, &plan.Request, &d); err != nil {
			t.Fatal(err)
		}
		return d.Admitted
	}
	admitted := 0
	for i := range 2000 {
		for _, model := range []string{fmt.Sprintf("made-up-%d", i), "gpt-4" + strings.Repeat(" ", i)} {
			if ask(descriptor.Entry{Key: "api_key", Value: "k-123"}, descriptor.Entry{Key: "model", Value: model}) {
				admitted++
			}
		}
	}
	if want := 1 + 100; admitted != want { // gpt-4 itself once; of all others as many as org/acme has
		t.Errorf("admitted with made-up models: got %d, want %d", admitted, want)
	}
	for _, key := range []string{"internal-x", "admin-x"} {
		admitted := 0
		for range 2000 {
			if ask(descriptor.Entry{Key: "api_key", Value: key}, descriptor.Entry{Key: "model", Value: "gpt-4o"}) {
				admitted++
			}
		}
		if admitted != 600 {
			t.Errorf("the key %s: got %d of 2000, want 600", key, admitted)
		}
	}
	if ask(descriptor.Entry{Key: "api_key", Value: "k"}) {
		t.Error("a descriptor that no rule matches: got admitted, want denied")
	}
}
