package schema

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Attributes returns all that an item has of the state, but for its keys, its names, and
// the counters: wcu and the tc of limits.
func (b *Bucket) Attributes() map[string]types.AttributeValue {
	item := attributes{
		AttrSerial: NumberAttribute(b.Serial), AttrAt: NumberAttribute(b.At),
		AttrVersion:    NumberAttribute(b.Version.Hash),
		AttrGeneration: NumberAttribute(b.Version.Generation),
	}
	item.optional(AttrLastTake, b.Taken, MinTime)
	item.optional(AttrTTL, b.TTL, 0)
	if b.Use > 0 {
		item[AttrForgotten], item[AttrUseBefore] = NumberAttribute(b.Until), NumberAttribute(b.Use)
	}
	for i := range SlotCount {
		for c := range ChannelCount {
			item.binary(SlotAttr(i, c), []byte(b.Slots[i][c]))
		}
		item.binary(BookedAttr(i), []byte(b.Booked[i]))
	}
	if b.Turn.ID != "" {
		item[AttrTurn] = b.Turn.Attribute()
	}
	item.leases(b)
	item.shard(&b.Shard, b.MovedAt)
	for i := range b.Balances {
		item.balance(&b.Balances[i], b.Shard.Moving)
	}
	for _, name := range b.Free {
		item[LimitAttr(name, LimitUnlimited)] = NumberAttribute(1)
	}
	return item
}

type attributes map[string]types.AttributeValue

// optional writes a number unless it is the one that an absent attribute stands for.
func (a attributes) optional(attr string, n, absent int64) {
	if n != absent {
		a[attr] = NumberAttribute(n)
	}
}

func (a attributes) binary(attr string, value []byte) {
	if len(value) > 0 {
		a[attr] = &types.AttributeValueMemberB{Value: value}
	}
}

func (a attributes) leases(b *Bucket) {
	if b.Pending > 0 {
		a[AttrPending] = NumberAttribute(b.Pending)
	}
	if !b.Leased() {
		return
	}
	a[AttrRate], a[AttrRoom], a[AttrOffset] = NumberAttribute(b.Line.Rate), NumberAttribute(b.Line.Room), NumberAttribute(b.Line.Offset)
	packed := make([]byte, 0, leaseSize*len(b.Leases))
	for i := range b.Leases {
		packed = appendLease(packed, &b.Leases[i])
	}
	a.binary(AttrLeases, packed)
}

func (a attributes) shard(s *Shard, movedAt int64) {
	a[AttrLevel], a[AttrEpoch] = NumberAttribute(s.Level), NumberAttribute(s.Epoch)
	if s.Sharded() {
		a[AttrShardCount] = NumberAttribute(s.Level)
	}
	a.optional(AttrBirth, s.Birth, 0)
	for level := 2; level <= s.Level; level *= 2 {
		a.optional(ChildAttr(s.Index+level/2), s.Births[BirthSlot(level)], 0)
	}
	if s.Moving {
		a[AttrMoving], a[AttrMovedAt] = NumberAttribute(1), NumberAttribute(movedAt)
	}
	if s.Retired {
		a[AttrRetired] = NumberAttribute(1)
	}
}

func (a attributes) balance(b *Balance, moving bool) {
	attr := func(suffix string) string { return LimitAttr(b.Limit.Name, suffix) }
	a[attr(LimitFullAt)] = b.FullAt.Attribute()
	a[attr(LimitCapacity)] = NumberAttribute(b.Whole.Capacity)
	a[attr(LimitAmount)] = NumberAttribute(b.Whole.Amount)
	a[attr(LimitPeriod)] = NumberAttribute(b.Whole.Period)
	a.optional(attr(LimitFloor), b.Limit.DebtFloor(), defaultFloor(b.Whole))
	a.optional(attr(LimitCarried), b.Carried, 0)
	if b.Dormant {
		a[attr(LimitDormant)] = NumberAttribute(1)
	}
	if moving {
		a[attr(LimitMoving)] = NumberAttribute(b.Moving)
		a.optional(attr(LimitAside), b.Aside, 0)
	}
}
