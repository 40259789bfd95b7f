package lane

import (
	"context"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/lease"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/plan"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
)

// due does the work that is due for the lease.
func (l *lessee) due(now time.Time) (m message, waits bool) {
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
	dead, reaps := h.dead(l.host.cfg.Before, l.view.state, l.host.clocks(now).Mono)
	if h.holder == nil && !reaps {
		return nil, false
	}
	if len(l.out) > 0 {
		return nil, reaps || h.holder.Due(v.now)
	}
	m, waits = l.ask(now, dead, reaps)
	if m == nil {
		m = l.look(now)
	}
	return m, waits
}

// look returns the read of an item that was not seen for a while, or whose replies are to correct the
// clock; nil for none. It ends a lease that is over.
func (l *lessee) look(now time.Time) message {
	if l.held.holder == nil || len(l.out) > 0 {
		return nil
	}
	l.held.holder.Alive(l.host.clocks(now))
	// The last lease write may wait for the clock, as after a sleep of the machine. No request brings a reply
	// then, and without one the clock is not corrected.
	blind := l.view.clock.Doubtful && l.host.closing.Load() && l.held.holds() // rule: the last lease write reads for the clock
	s := l.held.holder.State()
	// The item may show the state before the last return for long, and that may be applied yet. No write from
	// before a turn is applied after it.
	open := s == lease.Unsettled && !l.view.clock.Doubtful && l.view.state != nil && l.view.state.Shard.Epoch < schema.MaxEpoch
	l.held.settle(open, l.host.closing.Load(), now)
	if !s.Serves() && s != lease.Unsettled && !blind {
		return nil
	}
	switch {
	case blind && l.held.looks < awsdb.JumpReplies: // so many correct the clock
		l.held.looks++
		return l.sender.read(now)
	case open && now.Before(l.held.settles):
		l.wake(l.held.settles)
	case open:
		l.held.settles = now.Add(leaseRetry)
		return l.turner.turn(now, true) // rule: a turn settles the outcome of a return
	}
	if at := later(l.view.sent, l.held.looked).Add(l.held.lookEvery(l.view.now, l.view.clock.Doubtful, l.pace.RoundTrip())); now.Before(at) {
		l.wake(at)
		return nil
	}
	l.held.looked = now // it may have no reply
	return l.sender.read(now)
}

// ask sends the lease write that is due.
func (l *lessee) ask(now time.Time, dead uint32, reaps bool) (message, bool) {
	h, v := l.held, l.view
	if l.host.closing.Load() && h.holder != nil { // rule: no lease is asked for at the end
		v.drift(now) // the callers' clock may have been ahead of this machine's
		h.holder.Recall()
	}
	if reaps || len(l.queue) == 0 && h.holds() { // rule: a lease is freed as of now, as its holder may have served until then
		v.advance(l.host.cfg.Clock.Correct(now).UnixMilli()) // no call brings the time, or one that is owed brought an old one
	}
	// Each of the writes of those without a lease refuses the return.
	last := h.awaited(v.now, now, l.newer.limits != nil) && l.unleased(v.state, now)
	if last && h.together(v.now, l.pace.RoundTrip()) {
		last = l.turner.turns.lost > 0 // rule: a return beside others is tried without a turn first
	}
	if l.asks(reaps) && l.turner.turnDue(last, now) { // rule: the last lease is returned behind a turn
		return l.turner.turn(now, !reaps), true
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
	stage, m := plan.NewStage(base, at, plan.Options{}), &leaseWrite{by: l, lease: p}
	if p != nil && !l.change(stage, base, m) {
		h.holder.Failed(v.now, p, false)
		l.wakeLease(now)
		return nil, false
	}
	if p != nil && p.Kind == lease.Return && l.newer.limits != nil { // the last one to return makes the change
		_, _ = stage.Bring(l.newer.limits, l.newer.generation) // fails behind a request only
	}
	if gone := base.Lease(dead); reaps && gone != nil && stage.Lease(plan.LeaseWrite{Replica: dead, Seen: gone}) == nil {
		m.reaps = 1
	}
	m.write = stage.Write(l.sender.newID(), l.sender.cost())
	if m.write == nil {
		m.unsent()
		return nil, false
	}
	if m.report != nil {
		h.ledger.Sent(m.report, m.write)
	}
	l.pace.Sent(now)
	h.asked = at
	return l.sender.launch(m, now), true
}

// asks reports whether a lease write is to be sent, as far as is known before it is planned.
func (l *lessee) asks(reaps bool) bool {
	h := l.held.holder
	return reaps || h.Due(l.view.now) || h.Wake() <= l.view.now
}

// change stages the plan of a lease write, with a report of the consumption from the lease. It reports
// false where the state does not allow the plan.
func (l *lessee) change(stage *plan.Stage, base *schema.Bucket, m *leaseWrite) bool {
	h := l.held
	if m.lease.Create == base.Exists() {
		return false
	}
	q := h.write(m.lease, base, l.host.self.replica())
	m.report, q.Usage = h.ledger.Report()
	if stage.Lease(q) != nil {
		m.unsent()
		return false
	}
	return true
}

// leastTick is the least time between two checks of a lease that no request causes.
const leastTick = 10 * time.Millisecond

// wakeLease has the lane stepped when something is due for the lease.
func (l *lessee) wakeLease(now time.Time) {
	if h := l.held.holder; h != nil {
		if at := h.Wake(); at < l.view.now+time.Hour.Milliseconds() {
			l.wake(now.Add(max(time.Duration(at-l.view.now)*time.Millisecond, leastTick)))
		}
	}
}

// seen has the holder learn from the last state of the item.
func (l *lessee) seen(now time.Time) {
	h, v := l.held, l.view
	if v.state != nil {
		l.check(v.state, now)
	}
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

// check notes whose lease is in the slot of this process. One that it did not write is of a copy of it.
func (l *lessee) check(image *schema.Bucket, now time.Time) {
	self := l.host.self.replica()
	own := image.Lease(self)
	l.held.change.saw(image, now)
	if l.held.copied(own) {
		l.host.self.rename(self)
	} else {
		l.held.showed(own)
	}
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

// leaseWrite is a write of the lease of the lane, or one that ends a lease of another replica, or both.
type leaseWrite struct {
	once

	by     *lessee
	lease  *lease.Plan // nil: it only ends one of another replica
	report *Report     // of the consumption from the lease; nil = none
	reaps  int64       // leases of other replicas that it ends
}

func (m *leaseWrite) send(ctx context.Context) (reply, error) {
	return m.by.apply(ctx, m.write, !m.write.Exact())
}

func (m *leaseWrite) conclude(got reply, err error, now time.Time) (again bool) {
	m.by.sender.concludeOnce(m, got, err, now)
	return false
}

func (m *leaseWrite) came(image *schema.Bucket, refused bool, now time.Time) {
	l := m.by
	l.held.issue(m.lease)
	if m.report != nil && !refused {
		l.held.ledger.Applied(m.report)
	}
	l.sender.lane.sees(image, &m.copies, now)
	l.turner.turns.ended(m.write, image, refused)
	if m.lease != nil && m.lease.Kind == lease.Return && !refused && l.held.together(l.view.now, l.pace.RoundTrip()) {
		l.turner.turns.yields(image, l.pace.RoundTrip(), now)
	}
	l.sender.counted(refused)
	if !refused {
		l.host.Counters.Reaped.Add(m.reaps)
	}
}

// unsent takes back the report of a write that was certainly not sent.
func (m *leaseWrite) unsent() {
	if m.report != nil {
		m.by.held.ledger.Unsent(m.report)
	}
}

// lost has the item read where the write may have been applied: it is never sent again.
func (m *leaseWrite) lost(perhaps bool, err error, now time.Time) {
	l := m.by
	if perhaps || awsdb.Retryable(err) { // a copy of it may be applied after one that was throttled // rule: a lease that is copied while it was throttled is the own
		l.held.issue(m.lease)
	}
	if !perhaps {
		m.unsent()
	}
	l.missed(missOf(perhaps), now)
	switch {
	case m.lease == nil:
		l.keeper.rest("changing a shard", err, now)
	case l.held.holder != nil:
		l.held.holder.Failed(l.view.now, m.lease, perhaps)
		l.listing.list()
	}
}

// missed takes in that a message brought no image.
func (l *lessee) missed(m miss, now time.Time) {
	if m == missedRead {
		l.usages.reread(now)
		return
	}
	l.held.unanswered(m == perhapsMissed, now)
	l.wake(l.held.rest)
}

// leave forgets the lease.
func (l *lessee) leave() {
	l.held.end()
	l.listing.list()
}

// recall has the lane return its lease.
func (l *lessee) recall() {
	if l.held.holder != nil {
		l.held.holder.Recall()
	}
}

// cede has the lane return its lease for a change of the limits. Requests that wait for the
// change keep nothing of it.
func (l *lessee) cede() {
	for _, r := range l.queue {
		l.release(r, false)
	}
	l.recall()
}
