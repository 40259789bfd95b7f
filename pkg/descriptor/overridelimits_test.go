package descriptor_test

import (
	"context"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/embedded"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// A limit that the gateway sends replaces one of a plan. A stored exception of another one still holds.
func TestALimitOfTheCallLeavesTheOthers(t *testing.T) {
	rules, problems := descriptor.Compile([]descriptor.DomainSpec{{Domain: "d", Rules: []descriptor.RuleSpec{{
		Name: "r", Override: "rpm", Match: []descriptor.MatchSpec{key("user", "*")},
		Takes: []descriptor.TakeSpec{{Path: "x", Entity: "user/{user}", Resource: "api", Plan: "free", Consume: []descriptor.ConsumeSpec{consume("rpm", 1000, 0), consume("tpm", 1000, 0)}}},
	}}}}, plans(t))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	store := embedded.New(embedded.Config{})
	defer func() { _ = store.Close(context.Background()) }()
	l, err := limiter.New(limiter.Config{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	stored := limiter.Record{Limits: limits(t, limiter.PerMinute("rpm", 7), limiter.PerMinute("tpm", 50_000))}
	if err := store.PutLimits(t.Context(), limiter.DefaultNamespace, limiter.EntityLimitsRef("user/bob", "api"), stored); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		sent *descriptor.Limit
		rpm  int64
		from limiter.Source
	}{
		{nil, 7, limiter.SourceEntity},
		{&descriptor.Limit{Requests: 100, Period: time.Minute}, 100, limiter.SourceRequest},
	} {
		var plan descriptor.Plan
		rules.Plan(&descriptor.Call{Domain: "d", Descriptors: []descriptor.Descriptor{{Entries: []descriptor.Entry{{Key: "user", Value: "bob"}}, Hits: 1, Limit: tt.sent}}}, &plan)
		var d limiter.Decision
		if err := l.Decide(t.Context(), time.Unix(1e6, 0), &plan.Request, &d); err != nil || !d.Admitted || len(d.Statuses) != 2 {
			t.Fatalf("%+v: %+v, %v", tt.sent, d, err)
		}
		rpm, tpm := d.Statuses[0], d.Statuses[1]
		if rpm.Limit.Capacity != tt.rpm || rpm.Source != tt.from || tpm.Limit.Capacity != 50_000 || tpm.Source != limiter.SourceEntity {
			t.Errorf("%+v: %v from %v, %v from %v", tt.sent, rpm.Limit, rpm.Source, tpm.Limit, tpm.Source)
		}
	}
}
