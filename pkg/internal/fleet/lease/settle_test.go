package lease_test

import (
	"testing"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/lease"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// Right after it was spent, a draw is taken back exactly.
func TestRefundUndoes(t *testing.T) {
	r := newRig(t)
	r.grant()
	before := r.stock()
	if !r.h.Covers(r.now, one(3)) {
		t.Fatal("no tokens")
	}
	r.h.Spend(one(3))
	if rest := r.h.Refund(r.now, 0, 3000); rest != 0 || r.stock() != before {
		t.Errorf("rest %d, stock %d, want 0, %d", rest, r.stock(), before)
	}
}

// A refund beyond the room of the lease is the centre's.
func TestRefundBeyondTheRoom(t *testing.T) {
	r := newRig(t)
	r.grant()
	r.now += 1000 // full again
	room := int64(r.item.slots[self].Room) * 1000
	r.h.Covers(r.now, one(1))
	r.h.Spend(one(1))
	if rest := r.h.Refund(r.now, 0, 5000); rest != 4000 {
		t.Errorf("rest: got %d, want 4000", rest)
	}
	if got := r.stock() * 1000; got != room {
		t.Errorf("stock: got %d, want %d", got, room)
	}
	if rest := newRig(t).h.Refund(r.now, 0, 5000); rest != 5000 {
		t.Errorf("rest without a lease: got %d, want 5000", rest)
	}
}

// A charge is paid from the stock, then from some refill to come; the rest is the centre's.
func TestCharge(t *testing.T) {
	r := newRig(t)
	r.grant()
	stock := r.stock()
	over := r.h.Overdraft(0, r.now, -10_000_000)
	if rate := int64(r.item.slots[self].Rate); over != rate*50 {
		t.Errorf("overdraft: got %d, want the refill of 50 ms, %d", over, rate*50)
	}
	if rest := r.h.Charge(r.now, 0, 1000, over); rest != 0 || r.stock() != stock-1 {
		t.Errorf("a charge that is covered: rest %d, stock %d, want 0, %d", rest, r.stock(), stock-1)
	}
	want := int64(500_000) - (stock-1)*1000 - over
	rest := r.h.Charge(r.now, 0, 500_000, over)
	if rest > want || rest < want-1000 {
		t.Errorf("rest: got %d, want %d or a part of a token less", rest, want)
	}
	if got := r.stock(); got != 0 {
		t.Errorf("stock in debt: got %d, want 0", got)
	}
	if rest := r.h.Charge(r.now, 0, 500, over); rest != 500 {
		t.Errorf("no more debt: rest %d, want 500", rest)
	}
}

func TestOverdraft(t *testing.T) {
	r := newRig(t)
	if got := r.h.Overdraft(0, r.now, -1000); got != 0 {
		t.Errorf("without a lease: got %d, want 0", got)
	}
	r.grant()
	if got := r.h.Overdraft(0, r.now, 0); got != 0 {
		t.Errorf("of a limit without debt: got %d, want 0", got)
	}
	if got := r.h.Overdraft(0, r.now, -7); got != 7 {
		t.Errorf("above a floor of -7: got %d, want 7", got)
	}
	r.item.buckets[0] = tokenbucket.Bucket{Tokens: -1, Refilled: r.now}
	r.touch()
	r.see()
	if got := r.h.Overdraft(0, r.now, -1000); got != 0 {
		t.Errorf("beside a centre in debt: got %d, want 0", got)
	}
}

// The debt of a lease is the centre's after the return.
func TestReturnOfDebt(t *testing.T) {
	r := newRig(t)
	r.grant()
	over := r.h.Overdraft(0, r.now, -10_000_000)
	before := r.centre()
	whole := before + r.stock()*1000
	rest := r.h.Charge(r.now, 0, 500_000, over)
	r.h.Recall()
	p := r.ask(lease.Return)
	if p.Draw[0] != over {
		t.Errorf("the lease takes %d from the centre, want its debt of %d", p.Draw[0], over)
	}
	r.apply(p)
	if got, want := r.centre()-rest, whole-500_000; got > want+1000 || got < want {
		t.Errorf("centre after the rest of the charge: got %d, want %d", got, want)
	}
}

// A centre in debt gets the share of the debt that the lease has of the rate, as far as
// the lease has tokens.
func TestCentreInDebt(t *testing.T) {
	r := newRig(t)
	r.grant()
	r.load(60, 2)
	r.item.buckets[0] = tokenbucket.Bucket{Tokens: -100_000, Refilled: r.now}
	r.touch()
	r.see()
	r.now = max(r.now, r.h.Wake())
	stock := r.stock() * 1000
	p := r.ask(lease.Renew)
	if want := -min(stock, 100_000*int64(p.Slot.Rate)/1000); p.Draw[0] > want+4000 || p.Draw[0] < want-4000 || want == 0 {
		t.Errorf("draw: got %d, want about %d", p.Draw[0], want)
	}
}

// A large request keeps tokens of the lease in its room while the centre is asked.
func TestKeep(t *testing.T) {
	keep := func(t *testing.T) (*rig, lease.Part) {
		t.Helper()
		r := newRig(t)
		r.grant()
		r.now += 500 // full
		stock := r.stock()
		r.verdict(stock+200, lease.Centre)
		part, rest, ok := r.h.Keep(r.now, one(stock+200))
		if !ok || rest[0] != 200_000 {
			t.Fatalf("rest %v, %v, want 200 tokens", rest, ok)
		}
		return r, part
	}
	r, part := keep(t)
	r.now += 500
	if got := r.stock(); got != 0 {
		t.Errorf("refill replaces %d of the tokens that are kept", got)
	}
	if !r.h.Settle(r.now, part, true) {
		t.Error("the lease is over")
	}
	if got := r.stock(); got != 0 {
		t.Errorf("stock after it was spent: got %d, want 0", got)
	}
	t.Run("denied", func(t *testing.T) {
		r, part := keep(t)
		if !r.h.Settle(r.now, part, false) || r.stock() == 0 {
			t.Errorf("stock: got %d, want that of before", r.stock())
		}
	})
	t.Run("the lease is over", func(t *testing.T) {
		r, part := keep(t)
		r.now += lease.Term
		r.h.Alive(r.clock())
		r.load(5, 1)
		r.apply(r.ask(lease.Grant))
		r.see()
		before := r.stock()
		if r.h.Settle(r.now, part, true) {
			t.Error("the tokens of a lease that is over are served")
		}
		if r.stock() != before {
			t.Errorf("stock of the new lease: got %d, want %d", r.stock(), before)
		}
	})
	t.Run("no return meanwhile", func(t *testing.T) {
		r, part := keep(t)
		r.now += 2000
		if p, ok := r.h.Ask(r.now, r.clock(), 0.5); ok && p.Kind == lease.Return {
			t.Error("it returns tokens that are kept")
		}
		r.h.Settle(r.now, part, false)
	})
	t.Run("two at once", func(t *testing.T) {
		r := newRig(t)
		r.grant()
		stock := r.stock()
		first, _, _ := r.h.Keep(r.now, one(1))
		_, rest, _ := r.h.Keep(r.now, one(stock+5))
		if rest[0] != 6000 {
			t.Errorf("rest of the second: got %d, want 6 tokens", rest[0])
		}
		r.h.Settle(r.now, first, false)
		if got := r.stock(); got != 1 {
			t.Errorf("stock: got %d, want the token that the first kept", got)
		}
	})
	t.Run("nothing to keep", func(t *testing.T) {
		if _, _, ok := newRig(t).h.Keep(r.now, one(5)); ok {
			t.Error("kept without a lease")
		}
	})
}

// A caller waits for more only if it can come before its deadline, and only if there is
// something to get.
func TestMiss(t *testing.T) {
	dry := func(t *testing.T, centre int64) *rig {
		t.Helper()
		r := newRig(t)
		r.grant()
		r.load(30, 1)
		r.item.buckets[0] = tokenbucket.Bucket{Tokens: centre, Refilled: r.now}
		r.touch()
		r.see()
		for range r.stock() {
			r.take(1)
		}
		return r
	}
	ask := func(r *rig, patience int64) lease.Verdict { return r.h.Miss(r.now, patience, one(1)) }
	if got := ask(dry(t, 500_000), 100); got != lease.Pull {
		t.Errorf("there is enough: got verdict %d, want %d", got, lease.Pull)
	}
	if got := ask(dry(t, 500_000), 3); got != lease.Denied {
		t.Errorf("it would come too late: got verdict %d, want %d", got, lease.Denied)
	}
	if got := ask(dry(t, 0), 100); got != lease.Denied {
		t.Errorf("there is nothing: got verdict %d, want %d", got, lease.Denied)
	}
	r := dry(t, 500_000)
	r.ask(lease.Renew)
	if got := ask(r, 100); got != lease.Wait {
		t.Errorf("a write is in flight: got verdict %d, want %d", got, lease.Wait)
	}
	if got := r.h.Miss(r.now, 100, one(1001)); got != lease.Denied {
		t.Errorf("more than the capacity: got verdict %d, want %d", got, lease.Denied)
	}
}

// The balance in a denial has the wait of the lease.
func TestReport(t *testing.T) {
	r := newRig(t)
	r.grant()
	all := r.stock()*1000 + r.centre()
	if got := r.h.Report(0, r.now, 1000, true).Tokens; got < all-1000 || got > all+1000 {
		t.Errorf("admitted: got %d, want about %d", got, all)
	}
	for range r.stock() {
		r.take(1)
	}
	p := r.item.limits[0]
	rate := int64(r.item.slots[self].Rate)
	got, ok := r.h.Report(0, r.now, 1000, false).RetryAfter(p, 1000, r.now)
	if want := 1000 / rate; !ok || got < want-want/5-1 || got > want+1 {
		t.Errorf("retry after %d ms, %v; the lease refills a token in %d", got, ok, want)
	}
	r.item.slots[peer] = lease.Slot{Seq: 1, Rate: 100, Room: 500, Stock: lease.EncodeStock(0.25), At: uint8(r.now / 32)}
	r.touch()
	r.see()
	before := r.centre()
	if got := r.h.Report(0, r.now, 1000, true).Tokens; got < before+249_000 || got > before+260_000 {
		t.Errorf("with the tokens of another: got %d, want %d more than the centre's %d", got, 250_000, before)
	}
}

// Both limits of an item have to cover a request, and both are paid.
func TestTwoLimits(t *testing.T) {
	limits := []tokenbucket.Params{
		{Capacity: 1_000_000, Amount: 1_000_000, Period: 1000},
		{Capacity: 60_000_000, Amount: 60_000_000, Period: 60_000},
	}
	r := rigOf(t, limiter.LeasePolicy{}, limits...)
	draws := []lease.Draw{{Limit: 0, Need: 1000, Take: 1000}, {Limit: 1, Need: 20_000, Take: 20_000}}
	for range 5 {
		r.now++
		r.h.Count(r.now, draws)
		r.h.Take(r.now, 100, draws)
	}
	p := r.ask(lease.Grant)
	r.apply(p)
	r.see()
	n := 0
	for r.h.Take(r.now, 100, draws) == lease.Admitted {
		n++
	}
	if n == 0 || int64(n) > p.Draw[1]/20_000 || int64(n) > p.Draw[0]/1000 {
		t.Errorf("%d requests of %v", n, p.Draw)
	}
	if r.h.Covers(r.now, draws) {
		t.Error("covered, but not taken")
	}
}
