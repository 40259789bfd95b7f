package limiter_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// overheard is a store that records the lease policies of the last call, by entity.
type overheard struct {
	limiter.Store

	leases map[string]limiter.LeasePolicy
}

func (o *overheard) Take(ctx context.Context, now time.Time, ops []limiter.Op) (bool, error) {
	o.leases = map[string]limiter.LeasePolicy{}
	for i := range ops {
		o.leases[ops[i].Bucket.Entity] = ops[i].Lease
	}
	return o.Store.Take(ctx, now, ops)
}

// A take's lease policy applies to the buckets of its chain. Several takes of one bucket combine
// theirs; charges have none.
func TestLeasePoliciesReachTheBuckets(t *testing.T) {
	none, bounded := limiter.LeasePolicy{None: true}, limiter.LeasePolicy{Max: 5000, For: time.Second}
	short := limiter.LeasePolicy{For: 100 * time.Millisecond}
	of := func(entity string, lease limiter.LeasePolicy, mode limiter.Mode, parents ...string) limiter.Take {
		return limiter.Take{
			Entity: entity, Resource: "m", Parents: parents, Mode: mode, Lease: lease,
			Consume: []limiter.Consumption{{Limit: "rpm", Amount: limiter.Milli}},
		}
	}
	store := &overheard{Store: newStore(t)}
	l := newLimiter(t, limiter.Config{Store: store, Timeout: time.Minute}, limiter.Static{System: set(t, limiter.PerMinute("rpm", 100))})
	var d limiter.Decision // reused: nothing of one decision remains for the next
	for _, test := range []struct {
		name  string
		takes []limiter.Take
		want  map[string]limiter.LeasePolicy
	}{
		{"none for the chain", []limiter.Take{of("key", none, limiter.Consume, "team", "org")}, map[string]limiter.LeasePolicy{"key": none, "team": none, "org": none}},
		{"auto", []limiter.Take{of("key", limiter.LeasePolicy{}, limiter.Consume, "org")}, map[string]limiter.LeasePolicy{"key": {}, "org": {}}},
		{"each its own", []limiter.Take{of("a", none, limiter.Consume), of("b", bounded, limiter.Consume)}, map[string]limiter.LeasePolicy{"a": none, "b": bounded}},
		{"a shared parent", []limiter.Take{of("a", bounded, limiter.Consume, "org"), of("b", short, limiter.Consume, "org")}, map[string]limiter.LeasePolicy{
			"a": bounded, "b": short, "org": {Max: 5000, For: 100 * time.Millisecond},
		}},
		{"a bucket twice", []limiter.Take{of("a", bounded, limiter.Consume), of("a", none, limiter.Consume)}, map[string]limiter.LeasePolicy{
			"a": {None: true, Max: 5000, For: time.Second},
		}},
		{"a charge beside", []limiter.Take{of("a", bounded, limiter.Consume), of("a", none, limiter.Charge)}, map[string]limiter.LeasePolicy{"a": bounded}},
		{"a refund alone", []limiter.Take{of("a", none, limiter.Refund)}, map[string]limiter.LeasePolicy{"a": {}}},
	} {
		if err := l.Decide(t.Context(), t0, &limiter.Request{Takes: test.takes}, &d); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.want, store.leases); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}

	wrong := &limiter.Request{Takes: []limiter.Take{of("a", limiter.LeasePolicy{Max: -1}, limiter.Consume)}}
	if err := l.Decide(t.Context(), t0, wrong, &d); !errors.Is(err, limiter.ErrInvalid) {
		t.Errorf("a wrong policy: got %v, want ErrInvalid", err)
	}
}

func TestLeasePolicyString(t *testing.T) {
	for want, p := range map[string]limiter.LeasePolicy{
		"auto":                     {},
		"none":                     {None: true, Max: 1},
		"{max: 5000}":              {Max: 5_000_000},
		"{max: 0.05}":              {Max: 50},
		"{for: 500ms}":             {For: 500 * time.Millisecond},
		"{max: 2.5, for: 1s}":      {Max: 2500, For: time.Second},
		"{max: 10.001, for: 10ms}": {Max: 10_001, For: 10 * time.Millisecond},
	} {
		if got := p.String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
