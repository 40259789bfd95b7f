package lease

import "github.com/ratelimit/ratelimit/pkg/tokenbucket"

// Draw is a number of millitokens that an operation takes of a limit.
type Draw struct {
	Limit int   // index of the limit
	Need  int64 // balance that must be found; one token for a peek
	Take  int64 // taken, 0 to Need
}

// Stock is the tokens that a lease serves. The first candidate is the lease as the last
// image of the slot shows it. Each other one is that of a lease write without a known
// outcome. Each request that is served is covered, and paid, by all of them.
type Stock struct {
	limits []tokenbucket.Params // of the whole item, by limit
	cands  candidates
	kept   []int64 // by limit: millitokens in the room of the lease that a large request waits with
	serves bool
	term   uint64 // changes when a lease begins, and when one is lost
	lapsed bool   // a lease ended without a return since that was last asked
	lost   int64  // millitokens of all limits that ended with such leases
}

// Covers brings the lease up to a time and reports whether every candidate has the tokens
// that all draws need. Nothing is taken.
func (s *Stock) Covers(now int64, draws []Draw) bool {
	if !s.serves {
		return false
	}
	for i := range s.cands { // rule: every candidate covers a request
		c := &s.cands[i]
		for _, d := range draws {
			b := &c.buckets[d.Limit]
			*b = b.Refill(c.params[d.Limit], now)
			if b.Tokens-s.kept[d.Limit] < d.Need { // rule: kept tokens serve no other request
				return false
			}
		}
	}
	return true
}

// Spend takes draws that Covers found covered at the same time.
func (s *Stock) Spend(draws []Draw) {
	for i := range s.cands { // rule: every candidate pays a request
		c := &s.cands[i]
		for _, d := range draws {
			b := &c.buckets[d.Limit]
			*b = b.Subtract(c.params[d.Limit], d.Take)
		}
	}
}

// Refund gives tokens back, 0 to tokenbucket.MaxAmount, and returns the rest, for which
// the lease has no room: that is the centre's. Right after Spend, at the same time, it
// takes a draw back exactly.
func (s *Stock) Refund(now int64, limit int, amount int64) (rest int64) {
	if !s.serves {
		return amount
	}
	most := amount
	for i := range s.cands {
		c := &s.cands[i]
		c.buckets[limit] = c.buckets[limit].Refill(c.params[limit], now)
		most = min(most, max(c.params[limit].Capacity-c.buckets[limit].Tokens, 0)) // rule: a refund into a lease keeps to its room
	}
	s.cands.add(limit, most)
	return amount - most
}

// Charge takes as much of a charge, 0 to tokenbucket.MaxAmount, as every candidate has,
// and overdraft more, and returns the rest, which is the centre's.
func (s *Stock) Charge(now int64, limit int, amount, overdraft int64) (rest int64) {
	if !s.serves {
		return amount
	}
	most := min(amount, max(s.cands.least(limit, now)-s.kept[limit]+overdraft, 0)) // rule: a charge of a lease is bounded
	s.cands.add(limit, -most)
	return amount - most
}

// Part is the part of a large request that a lease keeps while the centre is asked for
// the rest. The tokens stay in the room of the lease, so that refill does not replace
// them.
type Part struct {
	draws []Draw // Take is the part that is kept
	term  uint64
}

// Part returns how much of a draw Keep would set aside.
func (s *Stock) Part(now int64, d Draw) int64 {
	if !s.serves {
		return 0
	}
	return min(d.Take, max(s.cands.least(d.Limit, now)-s.kept[d.Limit], 0))
}

// Keep sets aside as much of the draws as the lease has. It returns the rest by limit,
// which is to be taken at the centre. It reports false, and does nothing, where the lease
// has no token for it.
func (s *Stock) Keep(now int64, draws []Draw) (p Part, rest []int64, ok bool) {
	if !s.serves {
		return Part{}, nil, false
	}
	p, rest = Part{term: s.term}, make([]int64, len(s.limits))
	for _, d := range draws {
		n := s.Part(now, d)
		rest[d.Limit] = d.Take - n
		if n > 0 {
			p.draws = append(p.draws, Draw{Limit: d.Limit, Need: n, Take: n})
		}
	}
	for _, d := range p.draws {
		s.kept[d.Limit] += d.Take // rule: two requests keep tokens apart
	}
	return p, rest, len(p.draws) > 0
}

// Settle ends a Keep: the tokens are spent where the request is admitted, and free again
// otherwise. It reports false where the lease is over. Then the request has to be denied,
// and the tokens of the centre have to be refunded.
func (s *Stock) Settle(now int64, p Part, admitted bool) bool {
	if p.term != s.term {
		return !admitted // rule: kept tokens end with their lease
	}
	for _, d := range p.draws {
		s.kept[d.Limit] -= d.Take
		if admitted { // rule: kept tokens are spent by the admitted request
			s.cands.least(d.Limit, now)
			s.cands.add(d.Limit, -d.Take)
		}
	}
	return s.serves || !admitted
}

// lapse drops a lease that ended without a return. Its tokens count as spent.
func (s *Stock) lapse() {
	s.lapsed = true
	for _, b := range s.cands[0].buckets {
		s.lost += max(b.Tokens, 0)
	}
	s.forget()
}

// forget drops the lease, and the tokens of it that are kept.
func (s *Stock) forget() {
	s.cands = append(s.cands[:0], empty(s.limits))
	clear(s.kept)
	s.serves = false
	s.term++
}
