package envoytest_test

import (
	"context"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/test/envoytest"
)

// estimated is the reservation of a request that does not say how much it may use.
const estimated = 1000

// settledTo returns the final cost of an answer: the usage read of it, or the
// estimate; an error of the upstream costs nothing.
func settledTo(c usageCase) int {
	switch {
	case c.name == "unavailable":
		return 0
	case c.filter == none:
		return estimated
	default:
		return c.filter
	}
}

// settled checks that an example settles each answer to the usage that it reads of
// it, once. used is the cost of an answer.
func settled(t *testing.T, g *gateway, settlements int, used func(usageCase) int) {
	t.Helper()
	g.askAll(t)
	awaitAndStay(t, "each answer is settled once", func() error {
		for _, c := range usageCases {
			if err := g.wantUsed(c.name, used(c)); err != nil {
				return err
			}
		}
		return g.wantCalls(t, len(usageCases)+settlements)
	})
	wantNothingLost(t, g.envoy, int64(len(usageCases)))
}

func TestLLMReserveSettleExample(t *testing.T) {
	envoytest.Need(t)
	g := startGateway(t, "llm-reserve-settle.yaml", "llm.ratelimit.yaml")
	g.domain, g.entries = "llm-reserve-settle", []envoytest.Entry{{Key: "meter", Value: "reserve"}}
	settlements := 1 // of the error
	for _, c := range usageCases {
		if c.filter != none {
			settlements++
		}
	}
	settled(t, g, settlements, settledTo)
	if got := g.counted(t, "ratelimit_settlements_total{", `result="settled"`); got != settlements {
		t.Errorf("settlements that the service counted: got %d, want %d", got, settlements)
	}
	estimates(t, g)
	deniedReservesNothing(t, g)
}

func TestLLMRefundChargeExample(t *testing.T) {
	envoytest.Need(t)
	g := startGateway(t, "llm-refund-charge.yaml", "llm.ratelimit.yaml")
	g.domain, g.entries = "llm-refund-charge", []envoytest.Entry{{Key: "meter", Value: "tokens"}}
	settled(t, g, len(usageCases), func(c usageCase) int {
		if c.name == "too-many" || c.name == "too-many-in-stream" || c.name == "negative" {
			return 0 // Envoy leaves the charge out, and sends the refund
		}
		return settledTo(c)
	})
	estimates(t, g)
	deniedReservesNothing(t, g)
}

// reserve sends a body whose answer has no usage, so that its reservation stays, and
// returns the code of the answer.
func (g *gateway) reserve(t *testing.T, key, contentType, body string) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	response, err := g.envoy.Post(ctx, "/v1/other", body, http.Header{"X-Api-Key": {key}, "Content-Type": {contentType}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := envoytest.Read(response)
	if err != nil {
		t.Fatal(err)
	}
	return answer.Code
}

// estimates checks the reservations for bodies of clients: no body leads to a request
// without a reservation.
func estimates(t *testing.T, g *gateway) {
	t.Helper()
	for i, test := range []struct {
		contentType, body string
		want              int
	}{
		{"application/json", `{}`, estimated},
		{"application/json", `{"max_tokens": 300}`, 300},
		{"application/json", `{"max_completion_tokens": 400}`, 400},
		{"application/json", `{"max_tokens": 0}`, estimated},
		{"application/json", `{"max_tokens": -5}`, estimated},
		{"application/json", `{"max_tokens": 2.5}`, 3},
		{"application/json", `{"max_tokens": "many"}`, estimated},
		{"application/json", `{"max_tokens": null}`, estimated},
		{"application/json", `{"max_tokens": {}}`, estimated},
		{"application/json", `{"max_tokens": 10000000000}`, 100_000},
		{"application/json", `{"max_tokens": 1e300}`, 100_000},
		{"application/json", `{"max_tokens": 1000000000000000000000000}`, 100_000},
		{"application/json", `["max_tokens", 300]`, estimated},
		{"application/json", `not JSON`, estimated},
		{"application/json", ``, estimated},
		{"application/json; charset=utf-8", `{"max_tokens": 300}`, 300},
		{"text/plain", `{"max_tokens": 300}`, estimated},
		{"", `{"max_tokens": 300}`, estimated},
	} {
		key := "estimate-" + strconv.Itoa(i)
		if got := g.reserve(t, key, test.contentType, test.body); got != http.StatusOK {
			t.Errorf("%s %s: got %d, want 200", test.contentType, test.body, got)
		}
		if err := g.wantUsed(key, test.want); err != nil {
			t.Errorf("%s %s: %v", test.contentType, test.body, err)
		}
	}
}

// deniedReservesNothing checks that a denied request costs nothing, and refunds
// nothing.
func deniedReservesNothing(t *testing.T, g *gateway) {
	t.Helper()
	for _, step := range []struct{ asked, code, used int }{
		{60_000, http.StatusOK, 60_000},
		{60_000, http.StatusTooManyRequests, 60_000},
		{40_000, http.StatusOK, 100_000},
		{1, http.StatusTooManyRequests, 100_000},
	} {
		body := `{"max_tokens": ` + strconv.Itoa(step.asked) + `}`
		if got := g.reserve(t, "denied", "application/json", body); got != step.code {
			t.Errorf("%s: got %d, want %d", body, got, step.code)
		}
		envoytest.Stays(t, "after "+body, func() error { return g.wantUsed("denied", step.used) })
	}
}
