package dynamo

import (
	"errors"
	"slices"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

const (
	// leaseRetry is how long a lease is let be after DynamoDB did not take it back.
	leaseRetry = 200 * time.Millisecond
	// renewRetry is how long one is served on after it was not renewed: a few tries in its
	// term, each of which may stay in doubt.
	renewRetry = time.Second
	// maxHolders is how many replicas hold leases of one item at most. Each takes 25 bytes
	// of it, 35 with two limits: so many keep the item within two write units. A replica
	// without a lease needs a write for each decision, so fewer would cost more.
	maxHolders = 32
)

// sighting is a lease in an item, as a lane sees it.
type sighting struct {
	holding
	at time.Time // not before it was first seen so
}

// leasing reports whether a lane has to do with leases at all.
func (s *Store) leasing(l *lane) bool {
	return s.cfg.Leases || len(l.sightings) > 0 || l.knows.view != nil && len(l.knows.view.leases) > 0
}

// sawLeases learns from a lane's item.
func (s *Store) sawLeases(l *lane, image *view, now time.Time) {
	if !s.leasing(l) && (image == nil || len(image.leases) == 0) {
		return
	}
	l.home.mu.Lock()
	defer l.home.mu.Unlock()
	h := &l.holder
	held := h.text
	if f := h.saw(image, s.self()); f != nil {
		switch {
		case h.text == "":
			s.stats.returned.Add(1)
		case held == "":
			s.stats.granted.Add(1)
		default:
			s.stats.renewed.Add(1)
		}
		s.fit(h, f)
	}
	if s.closing.Load() && h.text != "" {
		h.recall, h.wanted = true, true
	}
	s.leases.keep(l, h.busy())
	if l.sightings = l.sight(image, s.self(), h.text, now); image != nil && image.shard.Sharded() && len(l.dead(now)) > 0 {
		h.wanted = true // nobody may ever ask this shard, which can not be merged with what is out
	}
}

// fit sets what goes by the demand in a lease that was granted or renewed.
func (s *Store) fit(h *holder, f *flight) {
	quotas, span := h.demand.quotas(f.sent, h.policy)
	h.idle = max(idleLease, span/2)
	for _, q := range quotas {
		if p := h.stock(q.limit); p != nil {
			p.low = max(p.low, q.soon)
		}
	}
	if len(f.step.granted) == 0 {
		h.after = f.sent.Add(probeQuantum)
	}
}

// sight returns the leases of an item that are not the lane's own, and since when they
// are seen as they are.
func (l *lane) sight(image *view, replica, own string, now time.Time) []sighting {
	if image == nil || len(image.leases) == 0 {
		return nil
	}
	seen := make([]sighting, 0, len(image.leases))
	for _, h := range image.leases {
		if h.replica == replica && h.text == own {
			continue
		}
		at := now
		if i := slices.IndexFunc(l.sightings, func(s sighting) bool { return s.replica == h.replica && s.text == h.text }); i >= 0 {
			at = l.sightings[i].at
		}
		seen = append(seen, sighting{h, at})
	}
	return seen
}

// dead returns the leases that nobody serves any more.
func (l *lane) dead(now time.Time) []holding {
	var dead []holding
	for i := range l.sightings {
		if o := &l.sightings[i]; now.Sub(o.at) >= leaseEbb {
			dead = append(dead, o.holding)
		}
	}
	return dead
}

// ask sets what the lane's next write is to do to leases, for the requests that wait
// and for what the lane holds. Every plan is made after one ask, and ends in send or
// in drop.
func (s *Store) ask(l *lane, pending []*request) {
	k := &l.knows
	if k.lease = (leaseAsk{}); !s.leasing(l) {
		return
	}
	now := s.cfg.Now()
	l.home.mu.Lock()
	defer l.home.mu.Unlock()
	h := &l.holder
	wanted := h.wanted
	if h.wanted = false; !k.known || k.view == nil || k.view.shard.Retired {
		return
	}
	k.lease.replica, k.lease.id = s.self(), s.numbered(s.leaseIDs.Add(1))
	if k.lease.dead = l.dead(now); len(pending) == 0 && wanted {
		k.lease.now = s.cfg.Clock.Steady(now).UnixMilli()
	}
	if k.seen.Hash == h.version.Hash { // it was seen to be as new by what was served
		k.seen.Generation = max(k.seen.Generation, h.version.Generation)
	}
	k.now = max(k.now, h.clock)
	k.advance(pending)
	h.clock = max(h.clock, k.now)
	s.askOwn(l, pending, now, wanted)
	k.lease.forced = k.lease.forced || len(k.lease.dead) > 0 && (len(pending) > 0 || wanted)
}

// askOwn sets what is to become of the lane's own lease, if it has one. The shard is
// locked.
func (s *Store) askOwn(l *lane, pending []*request, now time.Time, wanted bool) {
	h, k := &l.holder, &l.knows
	quotas := s.quotas(l, pending, now)
	short := h.text != "" && l.wants(pending, h)
	returns := false
	switch {
	case h.text == "" && k.view.holding(s.self()) != nil: // it has no holder, and will be reaped
		return
	case h.text == "":
		if len(quotas) == 0 || len(pending) == 0 || len(k.view.leases)-len(k.lease.dead) >= maxHolders {
			return
		}
	case h.recall || s.recalls(l) || !h.alive(now, s.era()) || h.returning():
		returns = true
	case short:
		returns = true
	case !h.low(now) || !wanted && len(pending) == 0:
		return
	case !l.affords(quotas, now) && now.Before(h.half):
		h.after = now.Add(probeQuantum)
		return
	}
	k.lease.forced = true
	var kept []amount
	if h.text != "" {
		k.lease.own = h.own(returns)
	}
	if !returns {
		kept = h.rests()
	}
	if len(quotas) > 0 && !h.recall {
		k.lease.size = sizing(quotas, kept, l.parts(now))
	}
	h.prepare(&flight{refilled: k.view.refilled, version: k.version(), returns: returns, spent: k.lease.spentOf()})
}

// spentOf returns what the ask reports as spent.
func (a *leaseAsk) spentOf() []amount {
	if a.own == nil {
		return nil
	}
	return a.own.spent
}

// quotas returns what a lease of the lane should have, none when it should have none.
func (s *Store) quotas(l *lane, pending []*request, now time.Time) []quota {
	h, k := &l.holder, &l.knows
	if !h.ruled || k.clock.Doubtful || s.recalls(l) || now.Before(h.after) {
		return nil
	}
	if _, adopted := k.newest(pending); adopted != nil {
		return nil
	}
	quotas, _ := h.demand.quotas(now, h.policy)
	return quotas
}

// recalls reports whether the lane must have no lease: the newest request says so, the
// store closes, or the shard is to be split or merged, which takes one that nothing is
// leased of.
func (s *Store) recalls(l *lane) bool {
	v := l.knows.view
	switch {
	case !s.cfg.Leases, l.holder.policy.None, s.closing.Load(), v.shard.Moving:
		return true
	case l.load.busy && v.divisible():
		return true
	}
	return v.shard.Sharded() && l.load.sinceQuiet(s.cfg.Now()) >= s.cfg.Quiet
}

// wants reports whether one of the requests is denied by what is stored, and would not
// be with what h has left. With none it reports whether one is denied.
func (l *lane) wants(pending []*request, h *holder) bool {
	st := newStage(l.knows.view, l.knows.moment())
	return slices.ContainsFunc(pending, func(r *request) bool { return st.helps(r, h) })
}

// helps reports whether a request is denied and would not be with what h has left; with
// none, whether it is denied.
func (s *stage) helps(r *request, h *holder) bool {
	if admitted, _ := s.weigh(r); admitted {
		return false
	}
	if h == nil {
		return true
	}
	for i := range r.spends {
		if sp := &r.spends[i]; sp.exceeded && sp.found+h.restOf(sp.limit) < sp.need {
			return false
		}
	}
	return true
}

// affords reports whether the item seems to have something to grant.
func (l *lane) affords(quotas []quota, now time.Time) bool {
	if len(quotas) == 0 {
		return false
	}
	st := newStage(l.knows.view, l.knows.moment())
	left := make([]amount, len(st.balances))
	for i := range st.balances {
		left[i] = amount{st.balances[i].limit.Name, st.balances[i].tokens}
	}
	return sizing(quotas, l.holder.rests(), l.parts(now))(left) != nil
}

// parts returns of how many equal parts of what is there a lease may be one: one for each
// process that has a lease, as far as is known, and as many for those that come. Where
// what is refilled is gone at once each takes its share whole.
func (l *lane) parts(now time.Time) int64 {
	holders := int64(len(l.sightings)) + 1
	if l.probe.goesOn(now) {
		return holders
	}
	return 2 * holders
}

// sizing returns how much is granted of what is there: what the demand is worth, at most
// one of some equal parts, of which each must be worth worthRequests; and nothing of any
// limit where that, with what is kept, would not serve a request, or where one is in debt.
func sizing(quotas []quota, kept []amount, parts int64) func(left []amount) []amount {
	return func(left []amount) []amount {
		var granted []amount
		for _, a := range left {
			if a.tokens < 0 {
				return nil
			}
			i := slices.IndexFunc(quotas, func(q quota) bool { return q.limit == a.limit })
			if i < 0 {
				continue
			}
			q, has := &quotas[i], amountOf(kept, a.limit)
			n := max(min(q.most-has, a.tokens/parts), 0)
			if a.tokens/parts < worthRequests*q.least {
				n = 0
			}
			if has+n < q.least {
				return nil
			}
			if n > 0 {
				granted = append(granted, amount{a.limit, n})
			}
		}
		return granted
	}
}

// drop ends an ask whose plan is not carried out.
func (s *Store) drop(l *lane) {
	if !s.leasing(l) {
		return
	}
	l.home.mu.Lock()
	defer l.home.mu.Unlock()
	if h := &l.holder; h.draft != nil {
		l.helpless = h.draft.returns
		h.prepare(nil)
		h.after = s.cfg.Now().Add(probeQuantum)
		h.retry = s.cfg.Now().Add(leaseRetry)
	}
}

// sendLease notes what a plan that is carried out does to the lane's lease.
func (s *Store) sendLease(l *lane, step *leaseStep, now time.Time) {
	if !s.leasing(l) {
		return
	}
	l.home.mu.Lock()
	defer l.home.mu.Unlock()
	h := &l.holder
	if step == nil || !step.own {
		h.prepare(nil)
		return
	}
	h.send(step, now, s.era())
	if len(h.flights) > maxFlights {
		h.end()
		h.flights = nil
	}
	s.leases.keep(l, h.busy())
	s.watchLeases()
}

// concludeLease notes what became of a write that changes leases, as far as the item has not
// shown it. One that was refused, or not applied, can still be applied when nobody knows
// what became of an earlier attempt.
func (s *Store) concludeLease(l *lane, step *leaseStep, o outcome) {
	if step == nil {
		return
	}
	l.home.mu.Lock()
	defer l.home.mu.Unlock()
	if o.applied {
		s.stats.reaped.Add(int64(len(step.dead)))
		if now := s.cfg.Now(); len(step.granted) > 0 && l.probe.goesOn(now) {
			l.holder.after = now.Add(probeQuantum)
		}
		return
	}
	l.helpless = o.err != nil
	if o.err != nil {
		l.holder.retry = s.cfg.Now().Add(leaseRetry)
		l.holder.after = s.cfg.Now().Add(renewRetry)
	}
	if o.doubted || errors.Is(o.err, limiter.ErrUncertain) {
		return
	}
	l.holder.missed(step)
	s.leases.keep(l, l.holder.busy())
}

// addRest adds to what requests are told is left what the lane holds, besides what was
// granted by the write that decided them: that was there before.
func (s *Store) addRest(l *lane, decided []*request, step *leaseStep) {
	if !s.cfg.Leases || len(decided) == 0 {
		return
	}
	l.home.mu.Lock()
	defer l.home.mu.Unlock()
	h := &l.holder
	if h.text == "" || h.returning() {
		return
	}
	for _, r := range decided {
		for i := range r.spends {
			sp := &r.spends[i]
			rest := h.restOf(sp.limit)
			if step != nil {
				rest -= amountOf(step.granted, sp.limit)
			}
			if sp.held {
				sp.left.Tokens += max(rest, 0)
			}
		}
	}
}

// settleDoubt reads the item of a lane that was started for a lease of which nobody
// knows what became.
func (s *Store) settleDoubt(l *lane) {
	l.home.mu.Lock()
	h := &l.holder
	needed := h.wanted && h.busy() && (!l.knows.known || h.inDoubt())
	l.home.mu.Unlock()
	if !needed {
		return
	}
	_, err := s.sight(l)
	l.home.mu.Lock()
	defer l.home.mu.Unlock()
	if err != nil {
		h.wanted = false
	}
	if s.closing.Load() && h.text == "" && err == nil { // whatever is granted yet others will free
		h.flights = nil
		s.leases.keep(l, false)
	}
	if err != nil || h.inDoubt() {
		h.retry = s.cfg.Now().Add(leaseRetry)
	}
}

// endLease forgets what a lane holds of an item that is none.
func (s *Store) endLease(l *lane) {
	if !s.leasing(l) {
		return
	}
	l.home.mu.Lock()
	defer l.home.mu.Unlock()
	h := &l.holder
	h.end()
	h.flights, h.wanted, l.sightings = nil, false, nil
	s.leases.keep(l, false)
}
