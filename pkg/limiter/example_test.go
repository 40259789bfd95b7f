package limiter_test

import (
	"context"
	"fmt"
	"time"

	"github.com/ratelimit/ratelimit/pkg/embedded"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// A request may have its own limits: then nothing has to be configured.
func ExampleLimiter_Decide() {
	ctx := context.Background()
	store := embedded.New(embedded.Config{})
	defer func() { _ = store.Close(ctx) }()
	l, err := limiter.New(limiter.Config{Store: store})
	if err != nil {
		fmt.Println(err)
		return
	}
	limits, err := limiter.NewLimits(limiter.PerMinute("rpm", 2))
	if err != nil {
		fmt.Println(err)
		return
	}
	req := &limiter.Request{Takes: []limiter.Take{{
		Entity: "user/ada", Resource: "search", Limits: limits,
		Consume: []limiter.Consumption{{Limit: "rpm", Amount: 1 * limiter.Milli}},
	}}}

	now := time.UnixMilli(0)
	var d limiter.Decision
	for range 3 {
		if err := l.Decide(ctx, now, req, &d); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(d.Admitted, d.Statuses[0].Available/limiter.Milli, d.RetryAfter)
	}
	// Output:
	// true 1 0s
	// true 0 0s
	// false 0 30s
}

// An organisation uses the tokens that its API keys use.
func ExampleLimiter_SetStatic() {
	ctx := context.Background()
	store := embedded.New(embedded.Config{})
	defer func() { _ = store.Close(ctx) }()
	l, err := limiter.New(limiter.Config{Store: store})
	if err != nil {
		fmt.Println(err)
		return
	}
	must := func(limits ...limiter.Limit) *limiter.Limits {
		s, err := limiter.NewLimits(limits...)
		if err != nil {
			fmt.Println(err)
		}
		return s
	}
	err = l.SetStatic(ctx, limiter.Static{
		System: must(limiter.PerMinute("tpm", 1000)),
		Entities: map[string]limiter.StaticEntity{
			"org/acme":  {Limits: map[string]*limiter.Limits{limiter.DefaultResource: must(limiter.PerMinute("tpm", 1500))}},
			"key/k-123": {Parent: "org/acme", Cascade: true},
			"key/k-456": {Parent: "org/acme", Cascade: true},
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	now := time.UnixMilli(0)
	for _, key := range []string{"key/k-123", "key/k-456"} {
		var d limiter.Decision
		err := l.Decide(ctx, now, &limiter.Request{Takes: []limiter.Take{{
			Entity: key, Resource: "gpt-4",
			Consume: []limiter.Consumption{{Limit: "tpm", Amount: 900 * limiter.Milli}},
		}}}, &d)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(key, d.Admitted)
		for _, s := range d.Statuses {
			fmt.Printf("  %s %s has %d, exceeded %t (%v)\n", s.Entity, s.Limit.Name, s.Available/limiter.Milli, s.Exceeded, s.Source)
		}
	}
	// Output:
	// key/k-123 true
	//   key/k-123 tpm has 100, exceeded false (system (file))
	//   org/acme tpm has 600, exceeded false (entity default (file))
	// key/k-456 false
	//   key/k-456 tpm has 1000, exceeded false (system (file))
	//   org/acme tpm has 600, exceeded true (entity default (file))
}

// Take an estimate first, and settle to the actual use.
func ExampleLimiter_Acquire() {
	ctx := context.Background()
	store := embedded.New(embedded.Config{})
	defer func() { _ = store.Close(ctx) }()
	l, err := limiter.New(limiter.Config{Store: store})
	if err != nil {
		fmt.Println(err)
		return
	}
	limits, err := limiter.NewLimits(limiter.PerMinute("tpm", 1000))
	if err != nil {
		fmt.Println(err)
		return
	}
	req := &limiter.Request{Takes: []limiter.Take{{
		Entity: "user/ada", Resource: "gpt-4", Limits: limits,
		Consume: []limiter.Consumption{{Limit: "tpm", Amount: 500 * limiter.Milli}},
	}}}
	now := time.UnixMilli(0)
	lease, d, err := l.Acquire(ctx, now, req)
	if err != nil || lease == nil {
		fmt.Println(err, d)
		return
	}
	actual := int64(2000 * limiter.Milli) // the model talked a lot
	if err := lease.Adjust(ctx, now, map[string]int64{"tpm": actual - 500*limiter.Milli}); err != nil {
		fmt.Println(err)
		return
	}
	_, d, err = l.Acquire(ctx, now, req)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(d.Admitted, d.Statuses[0].Available/limiter.Milli, d.RetryAfter)
	// Output: false -1000 1m30s
}
