package schema

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// oldAttributes is [Bucket.Attributes] for an item of form 1. Balances are those of Old.
func (b *Bucket) oldAttributes() map[string]types.AttributeValue {
	item := attributes{
		AttrRefilled: NumberAttribute(b.At), AttrVersion: NumberAttribute(b.Version.Hash), AttrGeneration: NumberAttribute(b.Version.Generation),
	}
	item.optional(AttrLastTake, b.Taken, MinTime)
	item.optional(AttrTTL, b.TTL, 0)
	if b.Use > 0 {
		item[AttrForgotten], item[AttrUseBefore] = NumberAttribute(b.Until), NumberAttribute(b.Use)
	}
	for i := range SlotCount {
		item.oldID(SlotAttr(i, 0), b.Slots[i][0])
		item.oldID(BookedAttr(i), b.Booked[i])
	}
	if turn, found := b.Old.Item[AttrTurn]; found {
		item[AttrTurn] = turn
	}
	item.shard(&b.Shard, b.MovedAt)
	delete(item, AttrMovedAt)
	for i := range b.Balances {
		item.oldBalance(&b.Balances[i], b)
	}
	for _, name := range b.Free {
		item[LimitAttr(name, LimitUnlimited)] = NumberAttribute(1)
	}
	for i := range b.Old.Leases {
		l := &b.Old.Leases[i]
		item[attrOldLease+l.Replica] = &types.AttributeValueMemberS{Value: l.Text}
	}
	return item
}

func (a attributes) oldID(attr string, id WriteID) {
	if id != "" {
		a[attr] = id.OldAttribute()
	}
}

func (a attributes) oldBalance(b *Balance, of *Bucket) {
	attr := func(suffix string) string { return LimitAttr(b.Limit.Name, suffix) }
	a.balance(b, of.Shard.Moving)
	delete(a, attr(LimitFullAt))
	at := of.Old.Balances[b.Limit.Name]
	a[attr(LimitTokens)], a[attr(LimitRemainder)] = NumberAttribute(at.Tokens), NumberAttribute(at.Remainder)
	delete(a, attr(LimitCarried))
	a.optional(attr(LimitCarried), at.Carried, 0)
	if b.Dormant {
		a[attr(LimitRefilled)] = NumberAttribute(at.Refilled)
	}
	if _, had := of.Old.Item[attr(LimitLeased)]; had || b.Leased > 0 {
		a[attr(LimitLeased)] = NumberAttribute(b.Leased)
	}
}

// RequireOld makes the write one on the very item of form 1 that was seen.
func (e *Expression) RequireOld(b *Bucket) {
	e.Require(AttrRefilled, "=", NumberAttribute(b.At))
	if b.Old.Counted {
		e.Require(AttrUnits, "=", NumberAttribute(b.Shard.Units))
	} else {
		e.RequireAbsent(AttrUnits)
	}
}
