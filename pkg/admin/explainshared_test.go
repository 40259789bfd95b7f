package admin_test

import (
	"testing"

	"github.com/ratelimit/ratelimit/pkg/admin"
	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// Two takes of the ordinary bucket count together, also where one has limits of its own beside it.
func TestExplainOfABucketOfTwoTakes(t *testing.T) {
	own, err := limiter.NewLimits(limiter.PerMinute("rpm", 5))
	if err != nil {
		t.Fatal(err)
	}
	tokens := func(n int64) descriptor.ConsumeSpec {
		return descriptor.ConsumeSpec{Limit: "tpm", Constant: n * limiter.Milli}
	}
	for each, want := range map[int64]bool{50: true, 60: false} { // of 100
		e, _ := newExplainer(t, descriptor.RuleSpec{Name: "two", Match: []descriptor.MatchSpec{{Key: "user", Value: "*"}}, Takes: []descriptor.TakeSpec{
			{Path: "a", Entity: "user/{user}", Resource: "api", Limits: own, Consume: []descriptor.ConsumeSpec{{Limit: "rpm", PerHit: limiter.Milli}, tokens(each)}},
			{Path: "b", Entity: "user/{user}", Resource: "api", Consume: []descriptor.ConsumeSpec{tokens(each)}},
		}})
		if x := ask(t, e, admin.Question{Domain: "shop", Entries: entries("user", "bob")}); x.Admitted != want {
			t.Errorf("two times %d of 100: admitted %t, %+v", each, x.Admitted, x.Limits)
		}
	}
}
