package embedded

import (
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// block is what the file lets a bucket give. For every limit the file has the exact
// state at some time, and the size of what may be taken since: that much may be lost
// when the process dies, because recovery subtracts it, and no more may be given
// before the file has a newer state.
//
// Why that is exact: let F be how the state in the file refills with nobody taking,
// and B the true balance. Refilling both keeps F-B as it is, or makes it smaller
// where F is full already; where B is full and F is not yet it makes it larger, up to
// 0 only. A take makes it larger by what is taken, and what is given back smaller, or
// 0 at most where it fills the bucket. So F-B never exceeds what was taken and not
// given back since, counted from 0 and never below it: span.spent. Before anything is
// taken it is made sure that spent does not exceed the size in the file. So F less
// that size never exceeds B. What is given back beyond what was taken is in the file
// before it is answered: so a crash loses no more than the block.
//
// While a newer state is being written, the file has the one or the other, so both
// must cover what is taken. After a commit that may have failed both go on to count,
// see span.land.
//
// The same holds of the use: refill lowers both the file's and the true one, to 0 at
// least, and a take raises the true one. So the file's use and the block together are
// never below the true use, by which a limit is raised.
//
// Under other limits a state refills otherwise, and covers nothing. Then nothing is
// taken before the file has a state under the new ones, nor the tokens that a raise has added.
//
// The shard's lock guards it.
type block struct {
	stored  bool // the file has a record of the bucket
	clean   bool // and nothing has changed since: it is the bucket's state, with no block
	queued  bool // it is in a batch that is not taken up yet
	leaving leaving
	flying  bool    // a newer state is being written
	vacated leaving // or rather, none: the file is forgetting the bucket
	unsure  bool    // a commit of it ended nobody knows how

	hour   int64 // that span.used and events count, hours since 1970
	events int64 // of usage in the hour, see limiter.Usage
	first  span
	since  int64    // when the newest state was taken, Unix ms
	rest   *backlog // nil for a block of one limit with nothing past
}

// leaving says whether the file is to close the block of the bucket, or the file, and then the
// memory, is to forget the bucket, by the next batch that it is in.
type leaving uint8

const (
	stays leaving = iota
	rests         // stays, with no block, unless it was used meanwhile
	whenIdle
	purged // idle or not
)

// backlog is what only some blocks have.
type backlog struct {
	spans  []span     // of the second limit and on
	past   []consumed // in earlier hours, and of limits that are gone
	flying int        // how many of past are being written

	marks       []change // of adjustments that the file has not, to be written with their balance
	marksFlying int      // how many of them are being written
}

// span is a block of one limit, in millitokens.
type span struct {
	size  int64 // may be taken since the state in the file
	spent int64 // was taken since, less what was given back; 0 to size

	nextSize  int64 // the same of the state that is being written,
	nextSpent int64 // or else of the state in the file again

	used int64 // net consumption in the hour, for usage
	ask  int64 // at how much spent to see whether a newer state is due
	last int64 // what the last one took

	kept int64 // the need of the state before, until one took so much: who waits has yet to come back
	need int64 // what those who wait want to take
}

// Parts of a capacity. A block is what a crash can take from a bucket, so that it is
// small against the capacity where that does not cost a commit for every request.
const (
	hotShare  = 16  // that a block is at most for a bucket in demand
	nextShare = 4   // for those who wait, and so that the next request need not
	tinyShare = 256 // that a block is at least
)

const (
	// blockLasts is how long a block should last, in milliseconds.
	blockLasts = 1000
	// askShare is the part of a block that is left when the next one is asked for.
	askShare = 4
	// maxFlow is the most that one op takes of one limit: its charge and its take.
	maxFlow = 2 * tokenbucket.MaxAmount
)

// newBlock returns a block that covers nothing.
func newBlock(limits *limiter.Limits, now int64) *block {
	k := &block{}
	k.init(limits, now)
	return k
}

func (k *block) init(limits *limiter.Limits, now int64) {
	k.since, k.hour = now, hourOf(now)
	k.make(limits.Len())
}

// storedBlock is the block of a bucket that is as the file has it.
func storedBlock(limits *limiter.Limits, now int64) *block {
	k := newBlock(limits, now)
	k.stored, k.clean = true, true
	return k
}

// make makes n spans that cover nothing.
func (k *block) make(n int) {
	k.first = span{}
	if n > 1 {
		k.backlog().spans = make([]span, n-1)
	} else if k.rest != nil {
		k.rest.spans = nil
	}
}

func (k *block) backlog() *backlog {
	if k.rest == nil {
		k.rest = &backlog{}
	}
	return k.rest
}

// span returns the span of the i-th limit.
func (k *block) span(i int) *span {
	if i == 0 {
		return &k.first
	}
	return &k.rest.spans[i-1]
}

// uncover turns to other limits than those of the state in the file.
func (k *block) uncover(from, to *limiter.Limits) {
	old := make([]span, from.Len())
	for i := range old {
		old[i] = *k.span(i)
	}
	k.make(to.Len())
	k.clean = false
	for i := range old {
		name := from.At(i).Name
		if j := to.Find(name); j >= 0 && !to.Unlimited(j) {
			s := k.span(j)
			s.used, s.last = old[i].used, old[i].last
		} else {
			k.put(name, old[i].used)
		}
	}
}

// flow is what a spend gives to a bucket, and what it takes from it then.
func flow(sp *limiter.Spend, admitted bool) (gives, takes int64) {
	net := sp.Charge - sp.Refund
	gives, takes = max(-net, 0), max(net, 0)
	if admitted {
		takes += sp.Take
	}
	return gives, takes
}

func (s *span) covers(gives, takes int64) bool {
	return takes == 0 || max(s.spent-gives, 0)+takes <= s.size && max(s.nextSpent-gives, 0)+takes <= s.nextSize
}

// next chooses the size of the next block of a limit: what was taken in the time that
// a block lasts, or what is left, so that it covers what is taken while it is written, but
// no more than there will be by then; and what is asked for.
func (s *span) next(capacity, available, elapsed int64) int64 {
	demand := 2 * s.spent
	if elapsed >= blockLasts {
		demand = s.spent / (elapsed / blockLasts)
	}
	ahead := max(
		min(demand, capacity/hotShare),
		min(2*s.last, capacity/nextShare),
		min(s.last, limiter.Milli), // however small the capacity is
		capacity/tinyShare,
	)
	return max(min(max(ahead, s.size-s.spent), available), s.need, 0)
}

// outcome is how a commit ended.
type outcome uint8

const (
	made    outcome = iota
	notMade         // the file is as it was before
	unknown         // or it has what was to be written
)

// land settles on one state. Of a file that has the state before or the next one no more is covered
// than each of them covers, now and after whatever is given back and taken.
func (s *span) land(how outcome) {
	switch how {
	case made:
		s.size, s.spent, s.ask = s.nextSize, s.nextSpent, s.nextSize-s.nextSize/askShare
	case unknown:
		left := min(s.size-s.spent, s.nextSize-s.nextSpent)
		s.size = min(s.size, s.nextSize)
		s.spent = s.size - left
	case notMade:
	}
	s.nextSize, s.nextSpent = s.size, s.spent
}

// put notes the usage of a limit in the hour, or its events.
func (k *block) put(limit string, amount int64) {
	if amount != 0 {
		past := k.backlog()
		past.past = append(past.past, consumed{k.hour, limit, amount})
	}
}

// unsaved reports whether anything was used that no row has.
func (k *block) unsaved() bool {
	if k.first.used != 0 || k.events != 0 {
		return true
	}
	if k.rest == nil {
		return false
	}
	for i := range k.rest.spans {
		if k.rest.spans[i].used != 0 {
			return true
		}
	}
	return len(k.rest.past) > 0 || len(k.rest.marks) > 0
}
