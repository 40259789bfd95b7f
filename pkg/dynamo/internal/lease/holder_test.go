package lease_test

import (
	"testing"

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/lease"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// The first few requests are the centre's. Then a lease is worth its write.
func TestGrant(t *testing.T) {
	r := newRig(t)
	for range 3 {
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
	if p.Slot.Rate > 50 || p.Slot.Room > 500 || p.Slot.Room < 1 {
		t.Errorf("a first grant is small: got rate %d, room %d", p.Slot.Rate, p.Slot.Room)
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
			r.verdict(1, lease.Wait)
			r.apply(p)
			r.now += tt.later
			r.see()
			r.state(tt.want)
		})
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

// busy brings a holder whose lease has tokens to give: the demand has fallen.
func busy(t *testing.T) (*rig, *lease.Plan) {
	t.Helper()
	r := newRig(t)
	r.load(20, 20)
	for range 6 {
		p, ok := r.h.Ask(r.now, r.clock(), 0.5)
		if ok {
			r.apply(p)
			r.see()
		}
		r.load(60, 3)
	}
	r.state(lease.Held)
	for range 2000 {
		r.now++
		if r.now%20 == 0 {
			r.take(1)
		}
		if p, ok := r.h.Ask(r.now, r.clock(), 0.5); ok {
			if p.Kind == lease.Renew && p.Draw[0] < 0 {
				return r, p
			}
			r.apply(p)
			r.see()
		}
	}
	t.Fatal("no renewal gives tokens back")
	return nil, nil
}

// While the outcome of a renewal is not known, each request is covered and paid by the
// lease with it and by the one without it.
func TestServedByAllCandidates(t *testing.T) {
	r, p := busy(t)
	r.state(lease.Renewing)
	given := -p.Draw[0] / 1000
	least := r.stock()
	r.verdict(1, lease.Admitted)
	if got := r.stock(); got != least-1 {
		t.Errorf("after one token: got %d, want %d", got, least-1)
	}
	t.Run("refused", func(t *testing.T) {
		r, p := busy(t)
		least, at := r.stock(), r.now
		r.touch()
		r.item.apply(self, p)
		r.see()
		r.state(lease.Held)
		if got := r.stock(); r.now != at || got < least+given-1 || got > least+given+1 {
			t.Errorf("stock: got %d, want %d and the %d that were not given", got, least, given)
		}
	})
	t.Run("applied", func(t *testing.T) {
		r, p := busy(t)
		least := r.stock()
		r.apply(p)
		r.see()
		r.state(lease.Held)
		if got := r.stock(); got != least {
			t.Errorf("stock: got %d, want %d", got, least)
		}
	})
	t.Run("unanswered", func(t *testing.T) {
		r, p := busy(t)
		least := r.stock()
		r.h.Failed(r.now, p, true)
		r.state(lease.Held)
		if got := r.stock(); got != least {
			t.Errorf("stock: got %d, want %d while it may be applied", got, least)
		}
		r.apply(p)
		r.see()
		if got := r.stock(); got != least {
			t.Errorf("stock: got %d, want %d once it was seen", got, least)
		}
	})
}

// growing brings a holder whose renewal gets rate and room, and that has no tokens left.
func growing(t *testing.T) (*rig, *lease.Plan) {
	t.Helper()
	r := newRig(t)
	r.grant()
	r.load(40, 1)
	r.load(1, 20)
	r.now = max(r.now, r.h.Wake())
	for range r.stock() {
		r.take(1)
	}
	p := r.ask(lease.Renew)
	if p.Slot.Rate <= p.OldRate || p.Slot.Room <= p.OldRoom {
		t.Fatalf("rate %d after %d, room %d after %d: want more", p.Slot.Rate, p.OldRate, p.Slot.Room, p.OldRoom)
	}
	r.apply(p)
	return r, p
}

// New rate counts from the reply on.
func TestNewRateCountsFromTheReply(t *testing.T) {
	r, p := growing(t)
	r.now += 100
	r.see()
	drawn := p.Draw[0] / 1000
	if got, most := r.stock(), drawn+int64(p.OldRate)*100/1000; got > most+1 {
		t.Errorf("stock after 100 ms without a reply: got %d, want %d at most", got, most+1)
	}
	for range r.stock() {
		r.take(1)
	}
	r.now += 20
	if got, want := r.stock(), int64(p.Slot.Rate)*20/1000; got < want-1 {
		t.Errorf("stock 20 ms after the reply: got %d, want %d", got, want)
	}
}

// An idle lease is returned with all its tokens, and serves nothing meanwhile.
func TestReturn(t *testing.T) {
	idle := func(t *testing.T) (*rig, *lease.Plan) {
		t.Helper()
		r := newRig(t)
		r.grant()
		r.now += 2000
		return r, r.ask(lease.Return)
	}
	r, p := idle(t)
	r.state(lease.Returning)
	r.verdict(1, lease.Wait)
	r.apply(p)
	r.see()
	r.state(lease.None)
	if r.item.rate != lease.Parts || r.item.room != lease.Parts || r.centre() != 1_000_000 || r.item.lost != 0 {
		t.Errorf("centre: rate %d, room %d, %d tokens, %d lost; want all of it", r.item.rate, r.item.room, r.centre(), r.item.lost)
	}
	t.Run("refused", func(t *testing.T) {
		r, p := idle(t)
		r.touch()
		r.item.apply(self, p)
		r.see()
		r.state(lease.Held)
		if _, ok := r.h.Ask(r.now, r.clock(), 0.5); ok {
			t.Error("it is tried again at once: holders that fall idle together refuse each other")
		}
		r.now = r.h.Wake()
		r.apply(r.ask(lease.Return))
		r.see()
		r.state(lease.None)
	})
	t.Run("unanswered", func(t *testing.T) {
		r, p := idle(t)
		r.h.Failed(r.now, p, true)
		r.state(lease.Ended)
		r.apply(p)
		r.see()
		r.state(lease.None)
	})
	t.Run("unanswered and not applied", func(t *testing.T) {
		r, p := idle(t)
		r.h.Failed(r.now, p, true)
		r.touch()
		r.see()
		r.state(lease.Ended)
		r.now = max(r.now, r.h.Wake())
		p = r.ask(lease.Return) // of the slot that is not served any more
		r.state(lease.Clearing)
		if p.Draw[0] != 0 {
			t.Errorf("it gives %d back: its tokens count as spent", -p.Draw[0])
		}
		r.apply(p)
		r.see()
		r.state(lease.None)
		if r.item.rate != lease.Parts || r.item.room != lease.Parts {
			t.Errorf("centre: rate %d, room %d, want all of it", r.item.rate, r.item.room)
		}
	})
}

// A lease is over a term after the send, by the monotonic clock, by the wall clock, or
// when the era of the clock changes.
func TestEnd(t *testing.T) {
	tests := map[string]struct {
		change func(r *rig)
		alive  bool
	}{
		"within the term":                            {func(r *rig) { r.now += lease.Term - 5 }, true},
		"after the term from before the send":        {func(r *rig) { r.now += lease.Term - 4 }, false},
		"the monotonic clock stood still":            {func(r *rig) { r.now += lease.Term; r.stood = lease.Term }, false},
		"the wall clock was set back":                {func(r *rig) { r.now += lease.Term; r.back = lease.Term }, false},
		"both stood still, and the era is another":   {func(r *rig) { r.era++ }, false},
		"wall clock set forward":                     {func(r *rig) { r.back = -lease.Term }, false},
		"the wall clock was set back, in the term":   {func(r *rig) { r.back = lease.Term }, true},
		"the monotonic clock stood, within the term": {func(r *rig) { r.now += 1000; r.stood = 1000 }, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.grant() // the reply came 4 ms after the send
			tt.change(r)
			covered := r.h.Covers(r.now, one(1))
			if got := r.h.Alive(r.clock()); got != tt.alive {
				t.Fatalf("alive: got %v, want %v", got, tt.alive)
			}
			if !covered {
				t.Error("the lease had no token: the test shows nothing")
			}
			if !tt.alive {
				r.state(lease.Ended)
				if r.h.Covers(r.now, one(1)) {
					t.Error("a lease that is over is served")
				}
			}
		})
	}
}

// A renewal whose outcome is not known does not lengthen the term.
func TestUnknownRenewalDoesNotLengthenTheTerm(t *testing.T) {
	r := newRig(t)
	r.grant()
	r.load(1000, 1)
	r.h.Failed(r.now, r.ask(lease.Renew), true)
	r.now += lease.Term - 1004 + 1
	if r.h.Alive(r.clock()) {
		t.Error("the lease lives on")
	}
}

// After its end the lease may still be in the slot. The next grant takes it over, and
// counts its tokens as spent.
func TestGrantAfterTheEnd(t *testing.T) {
	r := newRig(t)
	r.grant()
	had := r.stock()
	r.now += lease.Term
	if r.h.Alive(r.clock()) {
		t.Fatal("not over")
	}
	r.load(5, 1)
	before := r.centre()
	p := r.ask(lease.Grant)
	if p.OldRoom == 0 || had == 0 {
		t.Fatalf("no slot was left: %+v", p)
	}
	r.apply(p)
	if got := r.centre(); got > before {
		t.Errorf("the centre has %d after %d: the tokens of the old lease came back", got, before)
	}
	r.see()
	r.state(lease.Held)
}

// A slot that another replica reaped ends the lease at once; so does one that this holder
// did not write.
func TestSlotIsAnother(t *testing.T) {
	t.Run("reaped", func(t *testing.T) {
		r := newRig(t)
		r.grant()
		r.item.reap(self, r.now)
		r.see()
		r.state(lease.None)
		r.verdict(1, lease.Pull)
	})
	t.Run("not its own", func(t *testing.T) {
		r := newRig(t)
		r.grant()
		s := r.item.slots[self]
		s.Seq += 77
		r.item.slots[self] = s
		r.touch()
		r.see()
		r.state(lease.Ended)
	})
}

// An image that is older than one seen before tells nothing.
func TestOlderImage(t *testing.T) {
	r := newRig(t)
	old := r.item.view(self)
	r.grant()
	r.h.Seen(r.now, r.clock(), old)
	r.state(lease.Held)
}

func TestRecall(t *testing.T) {
	tests := map[string]func(r *rig){
		"by the holder": func(r *rig) { r.h.Recall() },
		"by the policy": func(r *rig) { r.h.Tune(limiter.LeasePolicy{None: true}, 4) },
		"by another replica": func(r *rig) {
			r.item.slots[peer] = lease.Slot{Seq: 1, Demand: lease.Wish, At: uint8(r.now / 32)}
			r.touch()
			r.see()
		},
		"by the item": func(r *rig) {
			r.touch()
			v := r.item.view(self)
			v.Recall = true
			r.h.Seen(r.now, r.clock(), v)
		},
	}
	for name, recall := range tests {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.grant()
			recall(r)
			r.verdict(1, lease.Admitted) // until the return is sent
			r.verdict(1000, lease.Centre)
			if !r.h.Due(r.now) {
				t.Error("no write is due")
			}
			r.apply(r.ask(lease.Return))
			r.see()
			r.load(5, 1)
			if name != "by the item" { // whose next image says otherwise
				r.verdict(1, lease.Centre)
				r.state(lease.None)
			}
		})
	}
}

// A wish returns the own lease, and leaves a slot without parts that asks all others.
func TestWish(t *testing.T) {
	r := newRig(t)
	r.grant()
	r.h.Wish(r.now)
	r.apply(r.ask(lease.WishBack))
	r.see()
	r.state(lease.None)
	s := r.item.slots[self]
	if s.Demand != lease.Wish || s.Rate != 0 || s.Room != 0 || r.item.room != lease.Parts {
		t.Errorf("slot %+v, centre with room %d", s, r.item.room)
	}
	if p, ok := r.h.Ask(r.now, r.clock(), 0.5); ok {
		t.Errorf("it writes again: %+v", p)
	}
	r.now += 5000
	if p := r.ask(lease.Return); p.OldRoom != 0 {
		t.Errorf("the slot had room %d", p.OldRoom)
	}
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

// A lease is worth it where requests are small beside the capacity and the refill of a
// second, and where the share of each limit is in range.
func TestWorth(t *testing.T) {
	tests := map[string]struct {
		limit tokenbucket.Params
		want  lease.Verdict
	}{
		"enough":                   {tokenbucket.Params{Capacity: 16_000, Amount: 16_000, Period: 1000}, lease.Pull},
		"too little capacity":      {tokenbucket.Params{Capacity: 15_999, Amount: 16_000, Period: 1000}, lease.Centre},
		"too little refill":        {tokenbucket.Params{Capacity: 16_000, Amount: 15_999, Period: 1000}, lease.Centre},
		"a minute's limit":         {tokenbucket.Params{Capacity: 100_000, Amount: 100_000, Period: 60_000}, lease.Centre},
		"a large day's limit":      {tokenbucket.Params{Capacity: 1e12, Amount: 1e12, Period: day}, lease.Pull},
		"a share is just in range": {tokenbucket.Params{Capacity: 1e12, Amount: 1e12 - 1, Period: 1000}, lease.Pull},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := rigOf(t, limiter.LeasePolicy{}, tt.limit)
			r.take(1)
			r.take(1)
			r.take(1)
			r.verdict(1, tt.want)
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
}
