package dynamo

import (
	"math/bits"
	"strconv"
	"strings"

	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// A bucket that is written too often for one item is split: into two, and each of
// these into two, up to maxShards. The items are the leaves of a binary tree. Shard
// i at level n has a half of what it had at level n/2; the other half is shard
// i+n/2. Each item has its own level, so any cut of the tree is a legal state, and
// every change is of one pair, by conditional writes of one item each:
//
//	split   i            half of its tokens are set aside (mv), its share is halved
//	make    i+n/2        with the tokens that were set aside
//	clear   i            nothing is set aside any more; only once the other is made
//	retire  i+n/2        it gives no more tokens; what it has stays on it
//	absorb  i            it takes those, and has the whole share again
//
// Every one of them but clear raises the epoch of its item, and every write has the
// epoch as a condition: what was planned for another share fails. A shard other
// than 0 is never made but by a split; one that is missing, or retired, is asked
// for by its heir, the shard that it was split from.

// maxShards is how many items a bucket may have.
const maxShards = 32

// shard says which part of its bucket an item is.
type shard struct {
	index  int
	level  int // of how many equal parts it is one: 1, 2, 4, ... maxShards
	epoch  int64
	birth  int64 // its epoch when it was made; 0 for the first shard
	moving bool  // the other half of a split may not be made yet
	gone   bool  // retired
	births [maxSplits]int64
	units  int64 // write units that the item has used, since it was made
}

// maxSplits is how often a shard can be split: log2 of maxShards.
const maxSplits = 5

// maxEpoch keeps epochs exact in every reader of numbers.
const maxEpoch = 1 << 53

// wholeBucket is the only shard of a bucket that is made now. Its epoch is a time,
// so that it is later than those of all shards that a bucket of this name ever had.
func wholeBucket(now int64) shard {
	return shard{level: 1, epoch: min(max(now, 0), maxEpoch/2)}
}

// sharded reports whether the bucket has, or may have, other shards.
func (s *shard) sharded() bool { return s.level > 1 }

// share returns the shard's part of a limit. Capacities are split to the
// millitoken, and each of n shards refills as much in n times the period, so that
// all leaves together are exactly the limit.
func (s *shard) share(whole tokenbucket.Params) tokenbucket.Params {
	whole.Capacity = part(whole.Capacity, s.index, s.level)
	whole.Period *= int64(s.level)
	return whole
}

// floor returns the shard's part of a debt floor, which is 0 or below.
func (s *shard) floor(whole int64) int64 { return -part(-whole, s.index, s.level) }

// part returns what shard index of level has of n.
func part(n int64, index, level int) int64 {
	if level == 1 {
		return n
	}
	both := part(n, index%(level/2), level/2)
	if index < level/2 {
		return both - both/2
	}
	return both / 2
}

// heir returns the shard that this one was split from, which stands for it when it
// is no more. Shard 0 has none.
func heir(index int) int { return index - bornAt(index)/2 }

// bornAt returns the level at which a shard is made.
func bornAt(index int) int { return 1 << bits.Len(uint(index)) } // #nosec G115 -- not below 0

// split returns the two shards that this one is split into.
func (s *shard) split() (stays, leaves shard) {
	stays = *s
	stays.level, stays.epoch, stays.moving = 2*s.level, s.epoch+1, true
	stays.births[slotOf(stays.level)] = stays.epoch
	return stays, stays.other()
}

// other returns the other half of the shard's last split, as it is made.
func (s *shard) other() shard {
	birth := s.births[slotOf(s.level)]
	return shard{index: s.index + s.level/2, level: s.level, epoch: birth, birth: birth}
}

// slotOf returns the place of the birth of the shard that is made at a level.
func slotOf(level int) int { return bits.Len(uint(level)) - 2 } // #nosec G115 -- at least 2

// absorbed returns the shard after it took in the other half of its last split,
// which has come to an epoch.
func (s *shard) absorbed(other int64) shard {
	next := *s
	next.births[slotOf(s.level)] = 0
	next.level, next.epoch = s.level/2, max(s.epoch, other)+1
	return next
}

// retired returns the shard after it gave up being one.
func (s *shard) retired() shard {
	next := *s
	next.epoch, next.gone = s.epoch+1, true
	return next
}

// indexOf returns the shard that a bucket's key names.
func indexOf(k key) int {
	n, _ := strconv.Atoi(k.pk[strings.LastIndexByte(k.pk, '#')+1:]) // bucketKey wrote it
	return n
}

// childAttr is the attribute that holds the birth of a shard on the one it was split from.
func childAttr(index int) string { return attrChild + strconv.Itoa(index) }

// shard reads what the item says of the tree.
func (r bucketReader) shard(k key) shard {
	s := shard{
		index: indexOf(k),
		level: int(r.int(attrLevel, 1, maxShards)),
		epoch: r.int(attrEpoch, 0, maxEpoch),
	}
	if s.level&(s.level-1) != 0 || s.index >= s.level {
		r.fail(attrLevel, "is %d; for shard %d it must be a larger power of two, up to %d", s.level, s.index, maxShards)
		s.level = maxShards
	}
	s.birth, _ = r.optional(attrBirth, 0, maxEpoch)
	s.units, _ = r.optional(attrUnits, 0, maxTime)
	_, s.moving = r.optional(attrMoving, 1, 1)
	_, s.gone = r.optional(attrRetired, 1, 1)
	for level := 2; level <= s.level; level *= 2 {
		if s.index < level/2 {
			s.births[slotOf(level)], _ = r.optional(childAttr(s.index+level/2), 0, maxEpoch)
		}
	}
	if s.moving && s.births[slotOf(max(s.level, 2))] == 0 {
		r.fail(attrMoving, "is there, and the shard that is split off is not")
		s.moving = false
	}
	return s
}
