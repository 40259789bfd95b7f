package envoytest_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/ratelimit/ratelimit/test/envoytest"
)

// Through a real gateway, answers that arrive byte by byte cost the price of their usage, to
// the thousandth of a micro-dollar. An answer without a usage costs its estimate.
func TestLLMMoneyByteByByte(t *testing.T) {
	envoytest.Need(t)
	all := answers()
	g := startGatewayTo(t, example(t, "../llm/envoy.yaml"), startPieces(t, all), envoytest.StartService(t, moneyRules(t), "", ""))
	const body = `{"model": "large-1", "messages": [], "max_tokens": 1000}`
	for i, a := range all {
		t.Run(a.name, func(t *testing.T) {
			key := fmt.Sprintf("key-%d", i)
			if answer := g.ask(t, key, question{body, map[string]string{"x-answer": a.name}}); answer.Code != http.StatusOK || string(answer.Body) != a.body {
				t.Fatalf("got %d with %q, want 200 with the answer as it is", answer.Code, answer.Body)
			}
			input, cached, output := int64(len(body)+3)/4, int64(0), int64(1000)
			if _, err := fmt.Sscanf(a.kinds, "input=%d cached=%d output=%d", &input, &cached, &output); err != nil && a.kinds != "" {
				t.Fatal(err)
			}
			g.awaitSpent(t, key, min(input*2_500+cached*1_250+output*10_000, 11*budget)) // debt has an end
		})
	}
}

// startPieces starts an upstream that gives the answer that the header x-answer names, byte by
// byte.
func startPieces(t *testing.T, all []answer) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i := slices.IndexFunc(all, func(a answer) bool { return a.name == r.Header.Get("X-Answer") })
		if i < 0 {
			http.NotFound(w, r)
			return
		}
		w.Header()["Content-Type"] = []string{all[i].contentType}
		control := http.NewResponseController(w)
		for b := range len(all[i].body) {
			_, _ = io.WriteString(w, all[i].body[b:b+1])
			_ = control.Flush()
		}
	}))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}
