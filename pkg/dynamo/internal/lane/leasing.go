package lane

import (
	"time"

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/lease"
	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/plan"
)

// serve decides a request from the lease, if it can. It reports whether the request is to
// wait for a lease write, and whether it has an end. The lane is locked.
func (l *Lane) serve(r *Request, now time.Time) (waits, done bool) {
	h := &l.held
	if !l.leases(r) {
		return false, false
	}
	if r.claim == detached {
		return l.payOwed(r, now)
	}
	draws, ok := h.draws(r)
	if !ok {
		return false, false
	}
	l.count(r, draws)
	if len(draws) == 0 {
		return false, l.pay(r, now)
	}
	at := l.view.now
	if r.part != nil {
		return false, false // the centre has to give the rest
	}
	switch h.holder.Take(at, r.patience(now).Milliseconds(), draws) {
	case lease.Admitted:
		if !h.holder.Alive(l.host.clocks(l.host.cfg.Now())) {
			return false, false
		}
		h.tell(r, l.view.state, at, true)
		l.served(r)
		return false, true
	case lease.Denied:
		if l.sole() && l.keep(r, draws, true) {
			return false, false
		}
		h.tell(r, l.view.state, at, false)
		if r.Admitted = false; !exceeds(r) {
			return true, false
		}
		l.served(r)
		return false, true
	case lease.Wait, lease.Pull:
		return true, false
	case lease.Centre:
		l.keep(r, draws, false)
	}
	return false, false
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
func (l *Lane) served(r *Request) {
	l.host.Counters.Served.Add(1)
	l.decided(r)
}

// leases reports whether the lease may have to do with a request, and sees to a holder.
func (l *Lane) leases(r *Request) bool {
	h, v := &l.held, &l.view
	if r.Asks && r.claim == awaited {
		if h.policy = r.Policy; h.holder != nil {
			h.holder.Tune(r.Policy, float64(l.pace.roundTrip().Microseconds())/1000)
		}
	}
	if !l.host.cfg.Leases || v.state == nil || v.clock.Doubtful {
		return false
	}
	if h.holder != nil && h.hash != v.state.Version.Hash && !h.holds() {
		h.end()
	}
	if h.holder == nil && !r.Policy.None && !v.state.Shard.Retired {
		h.begin(v.state, h.policy)
		h.holder.Seen(v.now, l.host.clocks(l.host.cfg.Now()), h.view(v.state, v.quick, l.host.self.replica()))
	}
	return h.serves(r)
}

// count counts a request in the demand, once.
func (l *Lane) count(r *Request, draws []lease.Draw) {
	if !r.counted && r.Asks {
		r.counted = true
		l.held.holder.Count(l.view.now, draws)
	}
}

// pay books a request that charges alone from the stock of the lease, if that has it all.
func (l *Lane) pay(r *Request, now time.Time) bool {
	h, at := &l.held, l.view.now
	if !h.holder.State().Serves() || !h.holder.Alive(l.host.clocks(now)) {
		return false
	}
	var draws []lease.Draw
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
	if !h.holder.Covers(at, draws) {
		return false
	}
	h.holder.Spend(draws)
	h.tell(r, l.view.state, at, true)
	l.served(r)
	return true
}

// owedWait is how long what is owed waits for a lease to pay it: each plain write refuses
// the lease writes of all replicas that are under way.
const owedWait = time.Second

// payOwed moves what is owed to the lease, as far as it has the tokens or the room. It
// reports whether the rest waits for more, and whether there is none.
func (l *Lane) payOwed(r *Request, now time.Time) (waits, done bool) {
	h, rest := &l.held, false
	if !h.holder.State().Serves() || !h.holder.Alive(l.host.clocks(now)) {
		return !r.Gives() && h.holder.Wanted(l.view.now) && now.Sub(r.entered) < owedWait, false
	}
	at := l.view.now
	for i := range r.Spends {
		sp := &r.Spends[i]
		k := h.of(sp.Limit)
		if k < 0 {
			continue
		}
		if sp.Give > 0 {
			sp.Give = h.holder.Refund(at, k, sp.Give)
		}
		if sp.Cost > 0 {
			sp.Cost = h.holder.Charge(at, k, sp.Cost, 0)
		}
		rest = rest || sp.Give > 0 || sp.Cost > 0
	}
	if !rest {
		l.decided(r)
		return false, true
	}
	return !r.Gives() && now.Sub(r.entered) < owedWait, false
}

// tend does what is due for the lease. It returns the message to send, nil for none, and
// whether nothing else may be sent before. The lane is locked.
func (l *Lane) tend(now time.Time) (f *flight, waits bool) {
	h, v := &l.held, &l.view
	defer l.list()
	if v.state == nil || v.clock.Doubtful {
		return nil, false
	}
	if now.Before(h.rest) {
		l.wake(h.rest)
		return nil, false
	}
	if h.unknown && len(l.out) == 0 {
		h.unknown = false
		return l.read(now), true
	}
	dead, reaps := h.watch.Dead(l.host.clocks(now).Mono)
	if h.holder == nil && !reaps {
		return nil, false
	}
	if len(l.out) > 0 {
		return nil, reaps || h.holder.Due(v.now)
	}
	return l.ask(now, dead, reaps)
}

// ask sends the lease write that is due.
func (l *Lane) ask(now time.Time, dead uint32, reaps bool) (*flight, bool) {
	h, v := &l.held, &l.view
	if l.host.closing.Load() && h.holder != nil {
		h.holder.Recall()
	}
	if len(l.queue) == 0 {
		v.advance(l.host.cfg.Clock.Correct(l.host.cfg.Clock.Steady(now)).UnixMilli())
	}
	var p *lease.Plan
	if h.holder != nil {
		draw := float64(l.host.cfg.Loop.Draw(1<<20)) / (1 << 20)
		p, _ = h.holder.Ask(v.now, l.host.clocks(now), draw)
	}
	if p == nil && !reaps {
		l.wakeLease(now)
		return nil, false
	}
	at := v.now
	if p != nil {
		at = p.Now
	}
	stage := plan.NewStage(v.state, at, plan.Options{})
	if p != nil {
		if p.Create || stage.Lease(h.write(p, v.state, l.host.self.replica())) != nil {
			h.holder.Failed(v.now, p, false)
			l.wakeLease(now)
			return nil, false
		}
	}
	f := &flight{exact: true, once: true, lease: p}
	if gone := v.state.Lease(dead); reaps && gone != nil && stage.Lease(plan.LeaseWrite{Replica: dead, Seen: gone}) == nil {
		f.reaps = 1
	}
	f.id = plan.ID{Slot: l.host.self.slotOn(v.state), Write: l.host.self.next()}
	f.write = stage.Write(f.id, l.cost())
	if f.write == nil {
		return nil, false
	}
	l.pace.sent, h.asked = now, at
	return l.launch(f, now), true
}

// leastTick is the least time between two looks at a lease that no request causes.
const leastTick = 10 * time.Millisecond

// wakeLease has the lane stepped when something is due for the lease.
func (l *Lane) wakeLease(now time.Time) {
	if h := l.held.holder; h != nil {
		if at := h.Wake(); at < l.view.now+time.Hour.Milliseconds() {
			l.wake(now.Add(max(time.Duration(at-l.view.now)*time.Millisecond, leastTick)))
		}
	}
}

// sawLease has the holder learn from an image of the item.
func (l *Lane) sawLease(now time.Time) {
	h, v := &l.held, &l.view
	if v.state == nil {
		h.end()
		l.list()
		return
	}
	self := l.host.self.replica()
	clocks := l.host.clocks(now)
	if len(v.state.Leases) > 0 {
		slots := make([]lease.SlotID, 0, len(v.state.Leases))
		for i := range v.state.Leases {
			if o := &v.state.Leases[i]; o.Replica != self {
				slots = append(slots, lease.SlotID{Replica: o.Replica, Seq: o.Sequence})
			}
		}
		h.watch.Seen(clocks.Mono, slots)
	} else {
		h.watch = lease.Watch{}
	}
	if h.holder == nil {
		return
	}
	before := h.holder.State()
	if h.hash == v.state.Version.Hash {
		h.holder.Seen(v.now, clocks, h.view(v.state, v.quick, self))
	} else {
		h.end() // limits change only when no lease is out
	}
	l.host.Counters.note(before, h)
	l.list()
	l.wakeLease(now)
}

// note counts what became of a lease.
func (c *Counters) note(before lease.State, h *held) {
	after := lease.None
	if h.holder != nil {
		after = h.holder.State()
	}
	switch {
	case before == lease.Granting && after == lease.Held:
		c.Granted.Add(1)
	case before == lease.Renewing && after == lease.Held:
		c.Renewed.Add(1)
	case before == lease.Returning && after == lease.None:
		c.Returned.Add(1)
	}
}

// concludeLease takes in the end of a write of a lease or a shard that brought no image. It
// is never sent again: where it may have been applied, the item is read.
func (l *Lane) concludeLease(f *flight, perhaps bool, err error, now time.Time) {
	h := &l.held
	h.unknown = h.unknown || perhaps
	h.rest = now.Add(leaseRetry) // also of what was not sent, in an outage
	l.wake(h.rest)
	if f.lease == nil {
		l.rest("changing a shard", err, now)
	} else if h.holder != nil {
		h.holder.Failed(l.view.now, f.lease, perhaps)
		l.list()
	}
}

// leaseRetry is how long a lease is left alone after a write of it had no reply.
const leaseRetry = 200 * time.Millisecond

// recall has the lane give back what it holds on lease.
func (l *Lane) recall() {
	if l.held.holder != nil {
		l.held.holder.Recall()
	}
}

// list keeps the lane among those that hold something, or out of them.
func (l *Lane) list() {
	if holds := l.held.holds(); holds != l.held.listed {
		l.held.listed = holds
		l.host.holding.set(l, holds)
	}
}
