package rls_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/rls"
)

// tokens are the counters of tokens that are not 0.
func tokens(t *testing.T, e *env) map[string]float64 {
	t.Helper()
	all := map[string]float64{}
	for name, value := range series(t, e.registry) {
		if labels, ok := strings.CutPrefix(name, "ratelimit_tokens_total"); ok {
			all[labels] = value
		}
	}
	return all
}

// Each token is counted once, under its kind.
func TestTokens(t *testing.T) {
	e := newEnv(t, nil)
	for _, call := range []string{
		descriptor1(`"hitsAddend":"3"`, "api_key", "a", "model", "m"),
		descriptor1(`"hitsAddend":"8"`, "api_key", "a", "model", "m"),  // of 10 a minute
		descriptor1(`"hitsAddend":"11"`, "api_key", "b", "model", "m"), // above the capacity
		descriptor1(`"hitsAddend":"0"`, "api_key", "a", "model", "m"),  // a peek
		// of two descriptors the second has no limit: neither takes
		fmt.Sprintf(`{"domain":"llm","descriptors":[%s,%s]}`, descriptorJSON(`"hitsAddend":"5"`, "api_key", "c", "model", "m"), descriptorJSON(``, "ghost", "g")),
		descriptor1(`"hitsAddend":"5"`, "api_key", "a", "model", "m", "meter", "tokens"),
		descriptor1(`"hitsAddend":"2","isNegativeHits":true`, "api_key", "a", "model", "m", "meter", "tokens"),
		descriptor1(``, "tier", "free"),
		descriptor1(``, "nobody", "knows"),
	} {
		if _, err := e.ask(t, call); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]float64{
		`{domain="llm",kind="taken",limit="rpm",rule="requests"}`:   3,
		`{domain="llm",kind="denied",limit="rpm",rule="requests"}`:  19,
		`{domain="llm",kind="denied",limit="nowhere",rule="ghost"}`: 1,
		`{domain="llm",kind="charged",limit="tpm",rule="tokens"}`:   5,
		`{domain="llm",kind="refunded",limit="tpm",rule="tokens"}`:  2,
	}
	if diff := cmp.Diff(want, tokens(t, e)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// A quota that is over takes nothing, even if its call is admitted: its tokens count as denied.
func TestTokensOfQuotas(t *testing.T) {
	t.Parallel()
	e := newTree(t, quotaPerHour("small", 2), quotaPerHour("large", 5))
	for range 3 {
		e.wantCode(t, "a quota of 2 an hour beside one of 5", hits("small", "s", noNumber)+","+hits("large", "l", noNumber), isOK)
	}
	want := map[string]float64{
		`{domain="envoy",kind="taken",limit="requests",rule="small"}`:  2,
		`{domain="envoy",kind="denied",limit="requests",rule="small"}`: 1,
		`{domain="envoy",kind="taken",limit="requests",rule="large"}`:  3,
	}
	if diff := cmp.Diff(want, tokens(t, e)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// A reservation takes, and its settlement corrects the amount.
func TestTokensOfSettlements(t *testing.T) {
	e := replicas(t, 1)[0]
	for _, used := range []int{150, 30, 100} {
		id := e.reserve(t, 100, "key", "a", "org", "o")
		for range 2 { // the second changes nothing
			e.settle(t, "llm", addend(used), id)
		}
	}
	want := map[string]float64{
		`{domain="llm",kind="taken",limit="rpm",rule="reserve"}`:   3,
		`{domain="llm",kind="taken",limit="tpm",rule="reserve"}`:   300,
		`{domain="llm",kind="charged",limit="tpm",rule="settle"}`:  50,
		`{domain="llm",kind="refunded",limit="tpm",rule="settle"}`: 70,
	}
	if diff := cmp.Diff(want, tokens(t, e)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// An ancestor that consumes too has a bucket of its own, but its tokens are not counted again.
func TestTokensOfAncestorsAreCountedOnce(t *testing.T) {
	var seen []rls.Observation
	e := newEnv(t, func(c *rls.Config) {
		c.Observe = func(_ time.Time, o rls.Observation) { seen = append(seen, o) }
	})
	own := limits(t, limiter.PerMinute("rpm", 2))
	e.service.Reload(compile(t, []descriptor.DomainSpec{{Domain: "d", Rules: []descriptor.RuleSpec{{
		Name: "r", Match: match("k", "*"),
		Takes: []descriptor.TakeSpec{{Entity: "key/{k}", Parents: []string{"org"}, Resource: "api", Limits: own, Consume: []descriptor.ConsumeSpec{{Limit: "rpm", PerHit: limiter.Milli}}}},
	}}}}), nil)
	for range 3 {
		if _, err := e.ask(t, `{"domain":"d","descriptors":[{"entries":[{"key":"k","value":"v"}]}]}`); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]float64{`{domain="d",kind="taken",limit="rpm",rule="r"}`: 2, `{domain="d",kind="denied",limit="rpm",rule="r"}`: 1}
	if diff := cmp.Diff(want, tokens(t, e)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	key := rls.Observation{Namespace: "default", Entity: "key/v", Resource: "api", Limit: "rpm", Amount: 1000}
	org := key
	org.Entity = "org"
	denied := key // the ancestor has limits of its own
	denied.Denied = true
	if diff := cmp.Diff([]rls.Observation{key, org, key, org, denied}, seen); diff != "" {
		t.Errorf("observations (-want +got)\n%s", diff)
	}
}

// Series of configured rules exist before their first event. A reload adds those of new rules,
// removes those of removed rules, and keeps the counters of the others.
func TestSeriesFollowTheConfiguration(t *testing.T) {
	e := newEnv(t, nil)
	rule := func(name, key string, limits ...string) descriptor.RuleSpec {
		return descriptor.RuleSpec{Name: name, Match: match(key, "*"), Takes: takes("key/{"+key+"}", "api", nil, limits...)}
	}
	use := func(domain string, rules ...descriptor.RuleSpec) {
		e.service.Reload(compile(t, []descriptor.DomainSpec{{Domain: domain, Rules: rules}}), nil)
	}
	ask := func() {
		if _, err := e.ask(t, `{"domain":"d","descriptors":[{"entries":[{"key":"k","value":"v"}]}]}`); err != nil {
			t.Fatal(err)
		}
	}
	has := func(name string, want float64, there bool) {
		t.Helper()
		if got, ok := allSeries(t, e.registry)[name]; got != want || ok != there {
			t.Errorf("%s: got %v, %t; want %v, %t", name, got, ok, want, there)
		}
	}
	use("d", rule("one", "k", "rpm"))
	for _, name := range []string{
		`ratelimit_decisions_total{domain="d",result="allowed",rule="one"}`, `ratelimit_decisions_total{domain="d",result="denied",rule="one"}`,
		`ratelimit_denials_total{domain="d",limit="rpm",reason="limit_exhausted",rule="one"}`,
		`ratelimit_tokens_total{domain="d",kind="taken",limit="rpm",rule="one"}`, `ratelimit_tokens_total{domain="d",kind="refunded",limit="rpm",rule="one"}`,
		`ratelimit_decisions_total{domain="d",result="unmatched",rule=""}`,
		`ratelimit_highest_utilization_ratio{domain="d",limit="rpm",rule="one"}`,
	} {
		has(name, 0, true)
	}
	ask()
	use("d", rule("one", "k", "rpm", "rph"), rule("two", "l", "rpm"))
	has(`ratelimit_tokens_total{domain="d",kind="taken",limit="rpm",rule="one"}`, 1, true)
	has(`ratelimit_tokens_total{domain="d",kind="taken",limit="rph",rule="one"}`, 0, true)
	has(`ratelimit_tokens_total{domain="d",kind="taken",limit="rpm",rule="two"}`, 0, true)
	before := e.service.Decided()["allowed"]
	use("d", rule("two", "l", "rpm"))
	for name := range allSeries(t, e.registry) {
		if strings.Contains(name, `"one"`) || strings.Contains(name, `"rph"`) {
			t.Errorf("%s is left", name)
		}
	}
	use("other")
	if after := e.service.Decided(); before != 1 || after["allowed"] != 1 {
		t.Errorf("decided: got %v before and %v after, want 1 allowed", before, after)
	}
	for name := range allSeries(t, e.registry) {
		if strings.Contains(name, `domain="d"`) {
			t.Errorf("%s is left", name)
		}
	}
}

func TestUtilization(t *testing.T) {
	e := newEnv(t, nil)
	gauge := func(want float64) {
		t.Helper()
		families, err := e.registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				if f.GetName() == "ratelimit_highest_utilization_ratio" && m.GetLabel()[2].GetValue() == "requests" && m.GetLabel()[0].GetValue() == "llm" {
					if got := m.GetGauge().GetValue(); got != want {
						t.Errorf("got %v, want %v", got, want)
					}
					return
				}
			}
		}
		t.Error("no gauge")
	}
	ask := func(key, hits string) {
		t.Helper()
		if _, err := e.ask(t, descriptor1(`"hitsAddend":"`+hits+`"`, "api_key", key, "model", "m")); err != nil {
			t.Fatal(err)
		}
	}
	gauge(0)
	ask("a", "7") // of 10
	ask("b", "2")
	gauge(0.7)
	e.clock.advance(30 * time.Second)
	gauge(0.7)
	ask("b", "1")
	e.clock.advance(30 * time.Second)
	gauge(0.1)
	e.clock.advance(time.Minute)
	gauge(0)
}

// Denials are counted by reason, also those of rules that are gone.
func TestDenialsByReason(t *testing.T) {
	e := newEnv(t, nil)
	blocked := descriptor.DomainSpec{Domain: "d", Rules: []descriptor.RuleSpec{{Name: "blocked", Match: match("k", "*"), Deny: &descriptor.Denial{}}}}
	open := descriptor.DomainSpec{Domain: "open", Rules: []descriptor.RuleSpec{{Name: "open", Match: match("k", "*"), Unlimited: true}}}
	for i, domains := range [][]descriptor.DomainSpec{{blocked, open}, {open}} {
		e.service.Reload(compile(t, domains), nil)
		for _, domain := range []string{"d", "open"} {
			if _, err := e.ask(t, `{"domain":"`+domain+`","descriptors":[{"entries":[{"key":"k","value":"v"}]}]}`); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(map[string]int64{descriptor.DeniedByRule: 1}, e.service.DeniedBy()); diff != "" {
			t.Errorf("configuration %d (-want +got)\n%s", i, diff)
		}
	}
}
