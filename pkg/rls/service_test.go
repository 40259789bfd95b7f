package rls_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/rls"
)

// descriptor1 is a call of the domain llm with one descriptor. It has entries as keys and values in
// turn, and further fields in JSON.
func descriptor1(more string, pairs ...string) string {
	return fmt.Sprintf(`{"domain":"llm","descriptors":[%s]}`, descriptorJSON(more, pairs...))
}

func descriptorJSON(more string, pairs ...string) string {
	var entries []string
	for i := 0; i < len(pairs); i += 2 {
		entries = append(entries, fmt.Sprintf(`{"key":%q,"value":%q}`, pairs[i], pairs[i+1]))
	}
	if more != "" {
		more = "," + more
	}
	return fmt.Sprintf(`{"entries":[%s]%s}`, strings.Join(entries, ","), more)
}

// ok is the answer OK with one status: a limit a minute, the remaining tokens, and the time until
// it is full.
func ok(name string, rate, remaining int, reset string) string {
	return fmt.Sprintf(`{"overallCode":"OK","statuses":[{"code":"OK","currentLimit":{"name":%q,"requestsPerUnit":%d,"unit":"MINUTE"},"limitRemaining":%d,"durationUntilReset":%q}]}`,
		name, rate, remaining, reset)
}

func TestTake(t *testing.T) {
	ask := func(hits int) string {
		return descriptor1(fmt.Sprintf(`"hitsAddend":"%d"`, hits), "api_key", "a", "model", "m")
	}
	denied := func(remaining int, wait string, seconds int) string {
		return fmt.Sprintf(`{"overallCode":"OVER_LIMIT",
			"statuses":[{"code":"OVER_LIMIT","currentLimit":{"name":"rpm","requestsPerUnit":10,"unit":"MINUTE"},"limitRemaining":%d,"durationUntilReset":%q}],
			"responseHeadersToAdd":[{"key":"retry-after","value":"%d"}],
			"dynamicMetadata":{"reason":"limit_exhausted","domain":"llm","rule":"requests","entity":"key/a","level":0,"resource":"m",
				"limit":"rpm","source":"rule","remaining":%d,"retry_after":%d}}`, remaining, wait, seconds, remaining, seconds)
	}
	newEnv(t, nil).run(t, []step{
		{ask: ask(4), want: ok("rpm", 10, 6, "24s")},
		{ask: ask(6), want: ok("rpm", 10, 0, "60s")},
		{ask: ask(1), want: denied(0, "6s", 6)},
		{after: 5001 * time.Millisecond, ask: ask(1), want: denied(0, "1s", 1)}, // 999 ms, rounded up
		{after: 999 * time.Millisecond, ask: ask(1), want: ok("rpm", 10, 0, "60s")},
		{ask: ask(10), want: denied(0, "60s", 60)},
		{ask: ask(11), want: `{"overallCode":"OVER_LIMIT",
			"statuses":[{"code":"OVER_LIMIT","currentLimit":{"name":"rpm","requestsPerUnit":10,"unit":"MINUTE"}}],
			"dynamicMetadata":{"reason":"exceeds_capacity","domain":"llm","rule":"requests","entity":"key/a","level":0,"resource":"m",
				"limit":"rpm","source":"rule","remaining":0}}`},
	})
}

func TestHits(t *testing.T) {
	both := func(top string, more ...string) string {
		return fmt.Sprintf(`{"domain":"llm","hitsAddend":%s,"descriptors":[%s,%s]}`, top,
			descriptorJSON(more[0], "api_key", "a", "model", "m"), descriptorJSON(more[1], "api_key", "b", "model", "m"))
	}
	want := func(a, b int) string {
		const status = `{"code":"OK","currentLimit":{"name":"rpm","requestsPerUnit":10,"unit":"MINUTE"},"limitRemaining":%d,"durationUntilReset":"%ds"}`
		return fmt.Sprintf(`{"overallCode":"OK","statuses":[%s,%s]}`, fmt.Sprintf(status, a, 60-6*a), fmt.Sprintf(status, b, 60-6*b))
	}
	newEnv(t, nil).run(t, []step{
		{ask: both("0", ``, ``), want: want(9, 9)},
		{ask: both("3", ``, `"hitsAddend":"2"`), want: want(6, 7)},
		{ask: both("3", `"hitsAddend":"0"`, `"hitsAddend":"1"`), want: want(6, 6)}, // a peek takes nothing
		{ask: both("3", `"hits_addend":"1","is_negative_hits":true`, `"isNegativeHits":true`), want: want(7, 9)},
		{ask: both("0", `"hitsAddend":"50","isNegativeHits":true`, `"hitsAddend":"0"`), want: want(10, 9)}, // to the capacity and no further
	})
}

func TestLookWhenEmpty(t *testing.T) {
	e := newEnv(t, nil)
	if _, err := e.ask(t, descriptor1(`"hitsAddend":"10"`, "api_key", "a", "model", "m")); err != nil {
		t.Fatal(err)
	}
	got, err := e.ask(t, descriptor1(`"hitsAddend":"0"`, "api_key", "a", "model", "m"))
	if err != nil {
		t.Fatal(err)
	}
	if s := got.GetStatuses()[0]; got.GetOverallCode() != 2 || s.GetDurationUntilReset().GetSeconds() != 6 {
		t.Errorf("a look at an empty bucket got %v, want OVER_LIMIT for 6 s", got)
	}
}

func TestCharge(t *testing.T) {
	ask := func(hits string) string {
		return descriptor1(`"hitsAddend":"`+hits+`"`, "api_key", "a", "model", "m", "meter", "tokens")
	}
	newEnv(t, nil).run(t, []step{
		{ask: ask("400"), want: ok("tpm", 1000, 600, "24s")},
		{ask: ask("1600"), want: ok("tpm", 1000, 0, "120s")}, // into debt of 1000, and not denied
		{ask: ask("0"), want: `{"overallCode":"OVER_LIMIT",
			"statuses":[{"code":"OVER_LIMIT","currentLimit":{"name":"tpm","requestsPerUnit":1000,"unit":"MINUTE"},"durationUntilReset":"61s"}],
			"responseHeadersToAdd":[{"key":"retry-after","value":"61"}],
			"dynamicMetadata":{"reason":"limit_exhausted","domain":"llm","rule":"tokens","entity":"key/a","level":0,"resource":"m",
				"limit":"tpm","source":"rule","remaining":0,"retry_after":61}}`},
	})
}

func TestRefundAndChargeInOneCall(t *testing.T) {
	settle := fmt.Sprintf(`{"domain":"llm","descriptors":[%s,%s]}`,
		descriptorJSON(`"hitsAddend":"500","isNegativeHits":true`, "api_key", "a", "model", "m", "meter", "tokens"),
		descriptorJSON(`"hitsAddend":"300"`, "api_key", "a", "model", "m", "meter", "tokens"))
	const status = `{"code":"OK","currentLimit":{"name":"tpm","requestsPerUnit":1000,"unit":"MINUTE"},"limitRemaining":700,"durationUntilReset":"18s"}`
	newEnv(t, nil).run(t, []step{
		{ask: descriptor1(`"hitsAddend":"500"`, "api_key", "a", "model", "m", "meter", "tokens"), want: ok("tpm", 1000, 500, "30s")},
		{ask: settle, want: `{"overallCode":"OK","statuses":[` + status + `,` + status + `]}`},
	})
}

func TestAllOrNothing(t *testing.T) {
	call := func(a, b, c string) string {
		return fmt.Sprintf(`{"domain":"llm","descriptors":[%s,%s,%s]}`,
			descriptorJSON(`"hitsAddend":"`+a+`"`, "api_key", "a", "model", "m"),
			descriptorJSON(`"hitsAddend":"`+b+`"`, "api_key", "b", "model", "m"),
			descriptorJSON(`"hitsAddend":"`+c+`"`, "api_key", "c", "model", "m", "meter", "tokens"))
	}
	e := newEnv(t, nil)
	e.run(t, []step{
		{ask: call("1", "10", "100"), want: `{"overallCode":"OK","statuses":[
			{"code":"OK","currentLimit":{"name":"rpm","requestsPerUnit":10,"unit":"MINUTE"},"limitRemaining":9,"durationUntilReset":"6s"},
			{"code":"OK","currentLimit":{"name":"rpm","requestsPerUnit":10,"unit":"MINUTE"},"durationUntilReset":"60s"},
			{"code":"OK","currentLimit":{"name":"tpm","requestsPerUnit":1000,"unit":"MINUTE"},"limitRemaining":900,"durationUntilReset":"6s"}]}`},
		// b denies: a keeps its 9 tokens, and the charge of c is booked all the same
		{ask: call("5", "2", "100"), want: `{"overallCode":"OVER_LIMIT","statuses":[
			{"code":"OK","currentLimit":{"name":"rpm","requestsPerUnit":10,"unit":"MINUTE"},"limitRemaining":9,"durationUntilReset":"6s"},
			{"code":"OVER_LIMIT","currentLimit":{"name":"rpm","requestsPerUnit":10,"unit":"MINUTE"},"durationUntilReset":"12s"},
			{"code":"OK","currentLimit":{"name":"tpm","requestsPerUnit":1000,"unit":"MINUTE"},"limitRemaining":800,"durationUntilReset":"12s"}],
			"responseHeadersToAdd":[{"key":"retry-after","value":"12"}],
			"dynamicMetadata":{"reason":"limit_exhausted","domain":"llm","rule":"requests","entity":"key/b","level":0,"resource":"m",
				"limit":"rpm","source":"rule","remaining":0,"retry_after":12}}`},
	})
}

func TestTightestLimitSpeaks(t *testing.T) {
	e := newEnv(t, func(c *rls.Config) { c.Headers.XRateLimit = true })
	ask := descriptor1(`"hitsAddend":"4"`, "two", "a")
	const headers = `{"key":"x-ratelimit-limit","value":"%d, %d;w=%d;name=\"%s\""},{"key":"x-ratelimit-remaining","value":"%d"},{"key":"x-ratelimit-reset","value":"%d"}`
	e.run(t, []step{
		{ask: ask, want: `{"overallCode":"OK","statuses":[{"code":"OK","currentLimit":{"name":"rps","requestsPerUnit":5,"unit":"SECOND"},"limitRemaining":1,"durationUntilReset":"1s"}],
			"responseHeadersToAdd":[` + fmt.Sprintf(headers, 5, 5, 1, "rps", 1, 1) + `]}`},
		{after: time.Second, ask: ask, want: `{"overallCode":"OK","statuses":[{"code":"OK","currentLimit":{"name":"rph","requestsPerUnit":8,"unit":"HOUR"},"durationUntilReset":"3599s"}],
			"responseHeadersToAdd":[` + fmt.Sprintf(headers, 8, 8, 3600, "rph", 0, 3599) + `]}`},
		// both deny; the longer wait counts
		{ask: ask, want: `{"overallCode":"OVER_LIMIT","statuses":[{"code":"OVER_LIMIT","currentLimit":{"name":"rph","requestsPerUnit":8,"unit":"HOUR"},"durationUntilReset":"1799s"}],
			"responseHeadersToAdd":[{"key":"retry-after","value":"1799"},` + fmt.Sprintf(headers, 8, 8, 3600, "rph", 0, 1799) + `],
			"dynamicMetadata":{"reason":"limit_exhausted","domain":"llm","rule":"two","entity":"a","level":0,"resource":"api",
				"limit":"rph","source":"rule","remaining":0,"retry_after":1799}}`},
	})
}

func TestOverride(t *testing.T) {
	ask := func(limit string) string { return descriptor1(`"limit":`+limit, "api_key", "a", "model", "m") }
	newEnv(t, func(c *rls.Config) { c.Headers.XRateLimit = true }).run(t, []step{
		{
			ask: ask(`{"requestsPerUnit":6,"unit":"MINUTE","unitMultiplier":10}`),
			want: `{"overallCode":"OK","statuses":[{"code":"OK","currentLimit":{"name":"rpm","requestsPerUnit":6,"unit":"MINUTE","unitMultiplier":10},"limitRemaining":5,"durationUntilReset":"100s"}],
				"responseHeadersToAdd":[{"key":"x-ratelimit-limit","value":"6, 6;w=600;name=\"rpm\""},{"key":"x-ratelimit-remaining","value":"5"},{"key":"x-ratelimit-reset","value":"100"}]}`,
		},
		{
			ask: ask(`{"requestsPerUnit":4000000000,"unit":"DAY"}`),
			want: `{"overallCode":"OK","statuses":[{"code":"OK","currentLimit":{"name":"rpm","requestsPerUnit":4000000000,"unit":"DAY"},"limitRemaining":3999999999,"durationUntilReset":"1s"}],
				"responseHeadersToAdd":[{"key":"x-ratelimit-limit","value":"4000000000, 4000000000;w=86400;name=\"rpm\""},{"key":"x-ratelimit-remaining","value":"3999999999"},{"key":"x-ratelimit-reset","value":"1"}]}`,
		},
		{
			ask:  ask(`{"requestsPerUnit":0,"unit":"SECOND"}`),
			want: `{"overallCode":"OVER_LIMIT","statuses":[{"code":"OVER_LIMIT"}],"dynamicMetadata":{"reason":"exceeds_capacity","domain":"llm","rule":"requests"}}`,
		},
	})
}

func TestOutcomesWithoutLimits(t *testing.T) {
	okBare := `{"overallCode":"OK","statuses":[{"code":"OK"}]}`
	okUnlimited := `{"overallCode":"OK","statuses":[{"code":"OK","limitRemaining":4294967295}]}`
	steps := []step{
		{ask: descriptor1(``, "nobody", "knows"), want: okBare},
		{ask: descriptor1(``, "tier", "free"), want: okUnlimited},
		{ask: descriptor1(``, "exempt", "x"), want: okUnlimited},
		{ask: descriptor1(``, "ghost", "g"), want: `{"overallCode":"OVER_LIMIT","statuses":[{"code":"OVER_LIMIT"}],
			"dynamicMetadata":{"reason":"limit_not_configured","domain":"llm","rule":"ghost","entity":"g","resource":"api","limit":"nowhere"}}`},
		{ask: descriptor1(``, "plan", "none"), want: `{"overallCode":"OVER_LIMIT","statuses":[{"code":"OVER_LIMIT"}],
			"dynamicMetadata":{"reason":"limit_not_configured","domain":"llm","rule":"planned"}}`},
		{ask: `{"domain":"closed","descriptors":[{"entries":[{"key":"other"}]}]}`, want: `{"overallCode":"OVER_LIMIT","statuses":[{"code":"OVER_LIMIT"}],
			"dynamicMetadata":{"reason":"unmatched","domain":"closed"}}`},
		{ask: descriptor1(``), want: okBare}, // a descriptor without entries
	}
	unknown := `{"domain":"no\u0007where","descriptors":[{"entries":[{"key":"k"}]}]}`
	open := newEnv(t, nil)
	open.run(t, append(steps, step{ask: unknown, want: okBare}))
	closed := newEnv(t, func(c *rls.Config) { c.UnmatchedDeny = true })
	closed.run(t, append(steps, step{ask: unknown, want: `{"overallCode":"OVER_LIMIT","statuses":[{"code":"OVER_LIMIT"}],
		"dynamicMetadata":{"reason":"unmatched","domain":"no\\x07where"}}`}))
}

// A call that can never be admitted takes nothing, and its charges and refunds are booked.
func TestNeverAdmittedStillCharges(t *testing.T) {
	call := fmt.Sprintf(`{"domain":"llm","descriptors":[%s,%s,%s]}`,
		descriptorJSON(`"hitsAddend":"3"`, "api_key", "a", "model", "m"),
		descriptorJSON(``, "plan", "none"),
		descriptorJSON(`"hitsAddend":"100"`, "api_key", "a", "model", "m", "meter", "tokens"))
	newEnv(t, nil).run(t, []step{
		{ask: call, want: `{"overallCode":"OVER_LIMIT","statuses":[{"code":"OK"},{"code":"OVER_LIMIT"},{"code":"OK"}],
			"dynamicMetadata":{"reason":"limit_not_configured","domain":"llm","rule":"planned"}}`},
		{ask: descriptor1(`"hitsAddend":"0"`, "api_key", "a", "model", "m"), want: ok("rpm", 10, 10, "0s")},
		{ask: descriptor1(`"hitsAddend":"0"`, "api_key", "a", "model", "m", "meter", "tokens"), want: ok("tpm", 1000, 900, "6s")},
	})
}

func TestParentDenies(t *testing.T) {
	ask := descriptor1(``, "child", "c", "org", "small")
	newEnv(t, nil).run(t, []step{
		{ask: ask, want: ok("rpm", 2, 1, "30s")},
		{ask: ask, want: ok("rpm", 2, 0, "60s")},
		{ask: ask, want: `{"overallCode":"OVER_LIMIT","statuses":[{"code":"OVER_LIMIT","currentLimit":{"name":"rpm","requestsPerUnit":2,"unit":"MINUTE"},"durationUntilReset":"30s"}],
			"responseHeadersToAdd":[{"key":"retry-after","value":"30"}],
			"dynamicMetadata":{"reason":"limit_exhausted","domain":"llm","rule":"child","entity":"org/small","level":1,"resource":"api",
				"limit":"rpm","source":"entity default (file)","remaining":0,"retry_after":30}}`},
	})
}

func TestShadow(t *testing.T) {
	ask := descriptor1(``, "trial", "a")
	would := func(remaining int, reset string) string {
		return ok("rpm", 10, remaining, reset)[:len(ok("rpm", 10, remaining, reset))-1] + `,"dynamicMetadata":{"shadow":[{"rule":"trial","descriptor":0,"limit":"lower","would_deny":true}]}}`
	}
	newEnv(t, nil).run(t, []step{
		{ask: ask, want: ok("rpm", 10, 9, "6s")},
		{ask: ask, want: ok("rpm", 10, 8, "12s")},
		{ask: ask, want: would(7, "18s")},
		{after: 30 * time.Second, ask: ask, want: ok("rpm", 10, 9, "6s")},
	})
}

func TestEntries(t *testing.T) {
	e := newEnv(t, nil)
	e.run(t, []step{
		{ask: descriptor1(``, "api_key", "", "model", ""), want: ok("rpm", 10, 9, "6s")},                                            // empty values are values
		{ask: descriptor1(``, "model", "m", "api_key", "a", "api_key", "b"), want: ok("rpm", 10, 9, "6s")},                          // of a repeated key the first that matches
		{ask: descriptor1(``, "api_key", "a", "model", "m"), want: ok("rpm", 10, 8, "12s")},                                         // which is a
		{ask: descriptor1(``, "api_key", "a", "model", "m", "model", "m"), want: ok("rpm", 10, 7, "18s")},                           // the same entry twice
		{ask: descriptor1(``, "api_key", "a", "model", "m", "other", "o"), want: `{"overallCode":"OK","statuses":[{"code":"OK"}]}`}, // another key: another rule
	})
}

// Limits that a rule chooses by plan, or has itself, or of an envoyproxy/ratelimit file, can change
// for existing buckets. The tokens used and the debt stay.
func TestChangedLimitsOfRulesKeepBalances(t *testing.T) {
	rules := func(tokens int64) *descriptor.Rules {
		planned, named := takes("p/{plan}", "r", nil, "rpm"), takes("n/{named}", "r", nil, "rpm")
		planned[0].Plan, named[0].Plan = "{plan}", "basic"
		both := append(takes("b/{both}", "r", limits(t, limiter.PerMinute("rpm", tokens)), "rpm"),
			takes("b/{both}", "r", limits(t, limiter.PerMinute("rpm", 100*tokens)), "rpm")...)
		compiled, problems := descriptor.Compile([]descriptor.DomainSpec{
			{Domain: "llm", Rules: []descriptor.RuleSpec{
				{Name: "planned", Overdraw: true, Match: match("plan", "*"), Takes: planned},
				{Name: "named", Match: match("named", "*"), Takes: named},
				{Name: "own", Match: match("own", "*"), Takes: takes("o/{own}", "r", limits(t, limiter.PerMinute("rpm", tokens)), "rpm")},
				{Name: "both", Match: match("both", "*"), Takes: both},
			}},
			{Domain: "tree", Tree: []descriptor.TreeSpec{{
				Key: "user", Limit: &descriptor.TreeLimitSpec{Unit: "minute", RequestsPerUnit: uint32(tokens)}, // #nosec G115 -- small
			}}},
		}, map[string]*limiter.Limits{"basic": limits(t, limiter.PerMinute("rpm", tokens))})
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		return compiled
	}
	var l *limiter.Limiter
	e := newEnv(t, func(c *rls.Config) {
		clock := newClock()
		l = newLimiter(t, clock.now)
		c.Decider, c.Now = l, clock.now // time stands still
	})
	e.service.Reload(rules(3), nil)
	asks := []string{
		descriptor1(`"hitsAddend":"3"`, "plan", "basic"), descriptor1(`"hitsAddend":"3"`, "named", "a"),
		descriptor1(`"hitsAddend":"3"`, "own", "a"), descriptor1(`"hitsAddend":"3"`, "both", "a"),
		strings.Replace(descriptor1(`"hitsAddend":"3"`, "user", "a"), `"llm"`, `"tree"`, 1),
	}
	want := func(code rlsv3.RateLimitResponse_Code) {
		t.Helper()
		for _, ask := range asks {
			answer, err := e.ask(t, strings.Replace(ask, `"3"`, `"0"`, 1))
			got := answer.GetOverallCode()
			if strings.Contains(ask, `"tree"`) && answer.GetStatuses()[0].GetLimitRemaining() == 0 {
				got = rlsv3.RateLimitResponse_OVER_LIMIT // it admits a peek until it is in debt
			}
			if err != nil || got != code {
				t.Errorf("look %s: got %v, error %v, want %v", ask, got, err, code)
			}
		}
	}
	want(rlsv3.RateLimitResponse_OK)
	for _, ask := range asks {
		if got, err := e.ask(t, ask); err != nil || got.GetOverallCode() != rlsv3.RateLimitResponse_OK {
			t.Errorf("%s: got %v, error %v", ask, got, err)
		}
	}
	want(rlsv3.RateLimitResponse_OVER_LIMIT)
	for _, change := range []struct {
		tokens int64
		code   rlsv3.RateLimitResponse_Code
	}{{2, rlsv3.RateLimitResponse_OVER_LIMIT}, {3, rlsv3.RateLimitResponse_OVER_LIMIT}, {4, rlsv3.RateLimitResponse_OK}} {
		e.service.Reload(rules(change.tokens), nil)
		if err := l.SetStatic(t.Context(), limiter.Static{}); err != nil {
			t.Fatal(err)
		}
		want(change.code)
	}
}

// Options and rules change together, and balances stay.
func TestReload(t *testing.T) {
	e := newEnv(t, nil)
	ask := descriptor1(``, "api_key", "a", "model", "m")
	e.run(t, []step{{ask: ask, want: ok("rpm", 10, 9, "6s")}})
	e.service.Reload(nil, &rls.Options{UnmatchedDeny: true})
	e.run(t, []step{{ask: ask, want: `{"overallCode":"OVER_LIMIT","statuses":[{"code":"OVER_LIMIT"}],"dynamicMetadata":{"reason":"unmatched","domain":"llm"}}`}})
	e.service.Reload(compile(t, domains(t)), nil)
	e.run(t, []step{{ask: ask, want: ok("rpm", 10, 8, "12s")}})
}

// A call sees the rules from before a reload, or those from after it.
func TestReloadWhileServing(t *testing.T) {
	e := newEnv(t, nil)
	many, one := compile(t, domains(t)), compile(t, domains(t)[1:])
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				e.service.Reload(one, nil)
				e.service.Reload(many, &rls.Options{UnmatchedDeny: true})
			}
		}
	})
	for range 500 {
		got, err := e.ask(t, descriptor1(``, "tier", "free"))
		if err != nil {
			t.Fatal(err)
		}
		if reason := got.GetDynamicMetadata().AsMap()["reason"]; reason != nil && reason != "unmatched" {
			t.Errorf("got %v, want OK or unmatched", got)
		}
	}
	close(stop)
	wg.Wait()
	for name := range series(t, e.registry) {
		if strings.HasPrefix(name, "ratelimit_errors_total") {
			t.Errorf("calls went wrong: %s", name)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	if _, err := rls.New(rls.Config{}); err == nil {
		t.Error("a service without a Decider: got no error")
	}
	e := newEnv(t, nil)
	if _, err := rls.New(rls.Config{Decider: &limiter.Limiter{}, Registerer: e.registry}); err == nil {
		t.Error("metrics registered twice: got no error")
	}
}
