package lease_test

import (
	"testing"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/lease"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

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
			lost, got := r.h.Lapsed()
			if got == tt.alive || lost > 0 == tt.alive {
				t.Errorf("lapsed: got %v with %d millitokens, want %v", got, lost, !tt.alive)
			}
			if lost, again := r.h.Lapsed(); again || lost > 0 {
				t.Error("it lapsed twice")
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

// A renewal without a reply that an image shows not to be applied is planned anew soon, not at the time of the next one:
// two such losses would end the lease. Nor is it planned at once, as long as replies are lost.
func TestALostRenewalIsPlannedAnew(t *testing.T) {
	for _, seen := range []bool{false, true} {
		r := newRig(t)
		r.grant()
		renewal := func() *lease.Plan {
			for !r.h.Due(r.now) {
				r.now += 9
				r.load(1, 1)
			}
			return r.ask(lease.Renew)
		}
		for range 5 { // each one is later than the one before
			r.apply(renewal())
			r.see()
		}
		r.h.Failed(r.now, renewal(), true)
		if seen {
			r.touch()
			r.see()
		}
		if r.h.Due(r.now) {
			t.Errorf("seen %t: a lost renewal is planned anew at once", seen)
		}
		r.now += 60
		if got := r.h.Due(r.now); got != seen {
			t.Errorf("seen %t: due in 60 ms: %t", seen, got)
		}
	}
}

// A return loses no tokens, with any end. The exception is one without a reply, whose lease is over
// before an image shows its outcome.
func TestLapsedAfterAReturn(t *testing.T) {
	unanswered := func(r *rig, p *lease.Plan) { r.h.Failed(r.now, p, true) }
	tests := map[string]struct {
		end    func(r *rig, p *lease.Plan)
		lapsed bool
	}{
		"applied":                    {func(r *rig, p *lease.Plan) { r.apply(p); r.see() }, false},
		"refused":                    {func(r *rig, _ *lease.Plan) { r.touch(); r.see() }, false},
		"not sent":                   {func(r *rig, p *lease.Plan) { r.h.Failed(r.now, p, false) }, false},
		"unanswered":                 {unanswered, false},
		"unanswered and applied":     {func(r *rig, p *lease.Plan) { unanswered(r, p); r.apply(p); r.see() }, false},
		"unanswered and not applied": {func(r *rig, p *lease.Plan) { unanswered(r, p); r.touch(); r.see() }, false},
		"unanswered for a term": {func(r *rig, p *lease.Plan) {
			unanswered(r, p)
			r.now += lease.Term
			r.h.Alive(r.clock())
		}, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.grant()
			r.h.Recall()
			tt.end(r, r.ask(lease.Return))
			if lost, got := r.h.Lapsed(); got != tt.lapsed || lost > 0 != tt.lapsed {
				t.Errorf("lapsed: got %v with %d millitokens, want %v", got, lost, tt.lapsed)
			}
		})
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
		if lost, lapsed := r.h.Lapsed(); !lapsed || lost == 0 {
			t.Errorf("lapsed: %v with %d millitokens, want those of the lease", lapsed, lost)
		}
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

// An image that is older than one seen before is ignored.
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
