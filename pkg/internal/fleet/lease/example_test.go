package lease_test

import (
	"fmt"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/lease"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

func Example() {
	limits := []tokenbucket.Params{{Capacity: 1_000_000, Amount: 1_000_000, Period: 1000}} // 1000 tokens a second
	item := newCentre(limits)                                                              // stands for the store
	now := int64(1_800_000_000_000)
	clock := lease.Clock{Mono: now, Wall: now}
	h := lease.New(limits, limiter.LeasePolicy{}, 0)

	request := []lease.Draw{{Limit: 0, Need: 1000, Take: 1000}} // one token
	for range 4 {
		h.Count(now, request)
	}
	fmt.Println("worth a lease:", h.Take(now, 15, request) == lease.Pull)

	if plan, ok := h.Ask(now, clock, 0.5); ok {
		fmt.Println(h.State(), "of", plan.Slot.Rate, "parts of the rate")
		item.apply(0, plan)
	}
	h.Seen(now, clock, item.view(0)) // the reply
	fmt.Println(h.State(), h.Take(now, 15, request) == lease.Admitted && h.Alive(clock))
	// Output:
	// worth a lease: true
	// granting of 485 parts of the rate
	// held true
}
