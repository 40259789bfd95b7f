package envoytest_test

import (
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/ratelimit/ratelimit/test/envoytest"
)

// hundred is the usage of most answers: 100 tokens, of which 12 are the question's.
func hundred(header ...string) map[string]string {
	h := map[string]string{"x-prompt-tokens": "12", "x-completion-tokens": "88"}
	for i := 0; i < len(header); i += 2 {
		h[header[i]] = header[i+1]
	}
	return h
}

// usageCase is a question, and the amounts that examples charge for its answer: -1 is
// no call after it.
type usageCase struct {
	name   string
	q      question
	leave  bool // the client goes away in the middle
	code   int  // 0: the answer breaks off, or is a 502 if Envoy still had all of it
	filter int  // read by json_to_metadata and sse_to_metadata
	lua    int  // read by the Lua of llm-stable-filters.yaml
}

// none says that no usage is read.
const none = -1

// usageCases are the possible answers. A stream has 88 events with a token each, then
// one that says stop, one with the usage if that is asked for, and the end: half of
// them are 45.
var usageCases = []usageCase{
	{"json", question{inJSON, hundred()}, false, 200, 100, 100},
	{"json-charset", question{inJSON, hundred("x-content-type", "application/json; charset=utf-8")}, false, 200, 100, 100},
	{"stream", question{streamed, hundred()}, false, 200, 100, 100},
	{"stream-no-charset", question{streamed, hundred("x-content-type", "text/event-stream")}, false, 200, 100, 100},
	{"usage-so-far", question{usageSoFar, hundred()}, false, 200, 100, 100},
	{"stream-without-usage", question{noUsage, hundred()}, false, 200, none, 89},
	{"json-without-usage", question{inJSON, hundred("x-total-tokens", "none")}, false, 200, none, none},
	{"nothing-used", question{inJSON, hundred("x-total-tokens", "0")}, false, 200, 0, 0},
	{"text", question{inJSON, hundred("x-total-tokens", `"many"`)}, false, 200, none, none},
	{"null", question{inJSON, hundred("x-total-tokens", "null")}, false, 200, none, none},
	{"negative", question{inJSON, hundred("x-total-tokens", "-5")}, false, 200, none, none},
	{"too-many", question{inJSON, hundred("x-total-tokens", "1000000001")}, false, 200, none, none},
	{"text-in-stream", question{streamed, hundred("x-total-tokens", `"many"`)}, false, 200, none, 90},
	{"too-many-in-stream", question{streamed, hundred("x-total-tokens", "1000000001")}, false, 200, none, none},
	{"unavailable", question{inJSON, hundred("x-status", "503")}, false, 503, none, none},
	{"times-out", question{inJSON, hundred("x-status", "504")}, false, 504, none, none},
	{"json-breaks", question{inJSON, hundred("x-abort", "yes")}, false, 0, none, none},
	{"stream-breaks", question{streamed, hundred("x-abort", "yes")}, false, 0, none, 45},
	{"usage-so-far-breaks", question{usageSoFar, hundred("x-abort", "yes")}, false, 0, 12 + 45, 12 + 45},
	{"leaves-stream", question{streamed, hundred()}, true, 0, none, 45},
	{"leaves-usage-so-far", question{usageSoFar, hundred()}, true, 0, 12 + 45, 12 + 45},
}

// askAll asks all of the cases, each with a key of its own.
func (g *gateway) askAll(t *testing.T) {
	t.Helper()
	for _, c := range usageCases {
		if c.leave {
			g.leave(t, c.name, question{c.q.body, maps.Clone(c.q.header)}, 2*45)
			continue
		}
		answer := g.ask(t, c.name, c.q)
		if answer.Code != c.code && (c.code != 0 || answer.Code != http.StatusBadGateway) {
			t.Errorf("%s: got %d, want %d", c.name, answer.Code, c.code)
		}
		if c.code == http.StatusOK && strings.Contains(c.q.body, "include_usage") && !strings.HasSuffix(string(answer.Body), "data: [DONE]\n\n") {
			t.Errorf("%s: got %q, want a whole stream", c.name, answer.Body)
		}
	}
}

// chargedAfter checks that an example charges the usage that it reads of each answer,
// once.
func chargedAfter(t *testing.T, g *gateway, used func(usageCase) int) {
	t.Helper()
	g.askAll(t)
	charges, looks := 0, 0
	for _, c := range usageCases {
		n := used(c)
		switch {
		case n > 0:
			charges++
		case n == 0: // a peek
			looks++
		}
	}
	awaitAndStay(t, "each charge came once", func() error {
		for _, c := range usageCases {
			if err := g.wantUsed(c.name, max(used(c), 0)); err != nil {
				return err
			}
		}
		return g.wantCalls(t, len(usageCases)+charges+looks)
	})
	if got := g.counted(t, "ratelimit_charges_total{", `result="booked"`); got != charges {
		t.Errorf("charges that the service booked: got %d, want %d", got, charges)
	}
	wantNothingLost(t, g.envoy, int64(len(usageCases)))
}

// deniedFree checks that a key in debt is denied, and that this costs nothing.
func deniedFree(t *testing.T, g *gateway) {
	t.Helper()
	g.ask(t, "debtor", question{inJSON, hundred("x-total-tokens", "100001")})
	g.awaitTokens(t, "debtor", 100_001)
	for _, body := range []string{inJSON, streamed} {
		if answer := g.ask(t, "debtor", question{body, hundred()}); answer.Code != http.StatusTooManyRequests {
			t.Errorf("in debt: got %d, want 429", answer.Code)
		}
	}
	envoytest.Stays(t, "a denied request is charged nothing", func() error { return g.wantUsed("debtor", 100_001) })
}

func TestLLMChargeAfterExample(t *testing.T) {
	envoytest.Need(t)
	g := startGateway(t, "llm-charge-after.yaml", "llm.ratelimit.yaml")
	g.domain, g.entries = "llm-charge-after", []envoytest.Entry{{Key: "meter", Value: "tokens"}}
	chargedAfter(t, g, func(c usageCase) int { return c.filter })
	deniedFree(t, g)
}

// Requests and tokens are limited together: a denial by one takes nothing of the
// other, and answers show both.
func TestLLMTokensAndRequestsExample(t *testing.T) {
	envoytest.Need(t)
	g := startGateway(t, "llm-tokens-and-requests.yaml", "llm.ratelimit.yaml")
	g.domain, g.entries = "llm-tokens-and-requests", []envoytest.Entry{{Key: "meter", Value: "tokens"}}
	chargedAfter(t, g, func(c usageCase) int { return c.filter })
	deniedFree(t, g)
	if got := g.requestsLeft(t, "debtor"); got != "59" {
		t.Errorf("requests left after one admitted and two denied for want of tokens: got %s, want 59", got)
	}

	for i := range 60 {
		answer := g.ask(t, "busy", question{inJSON, hundred()})
		if answer.Code != http.StatusOK {
			t.Fatalf("request %d of 60: got %d, want 200", i+1, answer.Code)
		}
		if got := number(t, answer, "x-ratelimit-remaining-requests"); got != 59-i {
			t.Errorf("request %d: got x-ratelimit-remaining-requests %d, want %d", i+1, got, 59-i)
		}
		g.awaitTokens(t, "busy", 100*(i+1))
	}
	denied := g.ask(t, "busy", question{inJSON, hundred()})
	if denied.Code != http.StatusTooManyRequests {
		t.Fatalf("request 61: got %d, want 429", denied.Code)
	}
	for header, want := range map[string]int{"x-ratelimit-remaining-requests": 0, "x-ratelimit-remaining-tokens": 94_000, "x-ratelimit-limit-tokens": 100_000} {
		if got := number(t, denied, header); got != want {
			t.Errorf("request 61: got %s %d, want %d", header, got, want)
		}
	}
	envoytest.Stays(t, "a request that is denied uses no tokens", func() error { return g.wantUsed("busy", 6_000) })
}

// requestsLeft returns how many requests a key has left.
func (g *gateway) requestsLeft(t *testing.T, key string) string {
	t.Helper()
	left, err := g.service.Available(g.domain, "rpm", envoytest.Entry{Key: "api_key", Value: key}, envoytest.Entry{Key: "meter", Value: "requests"})
	if err != nil {
		t.Fatal(err)
	}
	return left
}

func TestLLMStableFiltersExample(t *testing.T) {
	envoytest.Need(t)
	g := startGateway(t, "llm-stable-filters.yaml", "llm.ratelimit.yaml")
	g.domain, g.entries = "llm-charge-after", []envoytest.Entry{{Key: "meter", Value: "tokens"}}
	chargedAfter(t, g, func(c usageCase) int { return c.lua })
	deniedFree(t, g)
}
