package dynamo

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"

	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// history is what a simulation has seen of the outside: when requests came and were
// answered. The checks are sound: an admission counts for a window only if its whole
// call lies in it, and a refund wherever it can have been applied, so that no choice
// of moments could save what they find.
type history struct {
	calls   []*simCall
	refunds []*simRefund
	truth   []simTruth
	undos   []*request
	leased  int // requests served from leases
	account account
}

// simCall is a request from its arrival to its answer.
type simCall struct {
	request  *request
	replica  *simReplica
	arrived  int64
	answered int64 // 0 = not yet
	giveBack bool  // what it takes is given back at once, as by a denied parent
	left     int64 // of what it took, not yet refunded
	charged  bool
}

// simRefund is a request that gives tokens.
type simRefund struct {
	request *request
	created int64
	applied int64 // later than anything as long as it is not
	write   *write
}

// amount returns how much of a limit is given.
func (f *simRefund) amount(limit string) int64 {
	for _, sp := range f.request.spends {
		if sp.limit == limit {
			return -sp.usage
		}
	}
	return 0
}

// simTruth is the item from a moment on; a nil view is no item.
type simTruth struct {
	from int64
	view *view
}

// spent is an amount that was taken in a span of time.
type spent struct{ from, to, amount int64 }

func (s *sim) saw() {
	v := s.item(nil)
	if s.corrupt == nil {
		s.corrupt = s.checkImage(v)
	}
	s.truth = append(s.truth, simTruth{s.now, v})
}

func (s *sim) asked(q *request, r *simReplica, giveBack bool) {
	c := &simCall{request: q, replica: r, arrived: s.now, giveBack: giveBack}
	for _, sp := range q.spends {
		c.charged = c.charged || sp.cost > 0
	}
	s.calls = append(s.calls, c)
	if q.gives() {
		s.refunds = append(s.refunds, &simRefund{request: q, created: s.now, applied: math.MaxInt64})
	}
}

// refundable draws how much of an earlier take is given back, at most most.
func (s *sim) refundable(most int64) int64 {
	for _, i := range s.r.Perm(len(s.calls)) {
		if c := s.calls[i]; c.left > 0 {
			n := min(most, c.left)
			c.left -= n
			return n
		}
	}
	return 0
}

// sent notes which refunds are in a write.
func (s *sim) sent(w *write, actors []*request) {
	for _, f := range s.refunds {
		if slices.Contains(actors, f.request) {
			f.write = w
		}
	}
}

func (s *sim) applied(f *simFlight) {
	w := f.write
	for _, r := range s.refunds {
		if r.write == w {
			r.applied = s.now
		}
	}
	err := s.account.did(w, f.effects)
	if err == nil {
		err = s.checkKept(f)
	}
	if s.corrupt == nil {
		s.corrupt = err
	}
}

// collect notes the answers of a replica.
func (s *sim) collect(r *simReplica) {
	for _, c := range s.calls {
		q := c.request
		if c.replica != r || c.answered != 0 || q.state.Load() != finished {
			continue
		}
		c.answered = s.now
		if q.err != nil || !q.admitted {
			continue
		}
		c.left = q.spends[0].take
		for _, sp := range q.spends {
			c.left = min(c.left, sp.take)
		}
		if undo := q.undo(); undo != nil && c.giveBack {
			c.left = 0
			undo.expires = q.expires
			s.undos = append(s.undos, undo)
			r.waiting = append(r.waiting, undo)
			s.refunds = append(s.refunds, &simRefund{request: undo, created: s.now, applied: math.MaxInt64})
		}
	}
}

// check returns what is wrong with the history.
func (s *sim) check() error {
	v := s.item(nil)
	switch {
	case s.corrupt != nil:
		return s.corrupt
	case v != nil && v.ttl == 0:
		return errors.New("the item has no ttl: nothing would ever delete it")
	}
	names := []string{"a"}
	if s.two {
		names = append(names, "b")
	}
	for _, name := range names {
		if err := s.checkLimit(name); err != nil {
			return fmt.Errorf("limit %s: %w", name, err)
		}
	}
	return s.checkDenials()
}

// checkLimit holds one limit against capacity and rate: in every window, and, with
// what is left in the end and what was charged, from every moment to the end.
func (s *sim) checkLimit(name string) error {
	bound, ok := s.bound(name)
	if !ok {
		return nil
	}
	var taken, charged []spent
	for _, c := range s.calls {
		if c.answered == 0 || c.request.err != nil {
			continue
		}
		for _, sp := range c.request.spends {
			if sp.limit != name || !sp.held {
				continue
			}
			if c.request.admitted && sp.take > 0 {
				taken = append(taken, spent{c.arrived, c.answered, sp.take})
			}
			if booked := sp.found - sp.left.Tokens; sp.cost > 0 && booked > 0 {
				charged = append(charged, spent{c.arrived, c.answered, booked})
			}
		}
	}
	if err := s.checkWindows(name, taken, bound); err != nil {
		return err
	}
	end := spent{s.now, s.now, s.drain(name) + s.outstanding(name)}
	return s.checkEnd(name, append(append(taken, charged...), end), bound)
}

// simBound is the greatest capacity and rate that a limit had.
type simBound struct {
	params tokenbucket.Params
	spread int64 // of the replicas' clocks
}

// excess returns by how many parts of 1/period amount is above what a time allows.
func (b simBound) excess(amount, elapsed int64) *big.Int {
	x := big.NewInt
	allowed := new(big.Int).Mul(x(b.params.Capacity), x(b.params.Period))
	allowed.Add(allowed, new(big.Int).Mul(x(b.params.Amount), x(elapsed+b.spread)))
	return new(big.Int).Sub(new(big.Int).Mul(x(amount), x(b.params.Period)), allowed)
}

func (s *sim) bound(name string) (simBound, bool) {
	b := simBound{spread: slices.Max(s.skews) - slices.Min(s.skews)}
	for _, limits := range s.versions {
		i := limits.Find(name)
		if i < 0 {
			continue
		}
		p := limits.Params(i)
		b.params.Capacity = max(b.params.Capacity, p.Capacity)
		if b.params.Period == 0 || p.Amount*b.params.Period > b.params.Amount*p.Period {
			b.params.Amount, b.params.Period = p.Amount, p.Period
		}
	}
	return b, b.params.Period > 0
}

func (s *sim) checkWindows(name string, taken []spent, b simBound) error {
	slices.SortFunc(taken, func(x, y spent) int { return cmp.Compare(x.to, y.to) })
	for _, first := range taken {
		from, sum := first.from, int64(0)
		for _, t := range taken {
			if t.from < from {
				continue
			}
			sum += t.amount
			net := sum
			for _, f := range s.refunds {
				if f.applied >= from && f.created <= t.to {
					net -= f.amount(name)
				}
			}
			if x := b.excess(net, t.to-from); x.Sign() > 0 {
				return fmt.Errorf("%d millitokens net in %d ms of %d + %d/%d ms: %v/%d too many", net, t.to-from, b.params.Capacity, b.params.Amount, b.params.Period, x, b.params.Period)
			}
		}
	}
	return nil
}

func (s *sim) checkEnd(name string, all []spent, b simBound) error {
	for _, first := range all {
		var sum int64
		for _, t := range all {
			if t.from >= first.from {
				sum += t.amount
			}
		}
		for _, f := range s.refunds {
			if f.applied >= first.from {
				sum -= f.amount(name)
			}
		}
		if x := b.excess(sum, s.now-first.from); x.Sign() > 0 {
			return fmt.Errorf("%d millitokens from %d ms before the end, with what is left: %v/%d too many", sum, s.now-first.from, x, b.params.Period)
		}
	}
	return nil
}

// drain returns what is left of a limit in the end, by the fastest clock; of one that
// is dormant too, since its debt was charged.
func (s *sim) drain(name string) int64 {
	v := s.item(nil)
	now := s.late()
	if v == nil { // full, under the newest limits that anybody knows: they count from their change
		newest := 0
		for _, r := range s.replicas {
			newest = max(newest, r.latest)
		}
		limits := s.versions[newest]
		if i := limits.Find(name); i >= 0 {
			return limits.Params(i).Capacity
		}
		return 0
	}
	if b := v.any(name); b != nil {
		at := refilled(b, max(b.state.Refilled, now))
		return at.tokens
	}
	return 0
}

// late is the time on the fastest clock.
func (s *sim) late() int64 { return s.now + slices.Max(s.skews) }

// checkDenials requires of every request that was denied without a write that the
// item had too little for it at some moment of the call, and just what it was told.
func (s *sim) checkDenials() error {
	for _, c := range s.calls {
		q := c.request
		if c.answered == 0 || q.err != nil || q.admitted || q.gives() || c.charged {
			continue
		}
		if !s.deniable(c) {
			return fmt.Errorf("denied needlessly: %+v, came at %d, answered at %d", q.spends, c.arrived, c.answered)
		}
	}
	return nil
}

func (s *sim) deniable(c *simCall) bool {
	now := int64(math.MinInt64)
	for _, sp := range c.request.spends {
		if sp.held {
			now = max(now, sp.left.Refilled)
		}
	}
	for i, truth := range s.truth {
		if truth.from > c.answered || i+1 < len(s.truth) && s.truth[i+1].from < c.arrived {
			continue
		}
		v := truth.view
		if v == nil {
			v = fullView(c.request.limits, c.request.version.Generation, now)
		}
		again := request{limits: c.request.limits, version: c.request.version, spends: slices.Clone(c.request.spends)}
		stage := newStage(v, now)
		if admitted, _ := stage.weigh(&again); admitted {
			continue
		}
		stage.tell(&again)
		told := true
		for j, sp := range c.request.spends {
			told = told && (!sp.held || sp.left.Tokens+sp.back == again.spends[j].left.Tokens)
		}
		if told {
			return true
		}
	}
	return false
}
