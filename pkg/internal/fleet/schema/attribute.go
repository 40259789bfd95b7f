package schema

// Attributes of a bucket's item.
const (
	AttrEntity     = "entity_id"
	AttrResource   = "resource"
	AttrVersion    = "cv"
	AttrGeneration = "cg"
	AttrSlot       = "lw" // and a digit, and the letter of a channel
	AttrBooked     = "lc" // and a digit
	AttrLastTake   = "lt"
	AttrTTL        = "ttl"
	AttrShardCount = "shard_count" // a hint, of sharded buckets
	AttrLevel      = "lvl"
	AttrEpoch      = "ep"
	AttrBirth      = "be" // of a shard that another one was split into: its epoch when it was made
	AttrMoving     = "mv" // present while the other half of a split is not made yet
	AttrRetired    = "rt" // present on a retired shard
	attrChild      = "pe" // and a number: the birth of that shard, on the one it was split from
	AttrUnits      = "wcu"
	AttrTurn       = "wt" // the turn that a replica asked for
	AttrForgotten  = "fz" // until when limits that the item does not hold start empty
	AttrUseBefore  = "fu" // greatest use of the limits that were forgotten
)

// Attributes of one limit of a bucket's item: b_{limit}_{one of these}.
const (
	LimitPrefix = "b_"

	LimitCapacity  = "cp"
	LimitAmount    = "ra"
	LimitPeriod    = "rp"
	LimitFloor     = "fl"
	LimitConsumed  = "tc"
	LimitDormant   = "dz"
	LimitUnlimited = "un" // the limits that the bucket is under have this one as unlimited
	LimitMoving    = "mv" // tokens on the way to the other half of a split
	LimitCarried   = "cu" // use that the balance carries, from a greater capacity
	LimitAside     = "mc" // the same of the other half of a split
)

// SlotCount is how many replicas can have their last write on an item at once.
const SlotCount = 8

// ChannelCount is how many takes of one replica can be under way on an item at once. Each
// leaves its id in a channel of its own, which is free again once its outcome is known.
const ChannelCount = 4

// LimitAttr returns the name of an attribute of a limit.
func LimitAttr(limit, attr string) string { return LimitPrefix + limit + "_" + attr }

// The names of all slots are cut out of these: each read and write of an item asks for all of them.
const (
	slotAttrs   = "lw0alw0blw0clw1alw1blw1clw2alw2blw2clw3alw3blw3clw4alw4blw4clw5alw5blw5clw6alw6blw6clw7alw7blw7c"
	bookedAttrs = "lc0lc1lc2lc3lc4lc5lc6lc7"
)

// SlotAttr returns the name of the attribute of a slot's channel. The first one has no letter.
func SlotAttr(slot, channel int) string {
	const size = len(AttrSlot) + len("0a")
	at := (slot*(ChannelCount-1) + max(channel-1, 0)) * size
	if channel == 0 {
		return slotAttrs[at : at+size-1]
	}
	return slotAttrs[at : at+size]
}

// BookedAttr returns the name of the attribute with the last charge or refund of a slot.
func BookedAttr(slot int) string {
	const size = len(AttrBooked) + len("0")
	return bookedAttrs[slot*size : (slot+1)*size]
}

// Times that an item may hold: any int64, so that no caller's clock can make an
// item that the next one refuses.
const (
	MinTime = -1 << 63
	MaxTime = 1<<63 - 1
)

// MaxTTL is the last second of the year 9999, the latest ttl that an item has.
const MaxTTL = 253_402_300_799

// AttrSchemaVersion is the attribute of the version record.
const AttrSchemaVersion = "schema_version"

// Version says how new the limits are that a bucket is under.
type Version struct {
	Generation uint64
	Hash       uint64
}

// Newer reports whether limits of version v replace those of version w.
func (v Version) Newer(w Version) bool {
	if v.Hash == w.Hash {
		return false
	}
	return v.Generation > w.Generation || v.Generation == w.Generation && v.Hash > w.Hash
}
