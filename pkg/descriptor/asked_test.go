package descriptor_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/descriptor"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// modeOf plans a call of one descriptor and returns the mode of its take.
func modeOf(t *testing.T, rules *descriptor.Rules, call descriptor.Call) limiter.Mode {
	t.Helper()
	var plan descriptor.Plan
	call.Domain = "d"
	rules.Plan(&call, &plan)
	if len(plan.Request.Takes) != 1 {
		t.Fatalf("takes: got %d, want 1", len(plan.Request.Takes))
	}
	out := plan.Outcomes[0]
	if mode := plan.Request.Takes[0].Mode; mode != out.Mode || out.Answers != (mode == limiter.Charge) || plan.Answers != (out.Answers || out.Peek) {
		t.Errorf("mode of the take %v, outcome %+v", mode, out)
	}
	return plan.Request.Takes[0].Mode
}

func TestExplicitNumberOfATree(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	explicit := func(n uint64) descriptor.Descriptor {
		d := entries("user", "u")
		d.Hits, d.HitsSet = n, true
		return d
	}
	calls := map[string]descriptor.Call{
		"no number":                 {Descriptors: []descriptor.Descriptor{entries("user", "x")}},
		"an explicit 0":             {Descriptors: []descriptor.Descriptor{explicit(0)}},
		"the call's number":         {Hits: 3, Descriptors: []descriptor.Descriptor{entries("user", "x")}},
		"the descriptor's number":   {Descriptors: []descriptor.Descriptor{explicit(3)}},
		"another limit, no number":  {Descriptors: []descriptor.Descriptor{entries("other", "x")}},
		"a limit that it brings, 0": {Descriptors: []descriptor.Descriptor{explicit(0)}},
	}
	own := calls["a limit that it brings, 0"].Descriptors
	own[0].Limit = &descriptor.Limit{Requests: 5, Period: time.Hour}
	tests := []struct {
		first string
		at    time.Duration // of the charge after it
		want  limiter.Mode
	}{
		{"no number", 0, limiter.Charge},
		{"an explicit 0", 0, limiter.Charge},
		{"a limit that it brings, 0", 0, limiter.Charge},
		{"the call's number", 0, limiter.Consume},
		{"the descriptor's number", 0, limiter.Consume},
		{"another limit, no number", 0, limiter.Consume},
		{"an explicit 0", time.Hour, limiter.Charge},
		{"an explicit 0", time.Hour + time.Millisecond, limiter.Consume},
		{"an explicit 0", -time.Second, limiter.Charge}, // a clock that went back
	}
	rules := treeOf(t, branch("user", "", per("hour", 9)), branch("other", "", per("hour", 9)))
	for _, test := range tests {
		t.Run(fmt.Sprintf("%s, %v", test.first, test.at), func(t *testing.T) {
			t.Parallel()
			asked := descriptor.NewAsked().Of(rules)
			first := calls[test.first]
			first.Asked, first.Now = asked, start.Add(time.Hour)
			modeOf(t, rules, first)
			for _, charge := range []string{"the descriptor's number", "the call's number"} {
				then := calls[charge]
				then.Asked, then.Now = asked, start.Add(time.Hour+test.at)
				if got := modeOf(t, rules, then); got != test.want {
					t.Errorf("%s: got mode %v, want %v", charge, got, test.want)
				}
			}
		})
	}
}

// A refund does not count as asking, and is no charge.
func TestRefundOfATreeIsNoPeek(t *testing.T) {
	t.Parallel()
	rules := treeOf(t, branch("user", "", per("hour", 9)))
	asked := descriptor.NewAsked().Of(rules)
	desc := entries("user", "u")
	desc.Refund = true
	call := descriptor.Call{Descriptors: []descriptor.Descriptor{desc}, Asked: asked, Now: time.Unix(3600, 0)}
	var plan descriptor.Plan
	call.Domain = "d"
	rules.Plan(&call, &plan)
	if got := plan.Outcomes[0].Mode; got != limiter.Refund {
		t.Errorf("mode of a refund: got %v", got)
	}
	call.Descriptors[0].Refund, call.Hits = false, 3
	if got := modeOf(t, rules, call); got != limiter.Consume {
		t.Errorf("after a refund: got mode %v, want a take", got)
	}
}

// One request alone is never a charge, however young the process is.
func TestTheFirstRequestIsNoCharge(t *testing.T) {
	t.Parallel()
	rules := treeOf(t, branch("user", "", per("hour", 9)))
	call := descriptor.Call{Hits: 3, Descriptors: []descriptor.Descriptor{entries("user", "u")}, Now: time.Unix(1e9, 0)}
	for _, asked := range []*descriptor.AskedRules{nil, descriptor.NewAsked().Of(rules)} {
		call.Asked = asked
		if got := modeOf(t, rules, call); got != limiter.Consume {
			t.Errorf("got mode %v, want a take", got)
		}
	}
}

// Limits that would share a name in the statistics of envoyproxy/ratelimit have times of their own.
// A reload keeps the times of limits that stay.
func TestAskedGoesByTheWay(t *testing.T) {
	t.Parallel()
	start := time.Unix(1e9, 0)
	now := start.Add(time.Hour)
	old := treeOf(t, branch("a_b", "", per("hour", 9)), branch("a", "b", per("hour", 9)))
	asked := descriptor.NewAsked()
	of := asked.Of(old)
	modeOf(t, old, descriptor.Call{Descriptors: []descriptor.Descriptor{entries("a", "b")}, Asked: of, Now: now})
	reloaded := treeOf(t, branch("x", "", per("hour", 9)), branch("a", "b", per("hour", 10)), branch("a_b", "", per("hour", 9)))
	of = asked.Of(reloaded)
	for key, want := range map[string]limiter.Mode{"a": limiter.Charge, "a_b": limiter.Consume, "x": limiter.Consume} {
		call := descriptor.Call{Hits: 2, Descriptors: []descriptor.Descriptor{entries(key, "b")}, Asked: of, Now: now}
		if got := modeOf(t, reloaded, call); got != want {
			t.Errorf("%s after a reload: got mode %v, want %v", key, got, want)
		}
	}
	gone := treeOf(t, branch("x", "", per("hour", 9)))
	asked.Of(gone)
	of = asked.Of(reloaded)
	call := descriptor.Call{Hits: 2, Descriptors: []descriptor.Descriptor{entries("a", "b")}, Asked: of, Now: now}
	if got := modeOf(t, reloaded, call); got != limiter.Consume {
		t.Errorf("a limit that was gone: got mode %v, want a take", got)
	}
	alike := treeOf(t, branch("a=b", "", per("hour", 9)), branch("a", "b=", per("hour", 9)))
	asked.Of(alike)
	of = asked.Of(alike)
	modeOf(t, alike, descriptor.Call{Descriptors: []descriptor.Descriptor{entries("a", "b=")}, Asked: of, Now: now})
	if got := modeOf(t, alike, descriptor.Call{Hits: 2, Descriptors: []descriptor.Descriptor{entries("a=b", "")}, Asked: of, Now: now}); got != limiter.Consume {
		t.Errorf("a limit with a key that looks like another's way: got mode %v, want a take", got)
	}
}
