package envoytest_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/test/envoytest"
)

// Three requests, and one more every 3 seconds.
const threeRequests = `
domains:
- domain: basic
  rules:
  - match: {api_key: "*"}
    entity: "key/{api_key}"
    resource: http
    limits: {requests: 3/9s}
    consume: {requests: hits}
`

// period is how long threeRequests takes to give one more.
const period = 3 * time.Second

// A limit of n lets n requests pass. The next is denied, and admitted again when
// the time that retry-after gave has passed, and not before.
func TestLimitAndRetryAfter(t *testing.T) {
	envoytest.Need(t)
	envoy, _ := startAll(t, example(t, "basic.yaml"), writeRules(t, threeRequests))

	start := time.Now()
	first := envoy.Get(t, "/", apiKey("alice"))
	if got := number(t, first, "x-ratelimit-remaining"); first.Code != http.StatusOK || got != 2 {
		t.Fatalf("first request: got %d with %d remaining, want 200 with 2", first.Code, got)
	}
	if got := first.Header.Values("retry-after"); got != nil {
		t.Errorf("first request: got retry-after %q, want none", got)
	}

	admitted := 1
	sent := time.Now()
	denied := envoy.Get(t, "/", apiKey("alice"))
	for ; denied.Code == http.StatusOK; denied = envoy.Get(t, "/", apiKey("alice")) {
		admitted++
		sent = time.Now()
	}
	answered := time.Now()
	if most := 3 + int(answered.Sub(start)/period); admitted < 3 || admitted > most {
		t.Fatalf("admitted: got %d, want 3 to %d", admitted, most)
	}
	if denied.Code != http.StatusTooManyRequests {
		t.Fatalf("request %d: got %d, want 429", admitted+1, denied.Code)
	}
	if got, want := denied.Header.Get("x-ratelimit-limit"), `3, 3;w=9;name="requests"`; got != want {
		t.Errorf("denied: got x-ratelimit-limit %q, want %q", got, want)
	}
	if got := number(t, denied, "x-ratelimit-remaining"); got != 0 {
		t.Errorf("denied: got x-ratelimit-remaining %d, want 0", got)
	}

	// retry-after is in whole seconds, rounded up: the true time lies in the last of them.
	retryAfter := time.Duration(number(t, denied, "retry-after")) * time.Second
	tooEarly, inTime := sent.Add(retryAfter-time.Second), answered.Add(retryAfter)
	polls := time.NewTicker(50 * time.Millisecond)
	defer polls.Stop()
	for range polls.C {
		asked := time.Now()
		response := envoy.Get(t, "/", apiKey("alice"))
		switch {
		case response.Code == http.StatusOK && time.Now().Before(tooEarly):
			t.Fatalf("admitted %v after the denial, although retry-after said %v", time.Since(sent), retryAfter)
		case response.Code == http.StatusOK:
			return
		case !asked.Before(inTime):
			t.Fatalf("denied %v after the denial, although retry-after said %v", asked.Sub(answered), retryAfter)
		}
	}
}

// A client that waits for exactly the time of retry-after is admitted at the first
// try.
func TestWaitRetryAfter(t *testing.T) {
	envoytest.Need(t)
	envoy, _ := startAll(t, example(t, "basic.yaml"), writeRules(t, threeRequests))

	response := envoy.Get(t, "/", apiKey("alice"))
	for response.Code == http.StatusOK {
		response = envoy.Get(t, "/", apiKey("alice"))
	}
	retryAfter := time.Duration(number(t, response, "retry-after")) * time.Second
	select {
	case <-time.After(retryAfter):
	case <-t.Context().Done():
		t.Fatal(t.Context().Err())
	}
	if response := envoy.Get(t, "/", apiKey("alice")); response.Code != http.StatusOK {
		t.Fatalf("after waiting %v: got %d, want 200", retryAfter, response.Code)
	}
}
