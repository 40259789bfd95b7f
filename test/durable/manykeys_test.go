package durable_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	envoyratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
)

const (
	manyKeys = 60_000
	// stopTime is how long the program may take to end after SIGTERM, with drain 0s.
	stopTime = 5 * time.Second
)

// manyRules has keys that clients invent: of those of fast nothing is left to refill at the stop, of those
// of slow nearly all. Each key uses up a budget.
const manyRules = `
decision: {timeout: 10s, on_unavailable: deny}
drain: 0s
log: {format: json}
limits: {system: {b: {rate: 1000/day, budget: {day: 1}}}}
budgets:
  webhook: {url: '%s', key: MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=}
domains:
- domain: d
  rules:
  - {match: {fast: "*"}, entity: "fast/{fast}", resource: r, limits: {n: 1000/minute}, consume: {n: hits}}
  - {match: {slow: "*"}, entity: "slow/{slow}", resource: r, limits: {n: 10/day}, consume: {n: hits}}
  - {match: {told: "*"}, entity: "told/{told}", resource: r, consume: {b: hits}}
`

// useOnce takes one token of each of that many keys, and fails where one is denied.
func (c *caller) useOnce(t *testing.T, key string, keys int) {
	t.Helper()
	const together = 500
	for first := 0; first < keys; first += together {
		r := &rls.RateLimitRequest{Domain: "d"}
		for i := first; i < min(first+together, keys); i++ {
			r.Descriptors = append(r.Descriptors, &envoyratelimit.RateLimitDescriptor{
				Entries: []*envoyratelimit.RateLimitDescriptor_Entry{{Key: key, Value: fmt.Sprint("k", i)}},
			})
		}
		answer, err := c.client.ShouldRateLimit(t.Context(), r)
		if err != nil || answer.GetOverallCode() != rls.RateLimitResponse_OK {
			t.Fatalf("keys from %d: %v, %v", first, answer.GetOverallCode(), err)
		}
	}
}

// hung returns the address of a receiver that never answers.
func hung(t *testing.T) string {
	t.Helper()
	release := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	t.Cleanup(func() {
		close(release)
		s.Close()
	})
	return s.URL
}

// With any number of keys that clients invent, the program ends in time, without an error, and loses
// nothing. The second stop comes at once: the work that the first one left is done by then, or is left
// again.
func TestStopWithManyKeys(t *testing.T) {
	for _, key := range []string{"fast", "slow", "told"} {
		t.Run(key, func(t *testing.T) {
			dir, config := t.TempDir(), configuration(t, fmt.Sprintf(manyRules, hung(t)))
			for life := range 2 {
				p := start(t, dir, config)
				if life == 0 {
					c, end := newHistory().dial(t, p)
					began := time.Now()
					c.useOnce(t, key, manyKeys)
					end()
					t.Logf("%d keys took %v", manyKeys, time.Since(began))
				} else if _, crashed := p.said(notInOrder); crashed {
					t.Errorf("the life before did not end in order:\n%s", p.wrote())
				}
				began := time.Now()
				p.stop(t)
				took := time.Since(began)
				t.Logf("life %d: the stop took %v", life, took)
				if took > stopTime || strings.Contains(p.wrote(), `"level":"ERROR"`) && key != "told" {
					t.Errorf("life %d: the stop took %v, want %v at most and no error\n%.2000s", life, took, stopTime, p.wrote())
				}
			}
		})
	}
}
