package limiter_test

import (
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/limiter/storetest"
)

// A subject last seen as disabled remains disabled while the store is unavailable, with any policy.
// Nothing else is denied for it.
func TestDisabledDuringAnOutage(t *testing.T) {
	reference := storetest.NewReference()
	faulty := storetest.NewFaulty(reference, nil)
	l := newLimiter(t, limiter.Config{Store: faulty, CacheTTL: 1, Timeout: time.Minute}, limiter.Static{System: set(t, limiter.PerMinute("rpm", 100))})
	flip := func(s limiter.Switch) {
		t.Helper()
		if _, err := reference.(limiter.Editor).Edit(t.Context(), t0, limiter.DefaultNamespace, limiter.Edit{Ref: limiter.EntityRef("a"), Switch: s}); err != nil {
			t.Fatal(err)
		}
	}
	ask := func(entity string, policy limiter.Policy, mode limiter.Mode) *limiter.Decision {
		req := take(entity, "m", "rpm", 1)
		req.OnUnavailable, req.Takes[0].Mode = policy, mode
		return decide(t, l, t0, req)
	}
	flip(limiter.Disable)
	if d := ask("a", limiter.Allow, limiter.Consume); d.Reason != limiter.ReasonDisabled || d.Policy != limiter.Unset {
		t.Fatalf("before the outage: %v", brief(d))
	}
	if d := ask("b", limiter.Allow, limiter.Consume); !d.Admitted {
		t.Fatalf("another entity: %v", brief(d))
	}
	faulty.Use(storetest.Always(storetest.FailBefore))
	for _, policy := range []limiter.Policy{limiter.Allow, limiter.Local, limiter.Deny} {
		d := ask("a", policy, limiter.Consume)
		if d.Admitted || policy == limiter.Allow && (d.Reason != limiter.ReasonDisabled || d.Disabled.Subject != limiter.EntityRef("a")) {
			t.Errorf("policy %v: %v", policy, brief(d))
		}
	}
	if d := ask("b", limiter.Allow, limiter.Consume); !d.Admitted || d.Policy != limiter.Allow {
		t.Errorf("another entity in the outage: %v", brief(d))
	}
	if d := ask("a", limiter.Allow, limiter.Charge); !d.Admitted || d.Policy != limiter.Allow || d.Unavailable == nil {
		t.Errorf("a charge in the outage: %v", brief(d))
	}
	faulty.Use(nil)
	flip(limiter.Enable)
	move := func(by limiter.Switch) {
		t.Helper()
		if _, err := reference.(limiter.Editor).Edit(t.Context(), t0, limiter.DefaultNamespace, limiter.Edit{Ref: limiter.SystemLimitsRef(), Switch: by}); err != nil {
			t.Fatal(err)
		}
	}
	move(limiter.DeleteNamespace)
	if d := ask("b", limiter.Allow, limiter.Consume); d.Reason != limiter.ReasonDisabled || d.Disabled.State != limiter.NamespaceDeleted {
		t.Errorf("of a deleted namespace: %v", brief(d))
	}
	faulty.Use(storetest.Always(storetest.FailBefore))
	if d := ask("b", limiter.Allow, limiter.Consume); d.Admitted || d.Reason != limiter.ReasonDisabled || d.Disabled.State != limiter.NamespaceDeleted {
		t.Errorf("of a deleted namespace in the outage: %v", brief(d))
	}
	faulty.Use(nil)
	move(limiter.RecoverNamespace)
	if d := ask("a", limiter.Deny, limiter.Consume); !d.Admitted {
		t.Errorf("after the outage: %v", brief(d))
	}
}
