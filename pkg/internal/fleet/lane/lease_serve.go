package lane

import (
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/lease"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// lessee holds the lease of a lane. It is the [leasing] of each lane.
type lessee struct {
	*item
	*requests
	*traffic
	*wakes

	view *view
	held *held
	divider

	closer  *closer
	sender  *sender
	turner  *turner
	usages  *usages
	keeper  *keeper
	listing listing
}

// serve decides a request from the lease, if it can.
func (l *lessee) serve(r *Request, now time.Time) (s served, due bool) {
	waits, done := l.decide(r, now)
	switch {
	case done:
		s = byLease
	case !waits:
		return byItem, false
	case l.held.holder.State().Serves():
		s = byUpdate
	default:
		s = byGrant
	}
	h := l.held.holder
	return s, h != nil && h.Due(l.view.now)
}

// decide is serve. It reports whether the request is to wait for a lease write, and whether it has an
// end.
func (l *lessee) decide(r *Request, now time.Time) (waits, done bool) {
	h := l.held
	if !l.leases(r) || r.apart {
		return false, false
	}
	if r.state.owes() {
		return l.payOwed(r, now)
	}
	draws, ok := h.draws(r.Request)
	if !ok {
		return false, false
	}
	l.count(r, draws)
	if len(draws) == 0 {
		return false, l.pay(r, now)
	}
	at := l.view.now
	switch {
	case r.part != nil:
		return false, false // the centre has to give the rest
	case r.Books():
		l.keep(r, draws, false)
		return l.cedes(), false // the centre has to book the charge
	}
	switch h.holder.Take(at, r.patience(now).Milliseconds(), draws) {
	case lease.Admitted:
		if !h.holder.Alive(l.host.clocks(l.host.cfg.Now())) { // rule: a lease is alive after its spend
			return false, false
		}
		h.ledger.Draw(draws)
		h.tell(r.Request, l.view.state, at, true)
		l.served(r)
		return false, true
	case lease.Denied:
		if !h.holder.State().Serves() && !l.view.fresh(r.asked, now) { // rule: a request that waits for a lease is denied by a fresh state
			return !l.rests(now), false
		}
		if l.sole() && l.keep(r, draws, true) {
			return false, false
		}
		h.tell(r.Request, l.view.state, at, false)
		if r.Admitted = false; !exceeds(r) {
			return true, false
		}
		l.served(r)
		return false, true
	case lease.Wait, lease.Pull:
		return !l.rests(now), false // rule: a request waits for no lease write that is not sent
	case lease.Centre:
		l.keep(r, draws, false)
		return l.cedes(), false
	}
	return false, false
}

// rests reports whether no lease is asked for so soon after a write of one had no reply. Until
// then the item decides.
func (l *lessee) rests(now time.Time) bool {
	return now.Before(l.held.rest) && !l.held.holder.State().Serves()
}

// exceeds reports whether a request was found to exceed a limit.
func exceeds(r *Request) bool {
	for i := range r.Spends {
		if r.Spends[i].Exceeded {
			return true
		}
	}
	return false
}

// served ends a request that the lease decided.
func (l *lessee) served(r *Request) {
	l.host.Counters.Served.Add(1)
	l.closer.finish(r, nil)
}

// leases reports whether the lease may have to do with a request, and sees to a holder.
func (l *lessee) leases(r *Request) bool {
	h, v := l.held, l.view
	if r.Asks && r.state.awaited() {
		if h.policy = r.Policy; h.holder != nil {
			h.holder.Tune(r.Policy, float64(l.pace.RoundTrip().Microseconds())/1000)
		}
	}
	if !l.host.cfg.Leases || v.state == nil && !l.creates() || v.clock.Doubtful {
		return false
	}
	hash, level := r.Limits.Hash(), 1 // of the item that a lease write creates
	if v.state != nil {
		hash, level = v.state.Version.Hash, v.state.Shard.Level
		l.want(r)
	}
	if h.holder != nil && !h.fits(hash, level) && !h.holds() {
		h.end()
	}
	if h.holder == nil && !r.Policy.None && (v.state == nil || !v.state.Shard.Retired) { // rule: no lease of a retired shard
		h.begin(l.base(r.Limits, r.Generation, v.now), h.policy)
		l.show(l.host.cfg.Now())
	}
	return h.serves(r)
}

// want notes the limits of a request that are newer than those of the item. The lease that serves
// it has to go.
func (l *lessee) want(r *Request) {
	if r.Limits.Hash() == l.view.state.Version.Hash || r.Limits == l.newer.limits && r.Generation == l.newer.generation {
		return
	}
	own := wanted{r.Limits, r.Generation}
	if own.newer(l.view.state.Version) && (l.newer.limits == nil || own.newer(l.newer.version())) {
		l.newer = own
		l.cede()
		l.start()
	}
}

// creates reports whether a lease write may create the item. It is believed not to exist.
func (l *lessee) creates() bool {
	return l.view.state == nil && l.index == 0
}

// base returns the state that a lease write is planned on: a new item where there is none.
func (l *lessee) base(limits *limiter.Limits, generation uint64, at int64) *schema.Bucket {
	if l.view.state != nil {
		return l.view.state
	}
	return schema.NewBucket(limits, generation, at).In(l.site.Bucket.Window)
}

// users returns how many replicas wrote to the item lately or had a lease, this one included.
func (l *lessee) users(now time.Time) int {
	n := l.replicas(now)
	for id := range l.held.watch.Users(l.host.clocks(now).Mono) {
		if !l.peers.Has(id, now) {
			n++
		}
	}
	return n
}

// show shows the holder the item, if there is one.
func (l *lessee) show(now time.Time) {
	if h, v := l.held, l.view; v.state != nil {
		h.holder.Seen(v.now, l.host.clocks(now), h.view(v.state, v.quick, l.host.self.replica(), l.users(now), now))
	}
}

// count counts a request in the demand, once.
func (l *lessee) count(r *Request, draws []lease.Draw) {
	if !r.counted && r.Asks {
		r.counted = true
		l.held.holder.Count(l.view.now, draws)
	}
}

// pay charges a request that only charges to the lease, if the lease has all its tokens.
func (l *lessee) pay(r *Request, now time.Time) bool {
	h, at := l.held, l.view.now
	if !h.holder.State().Serves() || !h.holder.Alive(l.host.clocks(now)) {
		return false
	}
	draws := h.drawn[:0]
	for i := range r.Spends {
		sp := &r.Spends[i]
		k := h.of(sp.Limit)
		if sp.Need > 0 || sp.Take > 0 {
			return false
		}
		if k >= 0 && sp.Cost > 0 {
			draws = append(draws, lease.Draw{Limit: k, Need: sp.Cost, Take: sp.Cost})
		}
	}
	h.drawn = draws
	if !h.holder.Covers(at, draws) {
		return false
	}
	h.holder.Spend(draws)
	h.ledger.Draw(draws)
	h.tell(r.Request, l.view.state, at, true)
	l.served(r)
	return true
}

// OwedWait is how long an owed request waits for a lease to pay it: each plain write
// refuses the lease writes of all replicas that are under way. It is at most half of the
// time that a decision may take, so that the write that follows has a chance.
const OwedWait = 500 * time.Millisecond

// newWait is how long an owed request waits before it creates an item. No caller waits for it.
// The next calls may be worth a lease, and then one write does both.
const newWait = 2 * time.Millisecond

// payOwed moves an owed request to the lease, as far as that has the tokens or the
// room. It reports whether the rest waits for more, and whether there is none.
func (l *lessee) payOwed(r *Request, now time.Time) (waits, done bool) {
	h, rest := l.held, false
	if !h.holder.State().Serves() || !h.holder.Alive(l.host.clocks(now)) {
		waited := now.Sub(r.entered)
		return !r.Gives() && !l.rests(now) && (h.holder.Wanted(l.view.now) && waited < OwedWait || l.view.state == nil && waited < newWait), false
	}
	at := l.view.now
	for i := range r.Spends {
		sp := &r.Spends[i]
		k := h.of(sp.Limit)
		if k < 0 {
			continue
		}
		net := sp.Cost - sp.Give
		if sp.Give > 0 {
			sp.Give = h.holder.Refund(at, k, sp.Give) // rule: a give-back goes to one place
		}
		if sp.Cost > 0 {
			sp.Cost = h.holder.Charge(at, k, sp.Cost, 0)
		}
		net -= sp.Cost - sp.Give
		sp.Usage -= net // rule: usage goes where its tokens go
		h.ledger.Add(k, net)
		rest = rest || sp.Give > 0 || sp.Cost > 0
	}
	if !rest {
		for i := range r.Spends {
			if k := h.of(r.Spends[i].Limit); k >= 0 {
				h.ledger.Add(k, r.Spends[i].Usage) // rule: usage that a lease pays counts
			}
		}
		l.closer.finish(r, nil)
		return false, true
	}
	return !r.Gives() && now.Sub(r.entered) < OwedWait, false
}
