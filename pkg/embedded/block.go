package embedded

import (
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// block is what the file lets a bucket give. For every limit the file has the exact
// state at some time, and the size of what may be taken since: that much may be lost
// when the process dies, because recovery subtracts it, and no more may be given
// before the file has a newer state.
//
// Why that is exact: let F be how the state in the file refills with nobody taking,
// and B the true balance. Refilling both keeps F-B as it is, or makes it smaller
// where F is full already; where B is full and F is not yet it makes it larger, up to
// 0 only. A take makes it larger by what is taken, and what is given back smaller. So
// F-B never exceeds what was taken and not given back since, counted from 0 and never
// below it: span.spent. Before anything is taken it is made sure that spent does not
// exceed the size in the file. So F less that size never exceeds B.
//
// The shard's lock guards it.
type block struct {
	spans []span // by limit
	since int64  // when the newest state was taken, Unix ms
	hour  int64  // that span.used counts, hours since 1970

	stored  bool // the file has a state of the bucket
	clean   bool // and it is the bucket's state, with no block
	queued  bool // it is in a batch that is not written yet
	flying  bool // a newer state is being written
	leaving bool // the file is to forget the bucket
}

// span is a block of one limit, in millitokens.
type span struct {
	size  int64 // may be taken since the state in the file
	spent int64 // was taken since, less what was given back; 0 to size

	nextSize  int64 // the same of the state that is being written
	nextSpent int64

	need int64 // what somebody who waits wants to take
	last int64 // what the last one took
	gave int64 // what the op at hand gives, and there is room for

	used   int64 // net consumption in the hour, for usage
	turned int64 // the same of an earlier hour, which is being written
}

const (
	// shareOfCapacity is the part of a capacity that a block is at most, unless one
	// request takes more: the part of a bucket that a crash can lose.
	shareOfCapacity = 16
	// leastShare is the part of a capacity that a block may be so that the next request
	// need not wait, however small the capacity is.
	leastShare = 4
	// blockLasts is how long a block should last, in milliseconds.
	blockLasts = 1000
)

// newBlock returns a block that covers nothing.
func newBlock(limits *limiter.Limits, now int64) *block {
	return &block{spans: make([]span, limits.Len()), since: now, hour: hourOf(now)}
}

// uncover forgets what the file has of a bucket that is under other limits now: its
// state refills by the old ones. Nothing is taken before the file has a new state.
func (k *block) uncover(from, to *limiter.Limits) {
	old := k.spans
	k.spans = make([]span, to.Len())
	for i := range old {
		if j := to.Find(from.At(i).Name); j >= 0 {
			k.spans[j].used = old[i].used
		}
	}
}

// cost is what a spend takes at most.
func cost(sp *limiter.Spend, admitted bool) int64 {
	n := max(sp.Charge-sp.Refund, 0)
	if admitted {
		n += sp.Take
	}
	return n
}

// covers reports whether what op takes may be taken, and notes what is missing. The
// spends must be prepared.
func (b *bucket) covers(op *limiter.Op, admitted bool) bool {
	covered := true
	for i := range op.Spends {
		sp := &op.Spends[i]
		if !sp.Held {
			continue
		}
		if n := cost(sp, admitted); n > 0 && !b.block.spans[sp.Index].covers(n) {
			covered = false
		}
	}
	return covered
}

func (s *span) covers(n int64) bool {
	if s.spent+n <= s.size {
		return true
	}
	s.need = max(s.need, n)
	return false
}

// gives reports whether an op gives anything back: then it must not be prepared twice.
func gives(op *limiter.Op) bool {
	for i := range op.Spends {
		if op.Spends[i].Refund > op.Spends[i].Charge {
			return true
		}
	}
	return false
}

// foresee is covers for an op that gives something back: it asks for what the op
// takes when it is admitted, and notes what it gives that there is room for.
func (b *bucket) foresee(op *limiter.Op, now int64) bool {
	covered := true
	for i := range op.Spends {
		sp := &op.Spends[i]
		index := b.limits.Find(sp.Limit)
		if index < 0 || b.limits.Unlimited(index) {
			continue
		}
		span := &b.block.spans[index]
		if n := cost(sp, true); n > 0 && !span.covers(n) {
			covered = false
		}
		p := b.limits.Params(index)
		span.gave = max(min(sp.Refund-sp.Charge, p.Capacity-b.balance(index).Available(p, now)), 0)
	}
	return covered
}

// account counts what an op has taken and given, and reports whether the block is
// used up by half.
func (b *bucket) account(op *limiter.Op, admitted, gave bool) (low bool) {
	for i := range op.Spends {
		sp := &op.Spends[i]
		if !sp.Held {
			continue
		}
		b.block.clean = false
		s := &b.block.spans[sp.Index]
		n := cost(sp, admitted)
		s.used += sp.Charge - sp.Refund
		if admitted {
			s.used += sp.Take
		}
		if n > 0 {
			s.last = n
		}
		if gave {
			n -= s.gave
			s.gave = 0
		}
		s.spent, s.nextSpent = max(s.spent+n, 0), max(s.nextSpent+n, 0)
		low = low || n > 0 && s.spent > s.size/2
	}
	return low
}

// next chooses the size of the next block of a limit: as much as was taken in the
// time that a block lasts, little against the capacity, and what is asked for now.
func (s *span) next(capacity, elapsed int64) int64 {
	demand := 2 * s.spent
	if elapsed >= blockLasts {
		demand = s.spent / (elapsed / blockLasts)
	}
	size := min(max(demand, 2*s.last), capacity/shareOfCapacity)
	return max(size, min(2*s.last, capacity/leastShare), s.need, s.size-s.spent)
}

// launch takes the state of the bucket that is to be written, with the next sizes.
func (b *bucket) launch(now int64) {
	k := b.block
	k.queued, k.flying, k.clean = false, true, false
	for i := range k.spans {
		if b.limits.Unlimited(i) {
			continue
		}
		s := &k.spans[i]
		s.nextSize, s.nextSpent = s.next(b.limits.Params(i).Capacity, now-k.since), 0
		s.need = 0
	}
	k.since = now
}

// land puts the state that was written in force; failed says that it was not.
func (b *bucket) land(failed bool) {
	k := b.block
	k.flying = false
	if failed {
		return
	}
	k.stored = !k.leaving
	for i := range k.spans {
		s := &k.spans[i]
		s.size, s.spent = s.nextSize, s.nextSpent
	}
}

// storedBlock is the block of a bucket that is as the file has it.
func storedBlock(limits *limiter.Limits, now int64) *block {
	k := newBlock(limits, now)
	k.stored, k.clean = true, true
	return k
}
