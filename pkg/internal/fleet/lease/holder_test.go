package lease_test

import (
	"testing"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/lease"
)

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

// While the outcome of a renewal is unknown, each request is covered and paid twice:
// by the lease with it and by the one without it.
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
		r.apply(r.ask(lease.Return)) // at once, on the image that refused it
		r.see()
		r.state(lease.None)
	})
	t.Run("unanswered", func(t *testing.T) {
		r, p := idle(t)
		r.h.Failed(r.now, p, true)
		r.state(lease.Unsettled)
		r.apply(p)
		r.see()
		r.state(lease.None)
	})
	t.Run("unanswered and not applied", func(t *testing.T) {
		r, p := idle(t)
		had := -p.Draw[0]
		r.h.Failed(r.now, p, true)
		if _, ok := r.h.Ask(r.now, r.clock(), 0.5); ok || r.h.Due(r.now) {
			t.Error("a lease write is due before the outcome of the return is known")
		}
		r.touch()
		r.see()
		r.state(lease.Held)
		if p = r.ask(lease.Return); -p.Draw[0] < had {
			t.Errorf("it gives %d back, want the %d that it had at least", -p.Draw[0], had)
		}
		r.apply(p)
		r.see()
		r.state(lease.None)
		if r.item.rate != lease.Parts || r.item.room != lease.Parts || r.item.lost != 0 {
			t.Errorf("centre: rate %d, room %d, %d lost; want all of it", r.item.rate, r.item.room, r.item.lost)
		}
	})
	t.Run("unanswered for a term", func(t *testing.T) {
		r, p := idle(t)
		r.h.Failed(r.now, p, true)
		r.now += lease.Term
		r.touch()
		r.see()
		r.state(lease.Ended)
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
