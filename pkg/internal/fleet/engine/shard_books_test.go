package engine_test

import (
	"testing"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/engine"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/plan"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// A charge or a refund that is more than one shard holds goes to all of them in parts. Together they book it
// once, and count it once as usage.
func TestPartsOfAChargeAreTheWhole(t *testing.T) {
	full := capacity / 4 * int64(limiter.Milli)
	for name, tt := range map[string]struct {
		give, cost int64
		parts      int
	}{
		"a charge that one shard holds":   {0, full, 1},
		"a charge of several shards":      {0, full + 1, 4},
		"a refund that one shard holds":   {full, 0, 1},
		"a refund of several shards":      {full + 1, 0, 4},
		"a charge that none divides":      {0, 3*full + 3, 4},
		"a refund and charge, of several": {full + 2, full + 5, 4},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGrove(t, []int64{full, full, full, full})
			for i := range g.states {
				g.sees(i)
			}
			op := &plan.Request{Limits: g.limits, Generation: 1, Spends: []plan.Spend{{Limit: "l", Give: tt.give, Cost: tt.cost, Usage: tt.cost - tt.give}}}
			b := engine.NewBranch(g.id, op, 0, now)
			defer b.Leave()
			parts := b.Next(&g.forest, atNow)
			sum := plan.Spend{Limit: "l"}
			for _, p := range parts {
				sp := p.Request.Spends[0]
				sum.Give, sum.Cost, sum.Usage = sum.Give+sp.Give, sum.Cost+sp.Cost, sum.Usage+sp.Usage
			}
			if len(parts) != tt.parts || sum != op.Spends[0] {
				t.Errorf("%d parts book %+v together, want %d and %+v", len(parts), sum, tt.parts, op.Spends[0])
			}
		})
	}
}

// A process has one request at a time take from several shards, if one shard could hold it. It ends with its
// branch, and not with that of another one. After two wanted to at a time none does for a while.
func TestOneRequestGathers(t *testing.T) {
	g := newGrove(t, []int64{10_000, 10_000, 10_000, 10_000})
	for i := range g.states {
		g.sees(i)
	}
	at := atNow()
	clock := func() time.Time { return at }
	gathers := func() (*engine.Branch, bool) {
		op := &plan.Request{Limits: g.limits, Generation: 1, Spends: []plan.Spend{{Limit: "l", Need: 20_000, Take: 20_000}}}
		b := engine.NewBranch(g.id, op, 0, now)
		for _, p := range b.Next(&g.forest, clock) {
			g.decide(p.Index, p.Request)
		}
		b.Harvest()
		return b, len(b.Next(&g.forest, clock)) > 0
	}
	for range 2 { // one after the other
		alone, ok := gathers()
		if !ok {
			t.Fatal("a request alone does not take from several shards")
		}
		alone.Leave()
	}
	first, _ := gathers()
	second, ok := gathers()
	if ok || !second.Denied() {
		t.Error("two requests take from several shards at a time")
	}
	second.Leave()
	at = at.Add(time.Second)
	if _, ok := gathers(); ok {
		t.Error("the end of another request lets a third one in")
	}
	first.Leave()
	at = at.Add(engine.CrowdedPause - 1)
	if _, ok := gathers(); ok {
		t.Error("a request takes from several shards soon after two wanted to at a time")
	}
	at = at.Add(1)
	third, ok := gathers()
	if !ok {
		t.Fatal("no other request takes from several shards after the end of the first")
	}
	third.Leave()
	at = at.Add(-time.Hour)
	if _, ok := gathers(); !ok {
		t.Error("a request does not take from several shards after the time of day was set back")
	}
}
