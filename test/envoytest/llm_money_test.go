package envoytest_test

import (
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"testing"

	"github.com/ratelimit/ratelimit/test/envoytest"
)

// startMoney starts the gateway of examples/llm, with budgets that refill nothing
// while a test runs.
func startMoney(t *testing.T) *gateway {
	t.Helper()
	return startGatewayWith(t, example(t, "../llm/envoy.yaml"), envoytest.StartService(t, moneyRules(t), "", ""))
}

// moneyRules returns the rules of examples/llm, whose buckets hold as much and refill nothing.
func moneyRules(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(example(t, "../llm/ratelimit.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return writeRules(t, regexp.MustCompile(`rate: [\d_]+/\w+`).ReplaceAllString(string(text), "rate: 1/8784h"))
}

// budget is the capacity of a key's budget in examples/llm, in thousandths of a
// micro-dollar.
const budget = 10_000_000_000

// awaitSpent waits until a key has spent that many thousandths of a micro-dollar.
func (g *gateway) awaitSpent(t *testing.T, key string, spent int64) {
	t.Helper()
	want := strconv.FormatInt((budget-spent)/1000, 10)
	if rest := (budget - spent) % 1000; rest > 0 {
		want = fmt.Sprintf("%s.%03d", want, rest)
	}
	envoytest.Await(t, "the budget of "+key, func() error {
		got, err := g.service.Available("llm-gateway", "budget/usd", envoytest.Entry{Key: "api_key", Value: key},
			envoytest.Entry{Key: "model", Value: "large-1"}, envoytest.Entry{Key: "meter", Value: "reserve"}, envoytest.Entry{Key: "kind", Value: "output"})
		if err == nil && got != want {
			err = fmt.Errorf("micro-dollars that key %s has left: got %s, want %s", key, got, want)
		}
		return err
	})
}

// Every token of an answer costs the price of its kind and model, to the thousandth
// of a micro-dollar. That holds for answers in JSON and for streams.
func TestLLMMoneyExample(t *testing.T) {
	envoytest.Need(t)
	g := startMoney(t)
	body := func(model, more string) string {
		return fmt.Sprintf(`{"model": %q, "messages": [], "max_tokens": 1000%s}`, model, more)
	}
	const stream = `, "stream": true, "stream_options": {"include_usage": true}`
	usage := func(more ...string) map[string]string {
		h := hundred(more...)
		h["x-prompt-tokens"], h["x-cached-tokens"] = "1000", "400"
		return h
	}
	estimate := func(body string) int64 { return int64(len(body)+3)/4*2_500 + 1000*10_000 }
	tests := []struct {
		name  string // and the key
		q     question
		leave bool
		code  int
		spent int64
	}{
		{"large", question{body("large-1", ""), usage()}, false, 200, 600*2_500 + 400*1_250 + 88*10_000},
		{"k-1", question{body("large-1", ""), usage()}, false, 200, 600*2_500 + 400*1_250 + 88*10_000}, // of org/acme: the id is longer
		{"large-stream", question{body("large-1", stream), usage()}, false, 200, 600*2_500 + 400*1_250 + 88*10_000},
		{"small", question{body("small-1", ""), usage()}, false, 200, 600*150 + 400*75 + 88*600},
		{"nano-stream", question{body("nano-1", stream), usage()}, false, 200, 600*100 + 400*25 + 88*400},
		{"nothing-cached", question{body("large-1", ""), hundred()}, false, 200, 12*2_500 + 88*10_000},
		{"unavailable", question{body("large-1", ""), usage("x-status", "503")}, false, 503, 0},
		{"without-usage", question{body("large-1", ""), usage("x-total-tokens", "none")}, false, 200, estimate(body("large-1", ""))},
		{"leaves", question{body("large-1", stream), usage()}, true, 0, estimate(body("large-1", stream))},
		{"no-price", question{body("huge-1", ""), usage()}, false, 429, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if test.leave {
				g.leave(t, test.name, test.q, 2)
			} else if answer := g.ask(t, test.name, test.q); answer.Code != test.code {
				t.Fatalf("got %d, want %d", answer.Code, test.code)
			}
			g.awaitSpent(t, test.name, test.spent)
		})
	}
	if got := g.counted(t, "ratelimit_settlements_total{", `result="settled"`); got != 7*3 {
		t.Errorf("descriptors that settled: got %d, want 3 of 7 answers each", got)
	}
}

// A cost above the rest of a budget is denied before it arises. Of eleven answers of
// nearly a dollar each ten fit into ten dollars; each model has tokens enough for two.
func TestLLMMoneyIsReserved(t *testing.T) {
	envoytest.Need(t)
	g := startMoney(t)
	body := func(model int) string {
		return fmt.Sprintf(`{"model": "large-%d", "messages": [], "stream": true, "max_tokens": 98000}`, model)
	}
	for i := range 10 {
		g.leave(t, "spender", question{body(1 + i%5), hundred()}, 2)
	}
	if answer := g.ask(t, "spender", question{body(6), hundred()}); answer.Code != http.StatusTooManyRequests {
		t.Errorf("the eleventh: got %d, want 429", answer.Code)
	}
	g.awaitSpent(t, "spender", 10*(int64(len(body(0))+3)/4*2_500+98_000*10_000))
}
