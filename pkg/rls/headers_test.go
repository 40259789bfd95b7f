package rls_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/rls"
)

// everyHeader turns all groups on.
func everyHeader(c *rls.Config) {
	c.Headers = rls.Headers{RetryAfter: true, XRateLimit: true, IETF: true, OpenAI: rls.OpenAIHeaders{Requests: "rpm", Tokens: "tpm"}}
}

// headerStep is one call of a script, and the response headers of its answer.
type headerStep struct {
	name  string
	after time.Duration
	ask   string
	want  map[string]string
}

func (e *env) runHeaders(t *testing.T, steps []headerStep) {
	t.Helper()
	for _, s := range steps {
		e.clock.advance(s.after)
		answer, err := e.ask(t, s.ask)
		if err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		got := map[string]string{}
		for _, h := range answer.GetResponseHeadersToAdd() {
			if _, twice := got[h.GetKey()]; twice || h.GetKey() != strings.ToLower(h.GetKey()) {
				t.Errorf("%s: the header %s comes twice or is not lower case", s.name, h.GetKey())
			}
			got[h.GetKey()] = h.GetValue()
		}
		if diff := cmp.Diff(s.want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", s.name, diff)
		}
	}
}

// both is a call with a descriptor for requests and one that peeks at tokens.
func both(requests string) string {
	return fmt.Sprintf(`{"domain":"llm","descriptors":[%s,%s]}`,
		descriptorJSON(`"hitsAddend":"`+requests+`"`, "api_key", "a", "model", "m"),
		descriptorJSON(`"hitsAddend":"0"`, "api_key", "a", "model", "m", "meter", "tokens"))
}

// tokensOf is a call after the response: it charges or refunds tokens.
func tokensOf(hits string) string {
	return descriptor1(hits, "api_key", "a", "model", "m", "meter", "tokens")
}

// Requests and tokens side by side. The remaining tokens fall with charges and rise with refunds. A
// denial has the time at which the limit admits the call.
func TestHeadersOfRequestsAndTokens(t *testing.T) {
	newEnv(t, everyHeader).runHeaders(t, []headerStep{
		{name: "admitted", ask: both("1"), want: map[string]string{
			"x-ratelimit-limit": `10, 10;w=60;name="rpm"`, "x-ratelimit-remaining": "9", "x-ratelimit-reset": "6",
			"x-ratelimit-limit-requests": "10", "x-ratelimit-remaining-requests": "9", "x-ratelimit-reset-requests": "6s",
			"x-ratelimit-limit-tokens": "1000", "x-ratelimit-remaining-tokens": "1000", "x-ratelimit-reset-tokens": "0s",
			"ratelimit-policy": `"rpm";q=10;w=60, "tpm";q=1000;w=60`, "ratelimit": `"rpm";r=9;t=6, "tpm";r=1000;t=0`,
		}},
		{name: "a charge", ask: tokensOf(`"hitsAddend":"401"`), want: map[string]string{
			"x-ratelimit-limit": `1000, 1000;w=60;name="tpm"`, "x-ratelimit-remaining": "599", "x-ratelimit-reset": "25",
			"x-ratelimit-limit-tokens": "1000", "x-ratelimit-remaining-tokens": "599", "x-ratelimit-reset-tokens": "25s", // 24.06 s
			"ratelimit-policy": `"tpm";q=1000;w=60`, "ratelimit": `"tpm";r=599;t=25`,
		}},
		{name: "after it", ask: both("0"), want: map[string]string{
			"x-ratelimit-limit": `10, 10;w=60;name="rpm"`, "x-ratelimit-remaining": "9", "x-ratelimit-reset": "6",
			"x-ratelimit-limit-requests": "10", "x-ratelimit-remaining-requests": "9", "x-ratelimit-reset-requests": "6s",
			"x-ratelimit-limit-tokens": "1000", "x-ratelimit-remaining-tokens": "599", "x-ratelimit-reset-tokens": "25s",
			"ratelimit-policy": `"rpm";q=10;w=60, "tpm";q=1000;w=60`, "ratelimit": `"rpm";r=9;t=6, "tpm";r=599;t=25`,
		}},
		{name: "a refund", ask: tokensOf(`"hitsAddend":"396","isNegativeHits":true`), want: map[string]string{
			"x-ratelimit-limit": `1000, 1000;w=60;name="tpm"`, "x-ratelimit-remaining": "995", "x-ratelimit-reset": "1",
			"x-ratelimit-limit-tokens": "1000", "x-ratelimit-remaining-tokens": "995", "x-ratelimit-reset-tokens": "300ms",
			"ratelimit-policy": `"tpm";q=1000;w=60`, "ratelimit": `"tpm";r=995;t=1`,
		}},
		{name: "into debt", ask: tokensOf(`"hitsAddend":"6995"`), want: map[string]string{
			"x-ratelimit-limit": `1000, 1000;w=60;name="tpm"`, "x-ratelimit-remaining": "0", "x-ratelimit-reset": "420",
			"x-ratelimit-limit-tokens": "1000", "x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "7m0s",
			"ratelimit-policy": `"tpm";q=1000;w=60`, "ratelimit": `"tpm";r=0;t=420`,
		}},
		{name: "denied for the debt", ask: both("1"), want: map[string]string{
			"retry-after":       "361", // 6,001 tokens
			"x-ratelimit-limit": `1000, 1000;w=60;name="tpm"`, "x-ratelimit-remaining": "0", "x-ratelimit-reset": "361",
			"x-ratelimit-limit-requests": "10", "x-ratelimit-remaining-requests": "9", "x-ratelimit-reset-requests": "6s",
			"x-ratelimit-limit-tokens": "1000", "x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "6m1s",
			"ratelimit-policy": `"rpm";q=10;w=60, "tpm";q=1000;w=60`, "ratelimit": `"rpm";r=9;t=6, "tpm";r=0;t=361`,
		}},
		{name: "a client that waited is admitted", after: 6*time.Minute + time.Second, ask: both("10"), want: map[string]string{
			"x-ratelimit-limit": `10, 10;w=60;name="rpm"`, "x-ratelimit-remaining": "0", "x-ratelimit-reset": "60",
			"x-ratelimit-limit-requests": "10", "x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "1m0s",
			"x-ratelimit-limit-tokens": "1000", "x-ratelimit-remaining-tokens": "16", "x-ratelimit-reset-tokens": "59s",
			"ratelimit-policy": `"rpm";q=10;w=60, "tpm";q=1000;w=60`, "ratelimit": `"rpm";r=0;t=60, "tpm";r=16;t=59`,
		}},
		{name: "denied, and never to pass", ask: both("11"), want: map[string]string{
			"x-ratelimit-limit": `10, 10;w=60;name="rpm"`, "x-ratelimit-remaining": "0",
			"x-ratelimit-limit-requests": "10", "x-ratelimit-remaining-requests": "0",
			"x-ratelimit-limit-tokens": "1000", "x-ratelimit-remaining-tokens": "16", "x-ratelimit-reset-tokens": "59s",
			"ratelimit-policy": `"rpm";q=10;w=60, "tpm";q=1000;w=60`, "ratelimit": `"rpm";r=0, "tpm";r=16;t=59`,
		}},
	})
}

// Reserved tokens are missing from the next remaining ones at once, and settled ones are back in
// the next answer.
func TestHeadersOfReservations(t *testing.T) {
	e := replicas(t, 1)[0]
	e.service.Reload(compile(t, reserving(t)), &rls.Options{
		Headers: rls.Headers{OpenAI: rls.OpenAIHeaders{Requests: "rpm", Tokens: "tpm"}},
		Keyring: keyring(t, key(1)), Lifetime: 10 * time.Minute,
	})
	look := descriptor1(addend(0), "key", "k")
	step := func(name, left, reset string) headerStep {
		return headerStep{name: name, ask: look, want: map[string]string{
			"x-ratelimit-limit-requests": "5000", "x-ratelimit-remaining-requests": "4999", "x-ratelimit-reset-requests": "18s",
			"x-ratelimit-limit-tokens": "1000", "x-ratelimit-remaining-tokens": left, "x-ratelimit-reset-tokens": reset,
		}}
	}
	id := e.reserve(t, 600, "key", "k")
	e.runHeaders(t, []headerStep{step("reserved", "400", "14h24m0s")})
	if got := e.settle(t, "llm", addend(250), id); got != "settled" {
		t.Errorf("the settlement: got %q", got)
	}
	e.runHeaders(t, []headerStep{step("settled", "750", "6h0m0s")})
}

func TestHeadersOfLevelsAndLimits(t *testing.T) {
	e := newEnv(t, func(c *rls.Config) {
		c.Headers = rls.Headers{RetryAfter: true, IETF: true, OpenAI: rls.OpenAIHeaders{Requests: "rpm", Tokens: "rph"}}
	})
	child := descriptor1(``, "child", "c", "org", "small")
	e.runHeaders(t, []headerStep{
		{name: "the parent has less", ask: child, want: map[string]string{
			"x-ratelimit-limit-requests": "2", "x-ratelimit-remaining-requests": "1", "x-ratelimit-reset-requests": "30s",
			"ratelimit-policy": `"rpm";q=2;w=60`, "ratelimit": `"rpm";r=1;t=30`,
		}},
		{name: "takes the rest", ask: child, want: map[string]string{
			"x-ratelimit-limit-requests": "2", "x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "1m0s",
			"ratelimit-policy": `"rpm";q=2;w=60`, "ratelimit": `"rpm";r=0;t=60`,
		}},
		{name: "the parent denies", after: 29988 * time.Millisecond, ask: child, want: map[string]string{
			"retry-after":                "1",
			"x-ratelimit-limit-requests": "2", "x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "12ms",
			"ratelimit-policy": `"rpm";q=2;w=60`, "ratelimit": `"rpm";r=0;t=1`,
		}},
		{name: "two limits of a bucket", ask: descriptor1(`"hitsAddend":"4"`, "two", "a"), want: map[string]string{
			"x-ratelimit-limit-tokens": "8", "x-ratelimit-remaining-tokens": "4", "x-ratelimit-reset-tokens": "30m0s",
			"ratelimit-policy": `"rps";q=5;w=1, "rph";q=8;w=3600`, "ratelimit": `"rps";r=1;t=1, "rph";r=4;t=1800`,
		}},
	})
}

// An answer has no headers of a limit that the call does not consume.
func TestHeadersOfNoLimit(t *testing.T) {
	none := map[string]string{}
	e := newEnv(t, func(c *rls.Config) {
		everyHeader(c)
		c.Headers.OpenAI = rls.OpenAIHeaders{Requests: "lower", Tokens: "tpm"} // lower is that of a rule in shadow mode
	})
	trial := func(n string) map[string]string {
		return map[string]string{
			"x-ratelimit-limit": `10, 10;w=60;name="rpm"`, "x-ratelimit-remaining": n, "x-ratelimit-reset": "30",
			"ratelimit-policy": `"rpm";q=10;w=60`, "ratelimit": `"rpm";r=` + n + `;t=30`,
		}
	}
	e.runHeaders(t, []headerStep{
		{name: "no rule", ask: descriptor1(``, "nobody", "knows"), want: none},
		{name: "a rule that is unlimited", ask: descriptor1(``, "tier", "free"), want: none},
		{name: "a limit that is unlimited", ask: descriptor1(``, "exempt", "x"), want: none},
		{name: "a limit that is not configured", ask: descriptor1(``, "ghost", "g"), want: none},
		{name: "a shadow rule that would deny", ask: descriptor1(`"hitsAddend":"5"`, "trial", "a"), want: trial("5")},
	})
	for _, tt := range []struct {
		name   string
		policy limiter.Policy
	}{{"allowed without a decision", limiter.Allow}, {"denied without a decision", limiter.Deny}} {
		e := newEnv(t, func(c *rls.Config) {
			everyHeader(c)
			c.OnUnavailable = tt.policy
			c.Decider = deciderFunc(func(context.Context, time.Time, *limiter.Request, *limiter.Decision) error { return limiter.ErrClosed })
		})
		e.runHeaders(t, []headerStep{{name: tt.name, ask: both("1"), want: none}})
	}
}

// policyField and stateField are the fields of the IETF in the form of this service.
var (
	item        = `"[A-Za-z][A-Za-z0-9_.-]*"`
	policyField = regexp.MustCompile(`^(` + item + `;q=\d+;w=[1-9]\d*(, |$))+$`)
	stateField  = regexp.MustCompile(`^(` + item + `;r=\d+(;t=\d+)?(, |$))+$`)
	numbers     = regexp.MustCompile(`(` + item + `);[qr]=(\d+)`)
)

// TestHeadersProperties checks the promised properties of the headers of every answer, for calls of
// any kind at any time.
func TestHeadersProperties(t *testing.T) {
	e := newEnv(t, func(c *rls.Config) {
		everyHeader(c)
		c.JSON = rls.JSONOptions{Refunds: true, Charges: true}
	})
	handler := e.service.JSONHandler()
	rapid.Check(t, func(t *rapid.T) {
		e.clock.advance(time.Duration(rapid.IntRange(0, 100_000).Draw(t, "ms")) * time.Millisecond)
		hits := func() string {
			n := rapid.IntRange(-3000, 3000).Draw(t, "hits") // below 0 is a refund
			return fmt.Sprintf(`"hitsAddend":"%d","isNegativeHits":%t`, max(n, -n), n < 0)
		}
		body := fmt.Sprintf(`{"domain":"llm","descriptors":[%s,%s,%s]}`, descriptorJSON(hits(), "api_key", "a", "model", "m"),
			descriptorJSON(hits(), "api_key", "a", "model", "m", "meter", "tokens"), descriptorJSON(hits(), "child", "c", "org", "small"))
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/json", strings.NewReader(body)))
		for _, of := range []string{"-requests", "-tokens"} {
			left, limit := number(t, w.Header().Get("x-ratelimit-remaining"+of)), number(t, w.Header().Get("x-ratelimit-limit"+of))
			if left < 0 || left > limit {
				t.Errorf("%s: %d of %d remain", of, left, limit)
			}
			if reset := w.Header().Get("x-ratelimit-reset" + of); reset != "" {
				if d, err := time.ParseDuration(reset); err != nil || d < 0 || d.String() != reset {
					t.Errorf("%s: reset %q is %v, %v", of, reset, d, err)
				}
			}
		}
		policy, state := w.Header().Get("ratelimit-policy"), w.Header().Get("ratelimit")
		if !policyField.MatchString(policy) || !stateField.MatchString(state) {
			t.Fatalf("got %s and %s", policy, state)
		}
		quotas, left := numbers.FindAllStringSubmatch(policy, -1), numbers.FindAllStringSubmatch(state, -1)
		if len(quotas) != 2 || len(left) != 2 {
			t.Fatalf("got %s and %s, want two limits in each", policy, state)
		}
		for i := range quotas {
			if quotas[i][1] != left[i][1] || number(t, left[i][2]) > number(t, quotas[i][2]) {
				t.Errorf("got %s and %s: another order, or more than the quota", policy, state)
			}
		}
	})
}

func number(t *rapid.T, text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%q is no number", text)
	}
	return n
}
