package lease_test

import (
	"testing"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/lease"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// The first few requests are the centre's. Then a lease is worth its write.
func TestGrant(t *testing.T) {
	r := newRig(t)
	for range 2 {
		r.verdict(1, lease.Centre)
	}
	r.verdict(1, lease.Pull)
	if !r.h.Due(r.now) {
		t.Error("no lease write is due")
	}
	p := r.ask(lease.Grant)
	r.state(lease.Granting)
	r.verdict(1, lease.Wait)
	r.apply(p)
	r.verdict(1, lease.Wait)
	r.now += 4
	r.see()
	r.state(lease.Held)
	r.verdict(1, lease.Admitted)
	if !r.h.Alive(r.clock()) {
		t.Error("the lease is over at once")
	}
	if p.Slot.Rate > 500 || p.Slot.Room > 500 || p.Slot.Room < 1 {
		t.Errorf("a first grant is half at most: got rate %d, room %d", p.Slot.Rate, p.Slot.Room)
	}
}

// A refused grant is planned anew at once: the image is new.
func TestGrantRefused(t *testing.T) {
	r := newRig(t)
	r.load(5, 1)
	p := r.ask(lease.Grant)
	r.touch()
	if r.item.apply(self, p) {
		t.Fatal("it was applied to another version")
	}
	r.see()
	r.state(lease.None)
	r.verdict(1, lease.Pull)
	r.apply(r.ask(lease.Grant))
	r.see()
	r.state(lease.Held)
}

// A grant without a reply is served once an image shows it, as long as its term lasts.
func TestGrantUnanswered(t *testing.T) {
	for name, tt := range map[string]struct {
		later int64
		want  lease.State
	}{"soon": {1000, lease.Held}, "after the term": {lease.Term, lease.Ended}} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.load(5, 1)
			p := r.ask(lease.Grant)
			r.h.Failed(r.now, p, true)
			r.state(lease.None)
			r.verdict(1, lease.Centre) // the next grant is not due
			r.apply(p)
			r.now += tt.later
			r.see()
			r.state(tt.want)
		})
	}
}

// A request waits for a grant that is due, and for no other one: its caller may have no deadline,
// and be the only one.
func TestNoRequestWaitsForAGrantThatIsNotPlanned(t *testing.T) {
	r := newRig(t)
	r.load(50, 1)
	r.verdict(1, lease.Pull)
	r.h.Failed(r.now, r.ask(lease.Grant), true)
	r.touch()
	r.see()
	r.state(lease.None)
	r.now += 60 // no request came since
	if got := r.h.Take(r.now, 1000, []lease.Draw{{Need: 1000, Take: 1000}}); got != lease.Centre {
		t.Errorf("the request that waits alone: got verdict %d, want %d", got, lease.Centre)
	}
	r.load(5, 1)
	r.verdict(1, lease.Pull)
}

// Another replica's clock is ahead, so the item was refilled later than this replica's now. The
// demand goes on by the replica's own clock: a request that waits for a grant gets it.
func TestGrantBehindTheClockOfTheItem(t *testing.T) {
	r := newRig(t)
	r.item.take(r.item.version, r.now+60_000, 1000, 0)
	r.see()
	r.load(50, 1)
	r.verdict(1, lease.Pull)
	r.apply(r.ask(lease.Grant))
	r.see()
	r.state(lease.Held)
	r.verdict(1, lease.Admitted)
	if p, ok := r.h.Ask(r.now, r.clock(), 0.5); ok && p.Kind == lease.Return {
		r.t.Error("the lease is returned at once, while requests come")
	}
}

func TestGrantUnansweredAndNotApplied(t *testing.T) {
	r := newRig(t)
	r.load(5, 1)
	p := r.ask(lease.Grant)
	r.h.Failed(r.now, p, true)
	r.touch()
	r.see()
	r.state(lease.None)
	if r.item.apply(self, p) {
		t.Fatal("it was applied to another version")
	}
	r.now += 2000
	r.load(5, 1)
	r.apply(r.ask(lease.Grant))
	r.see()
	r.state(lease.Held)
}

// A write that was not sent leaves everything as it was.
func TestNotSent(t *testing.T) {
	r := newRig(t)
	r.load(5, 1)
	r.h.Failed(r.now, r.ask(lease.Grant), false)
	r.state(lease.None)
	r.verdict(1, lease.Pull)
	r.apply(r.ask(lease.Grant))
	r.now += 4
	r.see()
	before := r.stock()
	r.now = r.h.Wake()
	p := r.ask(lease.Renew)
	r.h.Failed(r.now, p, false)
	r.state(lease.Held)
	if got := r.stock(); got < before {
		t.Errorf("stock: got %d, want %d at least", got, before)
	}
	r.h.Failed(r.now, p, true) // of a write that ended
	r.state(lease.Held)
}

func TestPolicy(t *testing.T) {
	r := rigOf(t, limiter.LeasePolicy{Max: 20_000}, tokenbucket.Params{Capacity: 1_000_000, Amount: 1_000_000, Period: 1000})
	r.load(5, 5)
	p := r.ask(lease.Grant)
	if p.Draw[0] > 20_000 || p.Slot.Room > 20 {
		t.Errorf("got %d tokens and room %d, more than the policy allows", p.Draw[0], p.Slot.Room)
	}
	none := rigOf(t, limiter.LeasePolicy{None: true}, tokenbucket.Params{Capacity: 1_000_000, Amount: 1_000_000, Period: 1000})
	none.load(5, 5)
	none.verdict(1, lease.Centre)
	small := rigOf(t, limiter.LeasePolicy{Max: 999}, tokenbucket.Params{Capacity: 1_000_000, Amount: 1_000_000, Period: 1000})
	small.load(5, 5)
	small.verdict(1, lease.Centre)
}

// A lease is worth it under two conditions. Requests are small beside the capacity, and beside
// the refill of a second or the tokens that are left. The share of each limit is in range.
func TestWorth(t *testing.T) {
	tests := map[string]struct {
		limit tokenbucket.Params
		want  lease.Verdict
	}{
		"enough":                   {tokenbucket.Params{Capacity: 16_000, Amount: 16_000, Period: 1000}, lease.Pull},
		"too little capacity":      {tokenbucket.Params{Capacity: 15_999, Amount: 16_000, Period: 1000}, lease.Centre},
		"too little refill":        {tokenbucket.Params{Capacity: 16_000, Amount: 15_999, Period: 1000}, lease.Centre},
		"a minute's limit":         {tokenbucket.Params{Capacity: 100_000, Amount: 100_000, Period: 60_000}, lease.Centre},
		"just enough tokens":       {tokenbucket.Params{Capacity: 1_024_000, Amount: 1000, Period: day}, lease.Pull},
		"too few tokens":           {tokenbucket.Params{Capacity: 1_023_999, Amount: 1000, Period: day}, lease.Centre},
		"a large day's limit":      {tokenbucket.Params{Capacity: 1e12, Amount: 1e12, Period: day}, lease.Pull},
		"a share is just in range": {tokenbucket.Params{Capacity: 1e12, Amount: 1e12 - 1, Period: 1000}, lease.Pull},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := rigOf(t, limiter.LeasePolicy{}, tt.limit)
			r.take(1)
			r.take(1)
			r.verdict(1, tt.want)
		})
	}
}

// Where others lease of a slow limit its last tokens are leased too: the plain writes of one
// replica would keep the others from them.
func TestALeaseBesideOthers(t *testing.T) {
	r := rigOf(t, limiter.LeasePolicy{}, tokenbucket.Params{Capacity: 500_000, Amount: 1000, Period: day})
	r.load(3, 1)
	r.verdict(1, lease.Centre)
	r.item.slots[peer] = lease.Slot{Seq: 1, Rate: 100, Room: 100}
	r.touch()
	r.see()
	r.verdict(1, lease.Pull)
}

// Requests that come one by one are worth a lease only if many come in a second.
func TestSteadyDemand(t *testing.T) {
	for name, tt := range map[string]struct {
		gap  int64 // ms
		want bool
	}{"two in a second": {500, false}, "five in a second": {200, false}, "twelve in a second": {83, true}} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			for range 100 {
				r.now += tt.gap
				r.take(1)
			}
			if got := r.h.Wanted(r.now); got != tt.want {
				t.Errorf("worth a lease: got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestNoLeaseOutOfRange(t *testing.T) {
	limit := tokenbucket.Params{Capacity: 1e12, Amount: 1e12 + 1, Period: 1000}
	h := lease.New([]tokenbucket.Params{limit}, limiter.LeasePolicy{}, 0)
	for range 100 {
		h.Count(1000, one(1))
	}
	if got := h.Take(1000, 100, one(1)); got != lease.Centre {
		t.Errorf("got verdict %d, want %d", got, lease.Centre)
	}
	if p, ok := h.Ask(1000, lease.Clock{}, 0); ok || h.Wanted(1000) {
		t.Errorf("it asks for a lease: %+v", p)
	}
}

// An item has no more slots than it can hold.
func TestMostHolders(t *testing.T) {
	r := newRig(t)
	for i := range lease.MaxHolders {
		r.item.slots[i+1] = lease.Slot{Seq: 1}
	}
	r.touch()
	r.see()
	r.load(5, 1)
	if p, ok := r.h.Ask(r.now, r.clock(), 0.5); ok {
		t.Errorf("a grant beside %d holders: %+v", lease.MaxHolders, p)
	}
	r.verdict(1, lease.Centre)
	if r.h.Wanted(r.now) {
		t.Error("plain writes wait for a lease that cannot be had")
	}
}

// A lease that was returned as no request came is not asked for again before one does.
func TestNoGrantWithoutRequest(t *testing.T) {
	r := newRig(t)
	r.grant()
	r.load(200, 5)
	r.see()
	for range 50 {
		if p, ok := r.h.Ask(r.now, r.clock(), 0.5); ok {
			r.apply(p)
			r.see()
			if p.Kind == lease.Return {
				break
			}
		}
		r.now += 10
	}
	r.state(lease.None)
	if r.h.Wanted(r.now) {
		t.Error("a lease is wanted")
	}
	if p, ok := r.h.Ask(r.now, r.clock(), 0.5); ok {
		t.Errorf("got a plan of kind %d, want none", p.Kind)
	}
	r.verdict(1, lease.Pull)
	r.ask(lease.Grant)
}

// TestAPullBringsTheNeedOfTheRequest: where a bucket is almost empty the share of a lease is less
// than a token. A renewal for a request that waits brings its tokens all the same, if the
// centre has them, and some more. Without them the next renewal followed at once, for as long
// as the request waited.
func TestAPullBringsTheNeedOfTheRequest(t *testing.T) {
	for _, need := range []int64{1, 4} {
		r := rigOf(t, limiter.LeasePolicy{}, tokenbucket.Params{Capacity: 1_000_000, Amount: 100_000, Period: 1000})
		r.grant()
		r.drain(29)
		r.verdict(need, lease.Pull)
		p := r.ask(lease.Renew)
		r.apply(p)
		r.see()
		r.verdict(need, lease.Admitted)
		if got := r.stock(); got > 8 {
			t.Errorf("of 29 tokens the lease has %d for the next requests", got)
		}
		if lost := r.item.lost; lost != 0 {
			t.Errorf("%d millitokens had no place", lost)
		}
	}
}

// drain has some requests a second come, renewals among them, until the bucket has few tokens: the
// lease none, and the centre as many as are left.
func (r *rig) drain(left int64) {
	r.t.Helper()
	for i := range 120 {
		r.now += 40
		r.take(1)
		if p, ok := r.h.Ask(r.now, r.clock(), 0.5); ok {
			r.apply(p)
		}
		if i > 80 {
			for r.h.Covers(r.now, one(1)) {
				r.h.Spend(one(1))
			}
			r.item.buckets[0].Tokens -= r.centre() - left*1000
			r.touch()
		}
		r.see()
	}
}
