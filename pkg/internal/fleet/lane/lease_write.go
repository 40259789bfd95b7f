package lane

import (
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/lease"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/plan"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
)

// tend does the work that is due for the lease. It returns the message to send, nil for
// none, and whether nothing else may be sent before. The lane is locked.
func (l lessee) tend(now time.Time) (f *flight, waits bool) {
	h, v := l.held, l.view
	defer l.listing.list()
	switch {
	case v.state == nil && (!l.creates() || len(l.queue) > 0):
		return nil, false
	case v.clock.Doubtful: // no write is planned, and replies may correct the clock
		return l.look(now), false
	}
	if len(l.out) == 0 && (h.unknown || !h.reread.IsZero() && !now.Before(h.reread)) {
		h.unknown, h.rest, h.reread = false, time.Time{}, time.Time{}
		return l.sender.read(now), true
	}
	if now.Before(h.rest) {
		l.wake(h.rest)
		return nil, false
	}
	dead, reaps := h.watch.Dead(l.host.clocks(now).Mono)
	if h.holder == nil && !reaps {
		return nil, false
	}
	if len(l.out) > 0 {
		return nil, reaps || h.holder.Due(v.now)
	}
	if f, waits = l.ask(now, dead, reaps); f == nil {
		f = l.look(now)
	}
	return f, waits
}

// lookEvery is how old the state of the item may be while a lease is served, or the outcome of its
// return is not known. Others ask for the lease in the item, and wait for its return.
const lookEvery = 500 * time.Millisecond

// look returns the read of an item that was not seen for a while; nil for none. It ends a lease
// that is over.
func (l lessee) look(now time.Time) *flight {
	if l.held.holder == nil || len(l.out) > 0 {
		return nil
	}
	l.held.holder.Alive(l.host.clocks(now))
	if s := l.held.holder.State(); !s.Serves() && s != lease.Unsettled {
		return nil
	}
	if at := later(l.view.sent, l.held.looked).Add(lookEvery); now.Before(at) {
		l.wake(at)
		return nil
	}
	l.held.looked = now // it may have no reply
	return l.sender.read(now)
}

// ask sends the lease write that is due.
func (l lessee) ask(now time.Time, dead uint32, reaps bool) (*flight, bool) {
	h, v := l.held, l.view
	if l.host.closing.Load() && h.holder != nil {
		v.drift(now) // the callers' clock may have been ahead of this machine's
		h.holder.Recall()
	}
	if len(l.queue) == 0 && h.holds() { // no call brings the time
		v.advance(l.host.cfg.Clock.Correct(l.host.cfg.Clock.Steady(now)).UnixMilli())
	}
	if l.due(reaps) && l.turner.turnDue(false, now) {
		return l.turner.turn(now), true
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
	base := l.base(h.limits, h.generation, at)
	stage, f := plan.NewStage(base, at, plan.Options{}), &flight{exact: true, once: true, lease: p}
	if p != nil && !l.change(stage, base, f) {
		h.holder.Failed(v.now, p, false)
		l.wakeLease(now)
		return nil, false
	}
	if p != nil && p.Kind == lease.Return && l.newer.limits != nil { // the last one to return makes the change
		_, _ = stage.Bring(l.newer.limits, l.newer.generation) // fails behind a request only
	}
	if gone := base.Lease(dead); reaps && gone != nil && stage.Lease(plan.LeaseWrite{Replica: dead, Seen: gone}) == nil {
		f.reaps = 1
	}
	f.id = plan.ID{Slot: l.host.self.slotOn(v.state), Write: l.host.self.next()}
	f.write = stage.Write(f.id, l.sender.cost())
	if f.write == nil {
		l.unsent(f)
		return nil, false
	}
	if f.report != nil {
		h.ledger.Sent(f.report, f.write)
	}
	l.pace.Sent(now)
	h.asked = at
	return l.sender.launch(f, now), true
}

// due reports whether a lease write is to be sent, as far as is known before it is planned.
func (l lessee) due(reaps bool) bool {
	h := l.held.holder
	return reaps || h.Due(l.view.now) || h.Wake() <= l.view.now
}

// change stages the plan of a lease write, with a report of the consumption from the lease. It reports
// false where the state does not allow the plan.
func (l lessee) change(stage *plan.Stage, base *schema.Bucket, f *flight) bool {
	h := l.held
	if f.lease.Create == base.Exists() {
		return false
	}
	q := h.write(f.lease, base, l.host.self.replica())
	f.report, q.Usage = h.ledger.Report()
	if stage.Lease(q) != nil {
		l.unsent(f)
		return false
	}
	return true
}

// unsent takes back the report of a lease write that was certainly not sent.
func (l lessee) unsent(f *flight) {
	if f.report != nil {
		l.held.ledger.Unsent(f.report)
	}
}

// leastTick is the least time between two checks of a lease that no request causes.
const leastTick = 10 * time.Millisecond

// wakeLease has the lane stepped when something is due for the lease.
func (l lessee) wakeLease(now time.Time) {
	if h := l.held.holder; h != nil {
		if at := h.Wake(); at < l.view.now+time.Hour.Milliseconds() {
			l.wake(now.Add(max(time.Duration(at-l.view.now)*time.Millisecond, leastTick)))
		}
	}
}

// sawLease has the holder learn from an image of the item.
func (l lessee) sawLease(now time.Time) {
	h, v := l.held, l.view
	l.usages.saw(v.state)
	if v.state == nil {
		h.end()
		l.listing.list()
		return
	}
	self := l.host.self.replica()
	clocks := l.host.clocks(now)
	slots := make([]lease.SlotID, 0, len(v.state.Leases))
	for i := range v.state.Leases {
		if o := &v.state.Leases[i]; o.Replica != self {
			slots = append(slots, lease.SlotID{Replica: o.Replica, Seq: o.Sequence})
		}
	}
	h.watch.Seen(clocks.Mono, slots)
	if h.holder == nil {
		return
	}
	before := h.holder.State()
	if h.fits(v.state.Version.Hash, v.state.Shard.Level) {
		l.show(now)
	} else {
		l.listing.lapse()
		h.end() // limits and shards change only when no lease is out
	}
	l.host.Counters.note(before, h)
	l.listing.list()
	l.wakeLease(now)
}

// note counts the outcome of a lease write.
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

// concludeLease takes in the end of a write of the lease that brought no image. It is never sent
// again: where it may have been applied, the item is read. p is nil where it was a write of a shard.
func (l lessee) concludeLease(p *lease.Plan, perhaps bool, now time.Time) {
	h := l.held
	h.unknown = h.unknown || perhaps
	h.rest = now.Add(leaseRetry) // also of a write that was not sent, in an outage
	l.wake(h.rest)
	if p != nil && h.holder != nil {
		h.holder.Failed(l.view.now, p, perhaps)
		l.listing.list()
	}
}

// recall has the lane return its lease.
func (l lessee) recall() {
	if l.held.holder != nil {
		l.held.holder.Recall()
	}
}

// cede has the lane return its lease for a change of the limits. Requests that wait for the
// change keep nothing of it.
func (l lessee) cede() {
	for _, r := range l.queue {
		l.divider.release(r)
	}
	l.recall()
}
