package dynamo

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

const (
	simTerm  = 30                       // units that a lease may be served for
	simReaps = simTerm + (simTerm+7)/8  // units after which others free it
	simLent  = int64(3) * limiter.Milli // a grant, at most, mostly
)

// simHolder is the lease of one run of a replica's process, and what it has seen of
// those of others.
type simHolder struct {
	name   string
	ids    int64
	text   string // of its slot; "" = it has no lease
	under  uint64 // hash of the limits that the lease is under
	rest   map[string]int64
	spent  map[string]int64 // and not known to be reported
	until  int64
	frozen bool // the rest goes back, and is served no more
	asked  []*simAsked
	others map[string]simSighted
}

// simAsked is a step that may have been done, or may be still.
type simAsked struct {
	step  *leaseStep
	own   *ownLease
	until int64
	under uint64
}

// simSighted is when a text was first seen in a slot.
type simSighted struct {
	text  string
	since int64
}

func newSimHolder(name string) *simHolder {
	return &simHolder{name: name, rest: map[string]int64{}, spent: map[string]int64{}, others: map[string]simSighted{}}
}

func amountsOf(m map[string]int64) []amount {
	var all []amount
	for limit, n := range m {
		if n > 0 {
			all = append(all, amount{limit, n})
		}
	}
	return newHolding("", "", all).amounts // in order
}

// serve admits a request from the replica's lease, if that covers it.
func (s *sim) serve(r *simReplica, q *request) bool {
	h := r.holder
	alive := s.now < h.until || s.immortal
	if h.text == "" || h.frozen || !alive || h.under != q.version.hash {
		return false
	}
	for _, sp := range q.spends {
		if sp.give > 0 || sp.cost > 0 || h.rest[sp.limit] < max(sp.take, sp.need) {
			return false
		}
	}
	for i := range q.spends {
		sp := &q.spends[i]
		h.rest[sp.limit] -= sp.take
		h.spent[sp.limit] += sp.take
		sp.held = true
	}
	q.admitted = true
	q.done(nil)
	s.leased++
	return true
}

// takeBack puts a refund into the lease, if it was spent from it and is not reported,
// nor in a report that may be under way.
func (s *sim) takeBack(r *simReplica, q *request) bool {
	h := r.holder
	if h.text == "" || h.frozen || s.now >= h.until || h.under != q.version.hash {
		return false
	}
	for _, sp := range q.spends {
		reported := int64(0)
		for _, a := range h.asked {
			if a.own != nil {
				reported = max(reported, amountOf(a.own.spent, sp.limit))
			}
		}
		if sp.take > 0 || sp.cost > 0 || h.spent[sp.limit]-reported < sp.give {
			return false
		}
	}
	for i := range q.spends {
		sp := &q.spends[i]
		h.rest[sp.limit] += sp.give
		h.spent[sp.limit] -= sp.give
		sp.held = true
	}
	q.admitted = true
	q.done(nil)
	for _, f := range s.refunds {
		if f.request == q {
			f.applied = s.now
		}
	}
	return true
}

// ask says what the replica's next write is to do to leases.
func (s *sim) ask(r *simReplica) {
	h, k := r.holder, &r.lane.knows
	k.lease = leaseAsk{}
	if !s.lease || k.view == nil {
		return
	}
	h.ids++
	a := leaseAsk{replica: h.name, id: strconv.FormatInt(h.ids, 36), now: s.now + s.skews[r.index], forced: s.r.IntN(3) > 0}
	if s.r.IntN(4) > 0 {
		a.size = s.grant
	}
	if h.text != "" {
		a.own = &ownLease{text: h.text, spent: amountsOf(h.spent)}
		if h.frozen || s.now >= h.until || h.under != s.versions[r.latest].Hash() || s.r.IntN(3) == 0 {
			h.frozen = true
			a.own.back = amountsOf(h.rest)
		}
	}
	for name, seen := range h.others {
		if s.now-seen.since >= simReaps*s.unit {
			a.dead = append(a.dead, holding{replica: name, text: seen.text})
		}
	}
	slices.SortFunc(a.dead, func(x, y holding) int { return strings.Compare(x.replica, y.replica) })
	k.lease = a
}

// grant draws how much of what is left is taken on lease.
func (s *sim) grant(left []amount) []amount {
	all := s.r.IntN(8) == 0
	for i := range left {
		if n := max(left[i].tokens, 0); all {
			left[i].tokens = n
		} else {
			left[i].tokens = min(n, s.r.Int64N(simLent+1))
		}
	}
	return left
}

// promised notes what a plan does to leases.
func (s *sim) promised(r *simReplica, p *plan) {
	h := r.holder
	if p.step == nil {
		h.frozen = h.frozen && slices.ContainsFunc(h.asked, (*simAsked).returns)
		return
	}
	if s.unlent {
		p.conceal()
	}
	h.asked = append(h.asked, &simAsked{p.step, r.lane.knows.lease.own, s.now + simTerm*s.unit, p.stage.base.version.hash})
}

func (a *simAsked) returns() bool { return a.own != nil && len(a.own.back) > 0 }

// conceal has a plan grant what the item does not count.
func (p *plan) conceal() {
	held := slices.Clone(p.step.held.amounts)
	for i := range p.stage.balances {
		b := &p.stage.balances[i]
		for j := range held {
			if a := &held[j]; a.limit == b.limit.Name && b.granted > 1 {
				b.lent -= b.granted - 1
				a.tokens -= b.granted - 1
			}
		}
	}
	p.step.held = newHolding(p.step.held.replica, p.step.held.id, held)
}

// sight is what a holder learns from an item that it sees. refused is a step that was
// certainly not done; nil = none.
func (s *sim) sight(r *simReplica, image *view, refused *leaseStep) {
	h := r.holder
	h.asked = slices.DeleteFunc(h.asked, func(a *simAsked) bool { return a.step == refused })
	text := ""
	if image != nil {
		if own := image.holding(h.name); own != nil {
			text = own.text
		}
	}
	if text != h.text {
		i := slices.IndexFunc(h.asked, func(a *simAsked) bool { return a.step.isIn(image) })
		if i >= 0 {
			h.land(h.asked[i])
		} else {
			s.lose(r)
		}
		h.asked = nil
	}
	h.frozen = h.frozen && slices.ContainsFunc(h.asked, (*simAsked).returns)
	before := h.others
	h.others = map[string]simSighted{}
	if image == nil {
		return
	}
	for i := range image.leases {
		l := &image.leases[i]
		if l.replica == h.name && l.text == h.text {
			continue
		}
		h.others[l.replica] = simSighted{l.text, s.now}
		if seen := before[l.replica]; seen.text == l.text {
			h.others[l.replica] = seen
		}
	}
}

// land counts on a step that was done.
func (h *simHolder) land(a *simAsked) {
	if a.own != nil {
		for _, spent := range a.own.spent {
			h.spent[spent.limit] -= spent.tokens
		}
		for _, back := range a.own.back {
			h.rest[back.limit] -= back.tokens
		}
	}
	for _, g := range a.step.granted {
		h.rest[g.limit] += g.tokens
	}
	h.text, h.until, h.under = a.step.held.text, a.until, a.under
}

// lose is when a lease is no more.
func (s *sim) lose(r *simReplica) {
	h := r.holder
	if s.twice {
		q := &request{site: site{bucket: limiter.BucketKey{Entity: "e", Resource: "r"}}, key: s.key, limits: s.versions[0], version: version{1, s.versions[0].Hash()}, now: s.now + s.skews[r.index]}
		for _, a := range amountsOf(h.rest) {
			q.spends = append(q.spends, spend{limit: a.limit, give: a.tokens, usage: -a.tokens})
		}
		if len(q.spends) > 0 {
			r.waiting = append(r.waiting, q)
		}
	}
	h.text, h.frozen = "", false
	clear(h.rest)
	clear(h.spent)
}

// outstanding returns what the holders can still give of a limit, or give back.
func (s *sim) outstanding(limit string) int64 {
	v, sum := s.item(nil), int64(0)
	for _, r := range s.replicas {
		h := r.holder
		text := ""
		if v != nil {
			if own := v.holding(h.name); own != nil {
				text = own.text
			}
		}
		i := slices.IndexFunc(h.asked, func(a *simAsked) bool { return text != "" && a.step.held.text == text })
		switch {
		case text == h.text || s.now < h.until && !h.frozen && i < 0:
			sum += h.rest[limit]
		case i >= 0:
			sum += h.rest[limit] + amountOf(h.asked[i].step.granted, limit)
			if own := h.asked[i].own; own != nil {
				sum -= amountOf(own.back, limit)
			}
		}
	}
	return sum
}

// checkImage requires of an item that what is out on lease is what the slots have, and
// that no limit has more than its capacity, leases included.
func (s *sim) checkImage(v *view) error {
	if v == nil {
		return nil
	}
	for i := range v.balances {
		b := &v.balances[i]
		sum := int64(0)
		for j := range v.leases {
			sum += v.leases[j].of(b.limit.Name)
		}
		if sum != b.leased {
			return fmt.Errorf("limit %s: %d out on lease, %d in the slots: %+v", b.limit.Name, b.leased, sum, v.leases)
		}
		if !s.refund && b.state.Tokens > b.room() {
			return fmt.Errorf("limit %s: %d tokens and %d out on lease, of %d", b.limit.Name, b.state.Tokens, b.leased, b.params.Capacity)
		}
	}
	return nil
}

// checkLeases requires of every holder that it has no more than its slot says.
func (s *sim) checkLeases() error {
	for _, r := range s.replicas {
		h, ok := parseHolding(r.holder.name, r.holder.text)
		if r.holder.text == "" {
			continue
		}
		if !ok {
			return errors.New("a holder with a slot of no text")
		}
		for limit, rest := range r.holder.rest {
			if rest < 0 || rest+r.holder.spent[limit] != h.of(limit) && !s.unlent {
				return fmt.Errorf("limit %s: a holder has %d left and %d spent of %d", limit, rest, r.holder.spent[limit], h.of(limit))
			}
		}
	}
	return nil
}
