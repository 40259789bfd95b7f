package lease_test

import (
	"testing"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/lease"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// rig is one replica at an item, in steps that a test takes.
type rig struct {
	t     *testing.T
	item  centre
	h     *lease.Holder
	now   int64
	stood int64 // ms that the monotonic clock stood still
	back  int64 // ms that the wall clock was set back
	era   uint64
}

const self, peer = 0, 1

// newRig has a limit of 1000 tokens a second, holding as many, and an item that is full.
func newRig(t *testing.T) *rig {
	t.Helper()
	return rigOf(t, limiter.LeasePolicy{}, tokenbucket.Params{Capacity: 1_000_000, Amount: 1_000_000, Period: 1000})
}

func rigOf(t *testing.T, policy limiter.LeasePolicy, limits ...tokenbucket.Params) *rig {
	t.Helper()
	r := &rig{t: t, item: newCentre(limits), now: 1_800_000_000_000}
	r.h = lease.New(limits, policy, 0)
	r.item.create(r.now)
	r.item.version.Serial++
	r.see()
	return r
}

func (r *rig) clock() lease.Clock {
	return lease.Clock{Mono: r.now - r.stood, Wall: r.now - r.back, Era: r.era}
}

// see has the holder see the item.
func (r *rig) see() { r.h.Seen(r.now, r.clock(), r.item.view(self)) }

// touch has another replica write the item.
func (r *rig) touch() { r.item.version.Serial++ }

// one is a request for tokens of the first limit.
func one(tokens int64) []lease.Draw {
	return []lease.Draw{{Limit: 0, Need: tokens * 1000, Take: tokens * 1000}}
}

// take asks for tokens, by a caller that waits for a long time.
func (r *rig) take(tokens int64) lease.Verdict {
	r.h.Count(r.now, one(tokens))
	return r.h.Take(r.now, 1000, one(tokens))
}

// load has requests for one token come, that many in each of some ms.
func (r *rig) load(ms, each int) {
	for range ms {
		r.now++
		for range each {
			r.take(1)
		}
	}
}

// ask returns the plan that is due.
func (r *rig) ask(want lease.Kind) *lease.Plan {
	r.t.Helper()
	p, ok := r.h.Ask(r.now, r.clock(), 0.5)
	if !ok {
		r.t.Fatalf("no plan in state %v, want kind %d", r.h.State(), want)
	}
	if p.Kind != want {
		r.t.Fatalf("plan of kind %d, want %d", p.Kind, want)
	}
	return p
}

// apply applies a plan, whose reply has not come.
func (r *rig) apply(p *lease.Plan) {
	r.t.Helper()
	if !r.item.apply(self, p) {
		r.t.Fatal("the plan was refused")
	}
}

// grant brings the holder a lease, after some demand.
func (r *rig) grant() {
	r.t.Helper()
	r.load(5, 1)
	r.apply(r.ask(lease.Grant))
	r.now += 4
	r.see()
	r.state(lease.Held)
}

func (r *rig) state(want lease.State) {
	r.t.Helper()
	if got := r.h.State(); got != want {
		r.t.Fatalf("state: got %v, want %v", got, want)
	}
}

func (r *rig) verdict(tokens int64, want lease.Verdict) {
	r.t.Helper()
	if got := r.take(tokens); got != want {
		r.t.Errorf("request for %d tokens in state %v: got verdict %d, want %d", tokens, r.h.State(), got, want)
	}
}

// stock returns the whole tokens that the lease serves.
func (r *rig) stock() int64 {
	n := int64(0)
	for r.h.Covers(r.now, one(n+1)) {
		n++
	}
	return n
}

// centre returns the millitokens of the centre.
func (r *rig) centre() int64 { return r.item.buckets[0].Available(r.item.params(0), r.now) }
