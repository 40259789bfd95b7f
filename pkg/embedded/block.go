package embedded

import (
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// block is the part of a bucket's balance that may be taken before the next commit. For
// every limit the file has the exact state at some time, and the size of the block. [restored.recover]
// after a crash subtracts the block, so a crash loses at most its size. Tokens beyond it are
// taken only when the file has a newer state.
//
// Why that is exact: let F be the state in the file, refilled with no take, and B the true
// balance. The difference F-B changes as follows:
//
//   - Refill of both keeps it, or lowers it where F is full already. Where B is full and F
//     is not yet, refill raises it, up to 0 only.
//   - A take raises it by the amount taken.
//   - A refund lowers it, or sets it to 0 at most where it fills the bucket.
//
// So F-B never exceeds the tokens taken and not refunded since, counted from 0 and never
// below it: span.spent. A take is made only if spent then does not exceed the size in the
// file. So F less that size never exceeds B. A refund of more than was taken is in the file
// before it is answered. So a crash loses no more than the block.
//
// While a newer state is being written, the file has the old one or the new one. So both must cover
// each take. After a commit of unknown outcome both still count, see span.conclude.
//
// The same is true of the use. Refill lowers the use in the file and the true one, to 0 at least,
// and a take raises the true one. So the use in the file and the block together are never below the
// true use, by which a limit is raised.
//
// Under other limits a state refills at another rate, and covers nothing. Then no token is
// taken, and none that a raise added, before the file has a state under the new limits.
//
// The shard's lock guards it.
type block struct {
	stored   bool       // the file has a record of the bucket
	clean    bool       // the record is the state of the bucket, without a block
	queued   bool       // the bucket is in a batch that is not begun yet
	onCommit commitKind // of the next batch that the bucket is in
	inFlight bool       // a commit of the bucket is under way
	deleting commitKind // of a commit under way that deletes the record; else commitOpen
	unknown  bool       // a commit of the bucket had an unknown outcome

	hour   int64 // that span.used and events count, hours since 1970
	events int64 // of usage in the hour, see limiter.Usage
	first  span
	since  int64    // time of the newest state written, Unix ms
	rest   *backlog // nil for a block of one limit without a backlog
}

// commitKind says which write of a bucket a commit does.
type commitKind uint8

const (
	commitOpen  commitKind = iota // write the state, and open a new block
	commitClose                   // write the state without a block; commitOpen if the bucket was used since
	commitDrop                    // delete the record, and then the bucket; commitOpen if it is not idle
	commitPurge                   // delete the record, and then the bucket, idle or not
)

// backlog is the part of a block that only some blocks need.
type backlog struct {
	spans    []span     // of the second limit and on
	past     []consumed // usage of earlier hours, and of limits that are gone
	inFlight int        // how many of past are being written

	marks         []change // of adjustments, to be written with their balance
	marksInFlight int      // how many of marks are being written
}

// span is the block of one limit, in millitokens.
type span struct {
	size  int64 // most that may be taken since the state in the file
	spent int64 // taken since, less refunds; 0 to size

	nextSize  int64 // the same two of the state that is being written,
	nextSpent int64 // or else copies of size and spent

	used    int64 // net consumption in the hour, for usage
	renewAt int64 // the value of spent at which to check whether a newer state is due
	last    int64 // the amount of the last take

	lastNeed int64 // need at the last commit, until one take was as large: its caller has yet to try again
	need     int64 // tokens that waiting callers want to take
}

// Parts of a capacity. A crash can cost a bucket its whole block. So a block is small
// against the capacity where that does not cost a commit for each request.
const (
	hotShare  = 16  // the largest block of a bucket in demand
	nextShare = 4   // the largest block for waiting callers and the request after the last
	tinyShare = 256 // the smallest block
)

const (
	// blockLasts is how long a block should last, in milliseconds.
	blockLasts = 1000
	// renewShare is the part of a block that is left when the next one is requested.
	renewShare = 4
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

// storedBlock returns the block of a bucket whose record in the file is its state.
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

// replaceLimits closes the block, and starts spans for other limits than those of the state in the
// file.
func (k *block) replaceLimits(from, to *limiter.Limits) {
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
			k.put(name, old[i].used) // rule: usage of a limit that is gone is noted
		}
	}
}

// flow returns the amount that a spend adds to a bucket, and the amount that it then takes.
func flow(sp *limiter.Spend, admitted bool) (gives, takes int64) {
	net := sp.Charge - sp.Refund
	gives, takes = max(-net, 0), max(net, 0)
	if admitted {
		takes += sp.Take
	}
	return gives, takes
}

func (s *span) covers(gives, takes int64) bool {
	return takes == 0 || max(s.spent-gives, 0)+takes <= s.size && max(s.nextSpent-gives, 0)+takes <= s.nextSize // rule: a block covers under both states
}

// next returns the size of the next block of a limit. It is the demand of the time that a block
// lasts, or the rest of this block if that is more. So takes go on during the commit. It is at most
// the balance at the end of that time, and at least the need.
func (s *span) next(capacity, available, elapsed int64) int64 {
	demand := 2 * s.spent
	if elapsed >= blockLasts {
		demand = s.spent / (elapsed / blockLasts)
	}
	ahead := max(
		min(demand, capacity/hotShare),
		min(2*s.last, capacity/nextShare),
		min(s.last, limiter.Milli), // one token at least, however small the capacity is
		capacity/tinyShare,
	)
	return max(min(max(ahead, s.size-s.spent), available), s.need, 0)
}

// outcome is the outcome of a commit.
type outcome uint8

const (
	committed    outcome = iota
	notCommitted         // the file is unchanged
	unknown              // the file is unchanged, or has the new state
)

// conclude applies the outcome of a commit. If the outcome is unknown, the file has the state
// before or the next one. Then the span covers no more than either of them covers, now and after
// any refunds and takes.
func (s *span) conclude(how outcome) {
	switch how {
	case committed:
		s.size, s.spent, s.renewAt = s.nextSize, s.nextSpent, s.nextSize-s.nextSize/renewShare
	case unknown:
		left := min(s.size-s.spent, s.nextSize-s.nextSpent) // rule: a commit of unknown outcome covers by both states
		s.size = min(s.size, s.nextSize)
		s.spent = s.size - left
	case notCommitted:
	}
	s.nextSize, s.nextSpent = s.size, s.spent
}

// put adds usage of a limit in the hour, or its events, to the backlog.
func (k *block) put(limit string, amount int64) {
	if amount != 0 {
		past := k.backlog()
		past.past = append(past.past, consumed{k.hour, limit, amount})
	}
}

// unsaved reports whether there is usage or a mark that the file does not have.
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

// writeMarks appends the marks that are written with the next commit.
func (k *block) writeMarks(changes []change) []change {
	if k.rest == nil {
		return changes
	}
	k.rest.marksInFlight = len(k.rest.marks)
	return append(changes, k.rest.marks...)
}

// deleteRecord closes the block of a bucket whose record is to be deleted.
func (k *block) deleteRecord(how commitKind) {
	k.inFlight, k.deleting, k.clean = true, how, false
	k.first = span{used: k.first.used, last: k.first.last}
	if k.rest == nil {
		return
	}
	for i, s := range k.rest.spans {
		k.rest.spans[i] = span{used: s.used, last: s.last}
	}
}
