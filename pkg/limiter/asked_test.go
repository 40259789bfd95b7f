package limiter_test

import (
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/embedded"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// BucketOf returns the bucket of a status: that of the entity or of its parent, with shared limits
// or the take's own.
func TestBucketOf(t *testing.T) {
	store := embedded.New(embedded.Config{})
	l, err := limiter.New(limiter.Config{Store: store, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close(t.Context()) }()
	limits, err := limiter.NewLimits(limiter.PerHour("l", 5))
	if err != nil {
		t.Fatal(err)
	}
	if err := l.SetStatic(t.Context(), limiter.Static{
		System:   limits,
		Entities: map[string]limiter.StaticEntity{"key": {Parent: "org", Cascade: true}},
	}); err != nil {
		t.Fatal(err)
	}
	consume := []limiter.Consumption{{Limit: "l", Amount: limiter.Milli}}
	req := &limiter.Request{Takes: []limiter.Take{
		{Entity: "key", Resource: "r", Consume: consume},
		{Entity: "user", Resource: "s", Consume: consume, Limits: limits, LimitsOf: "rule"},
	}}
	var d limiter.Decision
	if err := l.Decide(t.Context(), time.Now(), req, &d); err != nil || len(d.Statuses) != 3 {
		t.Fatalf("%d statuses, %v; want 3", len(d.Statuses), err)
	}
	for i, want := range []struct{ entity, resource string }{{"key", "r"}, {"org", "r"}, {"user", "s"}} {
		got, ok := d.BucketOf(&d.Statuses[i])
		if !ok || got.Namespace != limiter.DefaultNamespace || got.Entity != want.entity || got.Resource != want.resource || (got.Variant != 0) != (i == 2) {
			t.Errorf("status %d: %+v, %t; want %+v", i, got, ok, want)
		}
	}
	if got, ok := d.BucketOf(&limiter.LimitStatus{Take: 2}); ok {
		t.Errorf("a status of no take is of %+v", got)
	}
}
