package schema

import (
	"math/bits"
	"strconv"
	"strings"

	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// A bucket that is written too often for one item is split: into two, and each of
// these into two, up to [MaxShards]. The items are the leaves of a binary tree. Shard
// i at level n has a half of the limits that it had at level n/2; shard i+n/2 has the
// other half. Each item has its own level, so any cut of the tree is a legal state.
// Every change is of one pair, by conditional writes of one item each:
//
//	split   i            half of its tokens are set aside (mv), its share is halved
//	make    i+n/2        with the tokens that were set aside
//	clear   i            nothing is set aside any more; only once the other is made
//	retire  i+n/2        it gives no more tokens, and keeps those that it has
//	absorb  i            it takes those, and has the whole share again
//
// Every one of them but clear raises the epoch of its item, and every write has the
// epoch as a condition: a write that was planned for another share fails. A shard other
// than 0 is made only by a split. In the place of one that is missing, or retired, the
// shard that it was split from is asked: its heir.

// MaxShards is how many items a bucket may have.
const MaxShards = 32

// Shard says which part of its bucket an item is.
type Shard struct {
	Index   int
	Level   int // of how many equal parts it is one: 1, 2, 4, ... MaxShards
	Epoch   int64
	Birth   int64 // its epoch when it was made; 0 for the first shard
	Moving  bool  // the other half of a split may not be made yet
	Retired bool  // merged into its heir, it gives no tokens
	Births  [maxSplits]int64
	Units   int64 // write units that the item has used, since it was made
}

// maxSplits is how often a shard can be split: log2 of MaxShards.
const maxSplits = 5

// MaxEpoch keeps epochs exact in every reader of numbers.
const MaxEpoch = 1 << 53

// WholeBucket is the only shard of a bucket that is made now. Its epoch is a time,
// so that it is later than those of all shards that a bucket of this name ever had.
func WholeBucket(now int64) Shard {
	return Shard{Level: 1, Epoch: min(max(now, 0), MaxEpoch/2)}
}

// Sharded reports whether the bucket has, or may have, other shards.
func (s *Shard) Sharded() bool { return s.Level > 1 }

// Share returns the shard's part of a limit. Capacities are split to the millitoken,
// and each of n shards refills as much in n times the period. So all leaves together
// are exactly the limit.
func (s *Shard) Share(whole tokenbucket.Params) tokenbucket.Params {
	whole.Capacity = PartOf(whole.Capacity, s.Index, s.Level)
	whole.Period *= int64(s.Level)
	return whole
}

// Floor returns the shard's part of a debt floor, which is 0 or below.
func (s *Shard) Floor(whole int64) int64 { return -PartOf(-whole, s.Index, s.Level) }

// PartOf returns the part of n, not below 0, that the shard index of level has.
func PartOf(n int64, index, level int) int64 {
	if level == 1 {
		return n
	}
	both := PartOf(n, index%(level/2), level/2)
	if index < level/2 {
		return both - both/2
	}
	return both / 2
}

// Heir returns the shard that a shard was split from, which stands for it when it is
// retired. Shard 0 has none.
func Heir(index int) int { return index - BornAt(index)/2 }

// BornAt returns the level at which a shard is made.
func BornAt(index int) int { return 1 << bits.Len(uint(index)) } // #nosec G115 -- not below 0

// Split returns the two shards that this one is split into.
func (s *Shard) Split() (stays, leaves Shard) {
	stays = *s
	stays.Level, stays.Epoch, stays.Moving = 2*s.Level, s.Epoch+1, true
	stays.Births[BirthSlot(stays.Level)] = stays.Epoch
	return stays, stays.Other()
}

// Other returns the other half of the shard's last split, as it is made.
func (s *Shard) Other() Shard {
	birth := s.Births[BirthSlot(s.Level)]
	return Shard{Index: s.Index + s.Level/2, Level: s.Level, Epoch: birth, Birth: birth}
}

// BirthSlot returns the place of the birth of the shard that is made at a level.
func BirthSlot(level int) int { return bits.Len(uint(level)) - 2 } // #nosec G115 -- at least 2

// Absorb returns the shard after the merge with the other half of its last split,
// whose epoch is other.
func (s *Shard) Absorb(other int64) Shard {
	next := *s
	next.Births[BirthSlot(s.Level)] = 0
	next.Level, next.Epoch = s.Level/2, max(s.Epoch, other)+1
	return next
}

// Retire returns the shard after it was retired.
func (s *Shard) Retire() Shard {
	next := *s
	next.Epoch, next.Retired = s.Epoch+1, true
	return next
}

// ShardIndex returns the shard that a bucket's key names.
func ShardIndex(k Key) int {
	n, _ := strconv.Atoi(k.PK[strings.LastIndexByte(k.PK, '#')+1:]) // bucketKey wrote it
	return n
}

// ChildAttr is the attribute that holds the birth of a shard on the one it was split from.
func ChildAttr(index int) string { return attrChild + strconv.Itoa(index) }

// Shard reads the item's place in the tree. k is the key of the item.
func (r *Reader) Shard(k Key) Shard {
	s := Shard{
		Index: ShardIndex(k),
		Level: int(r.Int(AttrLevel, 1, MaxShards)),
		Epoch: r.Int(AttrEpoch, 0, MaxEpoch),
	}
	if s.Level > MaxShards || s.Level&(s.Level-1) != 0 || s.Index >= s.Level {
		r.Fail(AttrLevel, "is %d; for shard %d it must be a larger power of two, up to %d", s.Level, s.Index, MaxShards)
		s.Level = MaxShards
	}
	s.Birth, _ = r.Optional(AttrBirth, 0, MaxEpoch)
	s.Units, _ = r.Optional(AttrUnits, 0, MaxTime)
	_, s.Moving = r.Optional(AttrMoving, 1, 1)
	if _, s.Retired = r.Optional(AttrRetired, 1, 1); s.Retired && s.Index == 0 {
		r.Fail(AttrRetired, "is there, and the shard is the first: no other one stands for it")
		s.Retired = false
	}
	for level := 2; level <= s.Level; level *= 2 {
		if s.Index < level/2 {
			s.Births[BirthSlot(level)], _ = r.Optional(ChildAttr(s.Index+level/2), 0, MaxEpoch)
		}
	}
	if s.Moving && s.Births[BirthSlot(max(s.Level, 2))] == 0 {
		r.Fail(AttrMoving, "is there, and the shard that is split off is not")
		s.Moving = false
	}
	return s
}
