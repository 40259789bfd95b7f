package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ratelimit/ratelimit/config"
	"github.com/ratelimit/ratelimit/pkg/budget"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Budgets and the key of the webhook are loaded; the key's file is one of those that are watched.
func TestBudgets(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"ratelimit.yaml": `
budgets:
  limits:
    - {limit: tokens, window: month, amount: 50_000_000}
    - {limit: tokens, window: month, amount: 9, namespace: prod, entity: team-a, resource: gpt-4}
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
	if b, ok := c.Budgets.Set.Of(budget.Selector{Namespace: "prod", Entity: "team-a", Resource: "gpt-4"}, "tokens", limiter.UsageMonth); !ok || b.Tokens != 9 || c.Budgets.Set.Len() != 2 {
		t.Errorf("%+v, %t, %d budgets", b, ok, c.Budgets.Set.Len())
	}
	if text := c.Warnings.Error(); !strings.Contains(text, "budgets") || !strings.Contains(text, "store.embedded.data") || strings.Contains(text, "hush") {
		t.Errorf("warnings %q", text)
	}
}
