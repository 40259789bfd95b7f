package dynamo

import (
	"slices"
	"time"

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// maxTogether is of how many lanes a call can be decided at once from memory.
const maxTogether = 8

// group is the lanes that hold something of the buckets of a call, while it is decided
// from memory. Their locks are taken in the order of the lanes' shards.
type group struct {
	n      int
	lanes  [maxTogether]*lane
	op     [maxTogether]int // whose bucket a lane is of
	shards [maxTogether]*laneShard
	locked int
	chosen [maxTogether]*lane // by op
	wake   [maxTogether]*lane // that somebody has to run afterwards, each once
	wakes  int
}

// serveAll decides a call from memory: when what this process holds on lease covers all
// that its ops want, it is spent. It reports false, and has done nothing, when it does
// not: then the lanes decide. Nobody else is asked, and nothing is waited for.
//
// What an op is told is left is what its bucket had when it was seen last and what was
// refilled since, with what the lease has: what others took since is not in it.
func (s *Store) serveAll(now time.Time, ops []limiter.Op) bool {
	if s.leases.size.Load() == 0 || len(ops) > maxTogether {
		return false
	}
	var g group
	if !s.gatherLanes(&g, ops) {
		return false
	}
	g.lock()
	served := g.spend(s, now, ops)
	g.unlock()
	for _, l := range g.wake[:g.wakes] {
		s.serve(l)
	}
	if !served {
		return false
	}
	s.stats.served.Add(int64(len(ops)))
	for i := range ops {
		s.tellWhole(g.chosen[i], &ops[i])
	}
	s.byCaller(now, ops)
	return true
}

// gatherLanes finds the lanes of all ops' buckets that hold something.
func (s *Store) gatherLanes(g *group, ops []limiter.Op) bool {
	for i := range ops {
		if ops[i].Limits.Len() == 0 || len(ops[i].Spends) == 0 {
			return false
		}
		found := false
		for _, l := range s.leases.find(&ops[i].Bucket) {
			if ops[i].Shard > 0 && l.knows.index != ops[i].Shard-1 {
				continue
			}
			if g.n == maxTogether || g.has(l) {
				return false
			}
			g.lanes[g.n], g.op[g.n] = l, i
			g.n++
			found = true
		}
		if !found {
			return false
		}
	}
	return true
}

func (g *group) has(l *lane) bool { return slices.Contains(g.lanes[:g.n], l) }

// lock locks the shards of the lanes, each once.
func (g *group) lock() {
	for _, l := range g.lanes[:g.n] {
		sh, at := l.home, 0
		for at < g.locked && g.shards[at].index < sh.index {
			at++
		}
		if at < g.locked && g.shards[at] == sh {
			continue
		}
		copy(g.shards[at+1:g.locked+1], g.shards[at:g.locked])
		g.shards[at] = sh
		g.locked++
	}
	for _, sh := range g.shards[:g.locked] {
		sh.mu.Lock()
	}
}

func (g *group) unlock() {
	for _, sh := range g.shards[:g.locked] {
		sh.mu.Unlock()
	}
}

// spend serves all ops, or none. It is tested after it was done whether the leases were
// still alive, so that no pause of this process comes between.
func (g *group) spend(s *Store, now time.Time, ops []limiter.Op) bool {
	for i := range ops {
		if g.chosen[i] = g.choose(i, &ops[i]); g.chosen[i] == nil {
			return false
		}
	}
	for i := range ops {
		g.chosen[i].holder.spendOp(&ops[i], false)
	}
	at, era, alive := s.cfg.Now(), s.era(), true
	for i := range ops {
		alive = alive && g.chosen[i].holder.alive(at, era)
	}
	if !alive {
		for i := range ops {
			g.chosen[i].holder.spendOp(&ops[i], true)
		}
		return false
	}
	clock := s.cfg.Clock.Reading()
	corrected := s.cfg.Clock.Steady(now).Add(clock.Correction).UnixMilli()
	for i := range ops {
		h := &g.chosen[i].holder
		h.tell(&ops[i], h.tick(corrected, clock.Doubtful))
		ops[i].Shard = g.chosen[i].knows.index + 1
		h.note(&ops[i], at)
		if !h.wanted && h.low(at) {
			g.want(g.chosen[i])
		}
	}
	return true
}

// want has a lane do something for its lease.
func (g *group) want(l *lane) {
	l.holder.wanted = true
	if l.start() != nil {
		g.wake[g.wakes] = l
		g.wakes++
	}
}

// choose returns a lane of an op's bucket whose lease covers it, nil if there is none.
func (g *group) choose(i int, op *limiter.Op) *lane {
	v := schema.Version{Generation: op.Generation, Hash: op.Limits.Hash()}
	for j, l := range g.lanes[:g.n] {
		h := &l.holder
		if g.op[j] != i || h.text == "" {
			continue
		}
		if v.Newer(h.version) || op.Lease.None {
			if !h.recall {
				h.recall = true
				g.want(l)
			}
			continue
		}
		if h.serves(v) && h.coversOp(op) {
			if v.Hash == h.version.Hash {
				h.version.Generation = max(h.version.Generation, v.Generation)
			}
			return l
		}
	}
	return nil
}

// asks reports whether an op takes or looks, so that its policy means something: what
// charges or gives back does not know the rules, unless it says that nothing is leased.
func asks(op *limiter.Op) bool {
	if op.Lease.None {
		return true
	}
	for i := range op.Spends {
		if sp := &op.Spends[i]; sp.Take > 0 || sp.Look {
			return true
		}
	}
	return false
}

// drawOf returns what a spend wants of a lease, and whether it can be served.
func drawOf(sp *limiter.Spend) (d draw, ok bool) {
	for _, n := range [...]int64{sp.Take, sp.Charge, sp.Refund} {
		if n < 0 || n > tokenbucket.MaxAmount {
			return draw{}, false
		}
	}
	net := sp.Charge - sp.Refund
	d = draw{limit: sp.Limit, need: sp.Take, take: sp.Take, give: max(-net, 0), cost: max(net, 0)}
	if sp.Look {
		d.need = max(d.need, limiter.Milli)
	}
	return d, true
}

// coversOp reports whether the lease has what an op wants. One that wants nothing is to
// be told the truth, by the item.
func (h *holder) coversOp(op *limiter.Op) bool {
	wants := false
	for i := range op.Spends {
		d, ok := drawOf(&op.Spends[i])
		if !ok || !h.covers(d) {
			return false
		}
		wants = wants || d.need > 0 || d.give > 0 || d.cost > 0
	}
	return wants
}

func (h *holder) spendOp(op *limiter.Op, undo bool) {
	for i := range op.Spends {
		d, _ := drawOf(&op.Spends[i])
		h.spend(d, undo)
	}
}

// note counts an op that was served.
func (h *holder) note(op *limiter.Op, now time.Time) {
	h.used = now
	if asks(op) {
		h.policy, h.ruled = op.Lease, true
	}
	h.demand.count(now)
	for i := range op.Spends {
		sp := &op.Spends[i]
		if b := h.view.find(sp.Limit); b != nil {
			h.demand.add(b.limit.Name, sp.Take+max(sp.Charge-sp.Refund, 0))
		}
	}
}

// tell fills in what Take promises of an op that was served.
func (h *holder) tell(op *limiter.Op, now int64) {
	for i := range op.Spends {
		sp := &op.Spends[i]
		sp.Exceeded = false
		b := h.view.find(sp.Limit)
		if sp.Held = b != nil; !sp.Held {
			sp.Limits, sp.Index, sp.Bucket = nil, 0, tokenbucket.Bucket{}
			continue
		}
		sp.Limits, sp.Index = h.view.limits, h.view.limits.Find(sp.Limit)
		sp.Bucket = h.left(b, now)
	}
}

// left returns what the shard has of a limit at a time that the holder was brought up
// to, as far as is known.
func (h *holder) left(b *balance, now int64) tokenbucket.Bucket {
	st := refilled(b, now)
	return tokenbucket.Bucket{Tokens: min(st.tokens+h.restOf(b.limit.Name), b.params.Capacity), Remainder: st.remainder, Refilled: now, Carried: st.carried}
}

// tellWhole adds what the other shards of a bucket have, as far as is known.
func (s *Store) tellWhole(l *lane, op *limiter.Op) {
	if s.forest.size.Load() == 0 {
		return
	}
	t := s.forest.find(l.site.shard(0).PK)
	if t == nil {
		return
	}
	for _, leaf := range t.leaves() {
		if leaf.Index == l.knows.index {
			continue
		}
		for i := range op.Spends {
			if sp := &op.Spends[i]; sp.Held {
				at := leaf.holds(sp.Limits, sp.Index, sp.Bucket.Refilled)
				sp.Bucket.Tokens = min(sp.Bucket.Tokens+at.tokens, sp.Limits.Params(sp.Index).Capacity)
			}
		}
	}
}

// serveSome serves of the requests that wait in a lane those that its lease covers, and
// returns the others.
func (s *Store) serveSome(l *lane, pending []*request) []*request {
	if !s.cfg.Leases || len(pending) == 0 {
		return pending
	}
	served, kept := s.spendOn(l, pending)
	for _, r := range served { // without the lock, which is taken for tokens that are given back
		s.stats.served.Add(1)
		s.applied(r)
	}
	return kept
}

// spendOn spends the lane's lease on those requests that it covers.
func (s *Store) spendOn(l *lane, pending []*request) (served, kept []*request) {
	l.home.mu.Lock()
	defer l.home.mu.Unlock()
	h := &l.holder
	now := s.cfg.Now()
	kept = pending[:0]
	for _, r := range pending {
		h.arrived(r, l.knows.view, now)
		if r.policy.None || h.text != "" && r.version.Newer(h.version) {
			h.recall = h.text != ""
		}
		if h.serveRequest(s, l, r) {
			served = append(served, r)
		} else {
			kept = append(kept, r)
		}
	}
	return served, kept
}

// arrived counts a request, once.
func (h *holder) arrived(r *request, v *view, now time.Time) {
	if r.counted || r.call == nil {
		return
	}
	if r.counted = true; r.asks {
		h.policy, h.ruled = r.policy, true
	}
	h.demand.count(now)
	for i := range r.spends {
		sp := &r.spends[i]
		if v == nil || v.find(sp.limit) != nil {
			h.demand.add(sp.limit, max(sp.take, sp.ask)+sp.cost)
		}
	}
}

// serveRequest serves a request, if the lease covers it. The shard is locked.
func (h *holder) serveRequest(s *Store, l *lane, r *request) bool {
	if !h.serves(r.version) || r.policy.None || !h.coversRequest(r) || !r.state.CompareAndSwap(waiting, sent) {
		return false
	}
	h.spendRequest(r, false)
	now := s.cfg.Now()
	if !h.alive(now, s.era()) {
		h.spendRequest(r, true)
		r.state.CompareAndSwap(sent, waiting)
		return false
	}
	h.used = now
	if h.version.Hash == r.version.Hash {
		h.version.Generation = max(h.version.Generation, r.version.Generation)
	}
	at := h.tick(r.now+l.knows.clock.Correction.Milliseconds(), l.knows.clock.Doubtful)
	r.admitted, r.under = true, h.view.limits
	for i := range r.spends {
		sp := &r.spends[i]
		b := h.view.find(sp.limit)
		if sp.exceeded, sp.held = false, b != nil; !sp.held {
			continue
		}
		if sp.ask > 0 {
			sp.take, sp.need = sp.ask, sp.ask
		}
		sp.left, sp.back = h.left(b, at), sp.take
		sp.found = sp.left.Tokens
	}
	return true
}

// drawOfSpend returns what a request's spend wants of a lease.
func drawOfSpend(sp *spend) draw {
	d := draw{limit: sp.limit, need: sp.need, take: sp.take, give: sp.give, cost: sp.cost}
	if sp.ask > 0 {
		d.need, d.take = sp.ask, sp.ask
	}
	return d
}

// coversRequest reports whether the lease has what a request wants. What counts as more
// or less usage than it moves tokens goes the ordinary way, and so does what wants nothing.
func (h *holder) coversRequest(r *request) bool {
	wants := false
	for i := range r.spends {
		sp := &r.spends[i]
		d := drawOfSpend(sp)
		if sp.usage != d.cost-d.give || !h.covers(d) {
			return false
		}
		wants = wants || d.need > 0 || d.give > 0 || d.cost > 0
	}
	return wants
}

func (h *holder) spendRequest(r *request, undo bool) {
	for i := range r.spends {
		h.spend(drawOfSpend(&r.spends[i]), undo)
	}
}
