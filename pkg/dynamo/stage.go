package dynamo

import (
	"math"
	"math/bits"
	"slices"

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// stage is a bucket in the course of a plan. Requests are applied to it one after
// the other, on the numbers of the view that the plan is made from. What each step
// relies on is kept, per limit, as bounds for the stored numbers: a write that has
// these bounds in its condition does what the plan says, or nothing, whatever
// other replicas wrote since the view.
type stage struct {
	base     *view
	now      int64 // that the plan decides at; not before base.refilled
	balances []staged
	swap     *view // the item that this one replaces under other limits; nil = none
	create   bool  // there is no item
	step     *leaseStep
	dormant  []staged // limits that the bucket is not under now, of which leases are closed
}

// staged is one limit of a stage.
//
// In what follows V is the stored balance with the refill that is due at the
// stage's now. As long as the limit is not full the plan is relative, to whatever
// V turns out to be; from the moment it is full the balance is known to be so far
// below the room that the limit has. Where a charge was cut at the floor, or a full
// limit carries use, the plan stands for the very numbers of the view.
type staged struct {
	*balance
	basis     basis
	due       int64 // refill from the view's rf to now
	tokens    int64 // as the plan has it
	remainder int64
	carried   int64
	delta     int64 // relative: since V; full: below the room, 0 or less, save for what leases free
	usage     int64 // consumed, net
	lent      int64 // out on lease, as the plan has it
	granted   int64 // of it, by this plan

	atLeast  int64 // V ≥ it: what was taken was there
	below    int64 // V < it: it was not full, or a take was denied
	full     int64 // V ≥ it: it was full; noBound when it was not
	mostHeld int64 // h ≤ it: what was taken from a full limit was there

	lowered bool // something was taken
	charged bool // something of it may not have been there
	raised  bool // something was given
	checked bool // what was decided rests on it
	pinned  bool // the plan is for the very number that is out on lease
}

// room returns the most that the balance may hold as the plan has it.
func (s *staged) room() int64 { return s.params.Capacity - s.lent }

// freed returns by how much the plan lowers what is out on lease.
func (s *staged) freed() int64 { return s.leased - s.lent }

// basis says what the plan for a limit rests on.
type basis uint8

const (
	relative basis = iota
	full
	exact
)

const (
	noLowerBound = math.MinInt64
	noUpperBound = math.MaxInt64

	// maxDue bounds the refill that is reckoned with: enough to fill any bucket from
	// any debt, little enough that sums stay in range.
	maxDue = 4 * tokenbucket.MaxAmount
)

// newStage returns a bucket as it stands at now.
func newStage(v *view, now int64) *stage {
	s := &stage{base: v, now: v.at(now), balances: make([]staged, 0, len(v.balances))}
	for i := range v.balances {
		if b := &v.balances[i]; !b.dormant {
			s.balances = append(s.balances, refilled(b, s.now))
		}
	}
	return s
}

// refilled returns a balance at now, which is not before its last refill.
func refilled(b *balance, now int64) staged {
	s := staged{balance: b, lent: b.leased, carried: b.state.Carried, atLeast: noLowerBound, below: noUpperBound, full: noLowerBound, mostHeld: noUpperBound}
	s.due, s.remainder = dueAt(b.state, b.params, now)
	s.tokens = b.state.Tokens + s.due
	s.clamp()
	return s
}

// dueAt returns the refill that is due, at most maxDue, and the remainder after it.
func dueAt(b tokenbucket.Bucket, p tokenbucket.Params, now int64) (due, remainder int64) {
	if now <= b.Refilled {
		return 0, b.Remainder
	}
	elapsed := uint64(now) - uint64(b.Refilled)         // #nosec G115 -- exact in two's complement
	hi, lo := bits.Mul64(elapsed, uint64(p.Amount))     // #nosec G115 -- above 0
	lo, carry := bits.Add64(lo, uint64(b.Remainder), 0) // #nosec G115 -- not below 0
	hi += carry
	if hi >= uint64(p.Period) { // #nosec G115 -- above 0
		return maxDue, 0
	}
	quo, rem := bits.Div64(hi, lo, uint64(p.Period)) // #nosec G115 -- above 0
	if quo >= maxDue {
		return maxDue, 0
	}
	return int64(quo), int64(rem) // #nosec G115 -- in range
}

// clamp cuts the balance at what the limit has room for.
func (s *staged) clamp() {
	room := s.room()
	if s.basis != relative {
		s.delta = min(s.delta, s.freed())
		if s.tokens >= room {
			s.overflow(room)
		}
		return
	}
	if s.tokens < room {
		s.below = min(s.below, room-s.delta)
		return
	}
	if s.carried > 0 {
		s.basis = exact
	} else {
		s.basis, s.full, s.delta = full, room-s.delta, s.freed()
	}
	s.overflow(room)
}

// overflow cuts the balance at the room. The excess and the remainder make up for the
// use that is carried, until none is left.
func (s *staged) overflow(room int64) {
	s.carried = max(s.carried-(s.tokens-room), 0)
	if s.tokens = room; s.carried == 0 {
		s.remainder = 0
	}
}

// leaves says that a balance that was full is full no more: the remainder is not of it.
func (s *staged) leaves() {
	if s.tokens >= s.room() {
		s.remainder = 0
	}
}

// give adds n tokens, up to the room.
func (s *staged) give(n int64) {
	s.raised = true
	s.tokens += n
	s.delta += n
	s.clamp()
}

// need states that the balance is at least n.
func (s *staged) need(n int64) {
	s.checked = true
	switch s.basis {
	case relative:
		s.atLeast = max(s.atLeast, n-s.delta)
	case full:
		s.mostHeld = min(s.mostHeld, s.params.Capacity+s.delta-n)
	case exact:
	}
}

// lack states that the balance is less than n.
func (s *staged) lack(n int64) {
	s.checked = true
	if s.basis == relative {
		s.below = min(s.below, n-s.delta)
	}
}

// take subtracts n tokens that are there.
func (s *staged) take(n int64) {
	if n == 0 {
		return
	}
	s.leaves()
	s.lowered = true
	s.tokens -= n
	s.delta -= n
}

// cost subtracts n tokens that may not be there, down to the debt floor.
func (s *staged) cost(n int64) {
	s.charged = true
	left := charged(s.tokens, n, s.floor)
	if left != s.tokens-n {
		s.leaves()
		s.lowered, s.basis, s.tokens = true, exact, left
		return
	}
	s.need(s.floor + n)
	s.take(n)
}

// charged returns the balance after a cost of n: no lower than the floor, unless
// it was already.
func charged(tokens, n, floor int64) int64 { return max(tokens-n, min(tokens, floor)) }

// find returns a limit of the stage, or nil.
func (s *stage) find(limit string) *staged {
	for i := range s.balances {
		if s.balances[i].limit.Name == limit {
			return &s.balances[i]
		}
	}
	return nil
}

// weigh holds a request against the stage and fills in what it would be told. It
// reports whether everything it needs is there, and whether the item has to be
// written for it.
func (s *stage) weigh(r *request) (admitted, writes bool) {
	admitted = true
	r.under = s.base.limits
	for i := range r.spends {
		sp := &r.spends[i]
		sp.exceeded = false
		b := s.find(sp.limit)
		if sp.held = b != nil; !sp.held {
			continue
		}
		sp.found = min(b.tokens+sp.give, b.room())
		if sp.ask > 0 {
			sp.take = min(sp.ask, max(sp.found, 0))
			sp.need = sp.take
		}
		if sp.need > 0 && sp.found < sp.need {
			sp.exceeded, admitted = true, false
		}
	}
	for i := range r.spends {
		sp := &r.spends[i]
		if sp.held {
			writes = writes || sp.give > 0 || sp.cost > 0 || sp.usage != 0 || admitted && sp.take > 0
		}
	}
	r.admitted = admitted
	return admitted, writes
}

// tell fills in the state that a weighed request is told when nothing is written for it.
func (s *stage) tell(r *request) {
	for i := range r.spends {
		if sp := &r.spends[i]; sp.held {
			b := s.find(sp.limit)
			sp.left, sp.back = tokenbucket.Bucket{Tokens: b.tokens, Remainder: b.remainder, Refilled: s.now, Carried: b.carried}, 0
		}
	}
}

// apply does what a weighed request asks for.
func (s *stage) apply(r *request) {
	for i := range r.spends {
		sp := &r.spends[i]
		if !sp.held {
			continue
		}
		b := s.find(sp.limit)
		b.usage += sp.usage
		if sp.give > 0 {
			b.give(sp.give)
		}
		undone := charged(b.tokens, sp.cost, b.floor)
		switch {
		case r.admitted && sp.need > 0:
			b.need(sp.need)
			b.take(sp.take)
			b.usage += sp.take
		case sp.exceeded:
			b.lack(sp.need)
		}
		if sp.cost > 0 {
			b.cost(sp.cost)
		}
		sp.left = tokenbucket.Bucket{Tokens: b.tokens, Remainder: b.remainder, Refilled: s.now, Carried: b.carried}
		sp.back = undone - b.tokens
	}
}

// with returns the stage as it is after a weighed request.
func (s *stage) with(r *request) *stage {
	after := *s
	after.balances = slices.Clone(s.balances)
	after.apply(r)
	return &after
}

// plain reports whether the plan can be carried out without moving rf: by what is
// stored alone, without the refill that is due.
func (s *stage) plain() bool {
	if s.create || s.swap != nil || s.step != nil {
		return false
	}
	for i := range s.balances {
		b := &s.balances[i]
		if !b.lowered && !b.raised && !b.checked {
			continue
		}
		if b.basis != relative || b.state.Tokens < b.atLeast {
			return false
		}
	}
	return true
}

// lowers reports whether the plan takes anything.
func (s *stage) lowers() bool {
	return slices.ContainsFunc(s.balances, func(b staged) bool { return b.lowered })
}

// settle corrects what the actors of a plan are told by the state that the write
// left: others may have written between the view and it.
func (s *stage) settle(actors []*request, image *view) {
	if image == nil || s.create || s.swap != nil || image.shard.Epoch != s.base.shard.Epoch {
		return
	}
	for _, r := range actors {
		for i := range r.spends {
			sp := &r.spends[i]
			if !sp.held {
				continue
			}
			b, seen := s.find(sp.limit), image.find(sp.limit)
			if seen == nil { // under other limits by now
				continue
			}
			now := refilled(seen, image.at(s.now))
			off := now.tokens - b.tokens
			sp.found += off
			sp.exceeded = sp.exceeded && sp.found < sp.need
			sp.left.Refilled = image.at(s.now)
			room := seen.room() + b.granted // requests come before the grant
			if sp.left.Tokens += off; sp.left.Tokens >= room {
				if sp.left.Tokens = room; sp.left.Carried == 0 {
					sp.left.Remainder = 0
				}
			} else if image.refilled > s.base.refilled && image.refilled != s.now {
				sp.left.Remainder = now.remainder
			}
		}
	}
}

// fullView returns the bucket of which there is no item: full, under these limits.
func fullView(limits *limiter.Limits, generation uint64, now int64) *view {
	v := &view{version: schema.Version{Generation: generation, Hash: limits.Hash()}, shard: schema.WholeBucket(now), refilled: now, taken: schema.MinTime, limits: limits}
	for i := range limits.Len() {
		l := limits.At(i)
		if l.Unlimited {
			v.free = append(v.free, l.Name)
			continue
		}
		v.balances = append(v.balances, newBalance(&v.shard, limits, i, now))
	}
	return v
}

// newBalance returns a full balance of a shard's share of the i-th limit.
func newBalance(s *schema.Shard, limits *limiter.Limits, i int, now int64) balance {
	l, whole := limits.At(i), limits.Params(i)
	share := s.Share(whole)
	return balance{limit: l, params: share, whole: whole, floor: s.Floor(l.DebtFloor()), state: tokenbucket.Full(share, now)}
}
