package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ratelimit/ratelimit/config"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Budgets of limits and the key of the webhook are loaded. The file of the key is watched.
func TestBudgets(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"ratelimit.yaml": `
limits:
  system: {tokens: {rate: 1000/day, burst: 10, budget: {month: 50_000_000, hour: 7}}, requests: 100/minute}
  resources:
    gpt-4: {tokens: {rate: 1000/day, burst: 10, budget: {month: 5}}}
  entities:
    team-a:
      limits:
        _default_: {tokens: {rate: 1000/day, burst: 10, budget: {month: 8}}}
        gpt-4: {tokens: {rate: 1000/day, burst: 10, budget: {month: 9}}}
        gpt-5: {tokens: {rate: 1000/day, burst: 10}}
budgets:
  webhook: {url: "https://alerts.example.com/x?token=hush", key: {file: webhook.key}}
domains: [{domain: d}]
`,
		"webhook.key": "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := config.Load(filepath.Join(dir, "ratelimit.yaml"), config.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if w := c.Budgets.Webhook; w.URL != "https://alerts.example.com/x?token=hush" || string(w.Key) != "0123456789abcdef0123456789abcdef" {
		t.Errorf("webhook %q with a key of %d bytes", w.URL, len(w.Key))
	}
	for of, want := range map[limiter.BudgetBucket]int64{
		{Entity: "x", Resource: "y"}: 50_000_000, {Entity: "x", Resource: "gpt-4"}: 5,
		{Entity: "team-a", Resource: "y"}: 8, {Entity: "team-a", Resource: "gpt-5"}: 8, {Entity: "team-a", Resource: "gpt-4"}: 9,
	} {
		if b, _ := c.Budgets.Set.Of(&of, "tokens", limiter.UsageMonth, &limiter.StoredBudgets{}); b.Tokens != want {
			t.Errorf("%+v: %+v; want %d", of, b, want)
		}
	}
	if n := c.Budgets.Set.Len(); n != 5 {
		t.Errorf("%d budgets, want 5", n)
	}
	if text := c.Warnings.Error(); !strings.Contains(text, "limits: have budgets") || !strings.Contains(text, "store.embedded.data") || strings.Contains(text, "hush") {
		t.Errorf("warnings %q", text)
	}
	without, err := config.Parse("", []byte("limits: {system: {tokens: 10/day}}"), nil)
	if err != nil || without.Budgets.Set != nil {
		t.Errorf("%+v, %v", without, err)
	}
}
