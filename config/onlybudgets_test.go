package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ratelimit/ratelimit/config"
)

const onlyBudgets = `
reservation: {keys: [{file: not-here.key}]}
include: [{path: rules.yaml}]
limits: {system: {tokens: {rate: 5/day, budget: {month: 50}}}}
budgets:
  webhook: {url: "https://alerts.example.com/x?token=hush", key: %s}
`

// To watch budgets, a configuration needs no domain and no keys of reservations. If it is in
// memory, the key of the webhook must be text, and no included file is read.
func TestOnlyBudgets(t *testing.T) {
	const key = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
	inMemory := func(key string) (*config.Config, error) {
		return config.ParseBudgets("s3://fleet/ratelimit.yaml", []byte(strings.ReplaceAll(onlyBudgets, "%s", key)))
	}
	c, err := inMemory(key)
	if err != nil || c.Budgets.Set.Len() != 1 || len(c.Budgets.Webhook.Key) != 32 || len(c.Reservation.Keys) != 0 {
		t.Fatalf("%+v, %v", c, err)
	}
	if text := c.Warnings.Error(); !strings.Contains(text, "s3://fleet/ratelimit.yaml:3") || !strings.Contains(text, "is not read") || strings.Contains(text, "hush") {
		t.Errorf("warnings %q", text)
	}
	for refused, says := range map[string]string{
		"{file: webhook.key}": "give the key itself, in base64",
		"hush":                "is no key",
		"{}":                  "needs file",
	} {
		if _, err := inMemory(refused); err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "hush") {
			t.Errorf("key %s: %v", refused, err)
		}
	}
	if _, err := config.ParseBudgets("x", []byte("budgets: {webhooks: {}}")); err == nil {
		t.Error("an unknown key is allowed")
	}
	for _, cut := range []string{"", "\n", "# a comment\n", "limits:\n", "budgets:\n  webhook:\n"} { // files that were cut off
		if _, err := config.ParseBudgets("x", []byte(cut)); err == nil || !strings.Contains(err.Error(), "x: has no domain") {
			t.Errorf("of %q: %v", cut, err)
		}
	}

	dir := t.TempDir()
	for name, text := range map[string]string{
		"ratelimit.yaml": strings.ReplaceAll(onlyBudgets, "%s", "{file: webhook.key}"),
		"rules.yaml":     "domain: d\n",
		"webhook.key":    key,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err = config.LoadBudgets(filepath.Join(dir, "ratelimit.yaml"))
	if err != nil || len(c.Budgets.Webhook.Key) != 32 || strings.Contains(c.Warnings.Error(), "is not read") {
		t.Errorf("of a file: %+v, %v", c, err)
	}
	if _, err := config.LoadBudgets(filepath.Join(dir, "none.yaml")); err == nil || !strings.Contains(err.Error(), "does not exist") {
		t.Errorf("of no file: %v", err)
	}
}
