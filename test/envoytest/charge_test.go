package envoytest_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/ratelimit/ratelimit/test/envoytest"
)

// A hundred tokens, and no more while a test runs. The cost of a request is charged
// when it is over, 3 tokens each (testdata/charge.yaml).
const hundredTokens = `
domains:
- domain: charge
  rules:
  - match: {api_key: "*", meter: tokens}
    entity: "key/{api_key}"
    resource: model
    limits: {tokens: 100/day}
    consume: {tokens: hits}
    overdraw: true
`

// Charges that Envoy sends after the answer are booked once each, into debt when
// need be; then requests are denied.
func TestChargeAfterAnswer(t *testing.T) {
	envoytest.Need(t)
	envoy, _ := startAll(t, filepath.Join("testdata", "charge.yaml"), writeRules(t, hundredTokens))

	// 33 requests at once, and then one that brings the balance from 1 to -2.
	var group errgroup.Group
	for range 33 {
		group.Go(func() error { return wantAdmitted(envoy, "alice") })
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	awaitCalls(t, envoy, 66)
	last := envoy.Get(t, "/", apiKey("alice"))
	if got := number(t, last, "x-ratelimit-remaining"); last.Code != http.StatusOK || got != 1 {
		t.Errorf("after 33 requests of 3 tokens: got %d with %d remaining, want 200 with 1", last.Code, got)
	}
	awaitCalls(t, envoy, 68)
	if response := envoy.Get(t, "/", apiKey("alice")); response.Code != http.StatusTooManyRequests {
		t.Errorf("in debt: got %d, want 429", response.Code)
	}
	if response := envoy.Get(t, "/", apiKey("bob")); response.Code != http.StatusOK {
		t.Errorf("another key: got %d, want 200", response.Code)
	}
}

// awaitCalls waits until the service has answered n calls of Envoy: one before
// each request, and one after it.
func awaitCalls(t *testing.T, envoy *envoytest.Envoy, n int64) {
	t.Helper()
	const counter = "cluster.ratelimit.upstream_rq_200"
	envoytest.Await(t, "the calls after the answers", func() error {
		if got := envoy.Stats(t, counter)[counter]; got != n {
			return fmt.Errorf("calls answered: got %d, want %d", got, n)
		}
		return nil
	})
}
