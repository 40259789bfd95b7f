package ratemodel

import "math/bits"

// A bucket is a tree of shards. Shard i at level n has half of its tokens at level n/2;
// the other half is shard i+n/2. Each item has its own level.

// childOf is the other half of a shard's last split.
func childOf(i int, level int64) int { return i + int(level)/2 }

// bornAt is the level at which a shard is made, and at which it retires.
func bornAt(i int) int64 { return 1 << bits.Len(uint(i)) } // #nosec G115 -- not below 0

// birthOf is the attribute with the birth of the shard that was split off at a level.
func birthOf(level int64) attr { return attrChildren + attr(bits.Len(uint(level))-2) } // #nosec G115 -- at least 2
