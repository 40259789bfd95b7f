//go:build !race

// The race detector makes its own allocations.

package tokenbucket_test

import (
	"testing"

	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

func TestAllocations(t *testing.T) {
	p, to := rate(100, 100, minute), rate(1000, 1000, hour)
	bucket := tokenbucket.Full(p, start).ForceConsume(p, 99_500, start)
	now := start
	tests := map[string]func(){
		"Validate":           func() { _ = p.Validate() },
		"Refill":             func() { _ = bucket.Refill(p, now) },
		"TryConsume":         func() { _, _ = bucket.TryConsume(p, 1000, now) },
		"ForceConsume":       func() { _ = bucket.ForceConsume(p, 1000, now) },
		"RetryAfter":         func() { _, _ = bucket.RetryAfter(p, 50_000, now) },
		"TimeToFull":         func() { _ = bucket.TimeToFull(p, now) },
		"Available":          func() { _ = bucket.Available(p, now) },
		"WouldRefillSatisfy": func() { _ = bucket.WouldRefillSatisfy(p, 50_000, now) },
		"Status":             func() { _ = bucket.Status(p, 50_000, now) },
		"Reparameterize":     func() { _ = bucket.Reparameterize(p, to, now) },
	}
	for name, call := range tests {
		t.Run(name, func(t *testing.T) {
			got := testing.AllocsPerRun(100, func() {
				now++
				call()
			})
			if got != 0 {
				t.Errorf("allocations: got %v, want 0", got)
			}
		})
	}
}
