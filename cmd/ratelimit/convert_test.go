package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/ratelimit/ratelimit/internal/command"
	"github.com/ratelimit/ratelimit/test/kit/programtest"
)

// Each limit of another service is shown with what it becomes.
func TestConvert(t *testing.T) {
	envoy := programtest.WriteFile(t, "a.conf", `
domain: shop
descriptors:
- key: user
  rate_limit: {unit: minute, requests_per_unit: 5, name: n}
  descriptors:
  - {key: plan, value: free, shadow_mode: true, detailed_metric: true, rate_limit: {unit: day, requests_per_unit: 1000000000}}
- {key: banned, rate_limit: {unit: second, requests_per_unit: 0}}
- {key: path, value: "a*", share_threshold: true, quota_mode: true, rate_limit: {unit: hour, requests_per_unit: 10, replaces: [{name: n}]}}
- {key: free, rate_limit: {unlimited: true, name: all}}
`)
	limits := programtest.WriteFile(t, "limits.yaml", operatorLimits)
	code, stdout, stderr := output(t, "convert", envoy, limits)
	if code != command.ExitOK {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	want := `DOMAIN    LIMIT             THERE              HERE                             FIRST WINDOW         NOTES
shop      user              5 in 1m            5, and one more every 12s        at most 10
shop      user > plan_free  1_000_000_000 in 24h  1_000_000_000, and 11_574 more a second  at most 2_000_000_000  shadow: denies nothing, and adds nothing to usage
shop      banned            0 in 1s            denies everything                -
shop      path_a*           10 in 1h           10, and one more every 6m        at most 20           quota: denies only with all other quotas of the call; all values of a pattern share it; in place of n
shop      free              unlimited          admits all                       -
llm/chat  per-user          2 in 1h            2, and one more every 30m        at most 4            one for each descriptors[0]["auth.identity.userid"]; if descriptors[0]["limit.chat__1a2b"] == "1"
`
	words := func(text string) string { return strings.Join(strings.Fields(text), " ") }
	if words(stdout) != words(want) {
		t.Errorf("got\n%s\nwant\n%s", stdout, want)
	}
	if !strings.Contains(stderr, "detailed_metric: has no effect") {
		t.Errorf("the key without an effect is not named: %s", stderr)
	}
	code, stdout, _ = output(t, "convert", limits, "-o", "json")
	var all []map[string]any
	if err := json.Unmarshal([]byte(stdout), &all); err != nil || code != command.ExitOK || len(all) != 1 || all[0]["first_window"] != 4.0 {
		t.Errorf("exit code %d, %v: %s", code, err, stdout)
	}
	if code, _, stderr = output(t, "convert", programtest.WriteFile(t, "bad.yaml", "domain: a\ndescriptors: [{key: ''}]\n")); code != command.ExitUsage || !strings.Contains(stderr, "bad.yaml:2") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}
