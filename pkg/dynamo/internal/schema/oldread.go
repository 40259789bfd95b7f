package schema

import (
	"math/big"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// oldReader reads one bucket's item of form 1.
type oldReader struct {
	bucketReader
	old OldForm
}

// parseOld is [ParseBucket] for an item of form 1.
func parseOld(table string, k Key, item map[string]types.AttributeValue, known *limiter.Limits) (*Bucket, error) {
	r := &oldReader{bucketReader: bucketReader{Reader: NewReader(table, k, item)}}
	b := &r.bucket
	b.Version = Version{Generation: r.Uint(AttrGeneration, 0), Hash: r.Uint(AttrVersion, 0)}
	b.At = r.Int(AttrRefilled, MinTime, MaxTime)
	b.Taken = r.optional(AttrLastTake, MinTime, MaxTime, MinTime)
	b.TTL = r.optional(AttrTTL, 0, MaxTime, 0)
	b.Until, b.Use = r.optional(AttrForgotten, MinTime, MaxTime, 0), r.optional(AttrUseBefore, 0, MaxTime, 0)
	for i := range SlotCount {
		b.Slots[i][0], b.Booked[i] = r.id(SlotAttr(i, 0)), r.id(BookedAttr(i))
	}
	b.Shard, b.Line = r.Shard(k), WholeLine()
	if b.Serial = b.Shard.Units + 1; b.Serial <= 0 {
		r.Fail(AttrUnits, "is %d; it must be below that", b.Shard.Units)
	}
	if b.Shard.Moving { // the other half has not refilled before
		b.MovedAt = b.At
	}
	_, r.old.Counted = item[AttrUnits]
	r.limits()
	r.leased()
	b.Size = ItemSize(item)
	if r.Fault == nil {
		r.bind(known)
	}
	if r.Fault != nil {
		return nil, r.Fault
	}
	r.keep()
	b.Old = &r.old
	return b, nil
}

// keep keeps the attributes that a write may change.
func (r *oldReader) keep() {
	r.old.Item = make(map[string]types.AttributeValue, len(r.Item))
	for attr, v := range r.Item {
		if isOldState(attr) {
			r.old.Item[attr] = v
		}
	}
}

// id reads the id of a write; "" = there is none.
func (r *oldReader) id(attr string) WriteID {
	switch v := r.Item[attr].(type) {
	case nil:
		return ""
	case *types.AttributeValueMemberS:
		return readOldID(v.Value)
	default:
		r.Fail(attr, "is %s; it must be a string", TypeName(v))
		return ""
	}
}

// limits finds the limits and leases of the item by their attributes.
func (r *oldReader) limits() {
	b := &r.bucket
	r.old.Balances = make(map[string]tokenbucket.Bucket)
	for name := range r.Item {
		if strings.HasPrefix(name, attrOldLease) {
			r.lease(name)
			continue
		}
		limit, suffix, ok := r.limitAttr(name)
		if !ok {
			continue
		}
		switch suffix {
		case LimitTokens:
			b.Balances = append(b.Balances, r.balance(limit))
		case LimitUnlimited:
			b.Free = append(b.Free, limit)
		case LimitCapacity, LimitRemainder, LimitAmount, LimitPeriod, LimitFloor, LimitConsumed, LimitLeased, LimitDormant, LimitRefilled,
			LimitMoving, LimitCarried, LimitAside:
			if _, ok := r.Item[LimitAttr(limit, LimitTokens)]; !ok {
				r.Fail(LimitAttr(limit, LimitTokens), "is missing, although there is %s", name)
			}
		default:
			r.Fail(name, "is none of a limit's")
		}
	}
	SortBalances(b.Balances)
	slices.Sort(b.Free)
}

// maxOldTokens bounds a balance of form 1: refunds that met lie above the capacity.
const maxOldTokens = 4 * tokenbucket.MaxAmount

// balance reads one limit.
func (r *oldReader) balance(limit string) Balance {
	attr := func(suffix string) string { return LimitAttr(limit, suffix) }
	b := r.numbers(limit)
	b.Leased = r.optional(attr(LimitLeased), 0, tokenbucket.MaxCapacity, 0)
	r.Number(attr(LimitConsumed)) // of any size: nothing is decided by it
	at := tokenbucket.Bucket{
		Tokens: r.Int(attr(LimitTokens), -maxOldTokens, maxOldTokens), Remainder: r.Int(attr(LimitRemainder), 0, max(b.Share.Period, 1)-1),
		Carried: b.Carried, Refilled: r.bucket.At,
	}
	if b.Dormant {
		at.Refilled = r.Int(attr(LimitRefilled), MinTime, MaxTime)
	}
	r.old.Balances[limit] = at
	b.FullAt = b.oldFullAt(at)
	return b
}

// oldFullAt returns the number of a limit that has a balance at its last refill.
func (b *Balance) oldFullAt(at tokenbucket.Bucket) *big.Int {
	v := big.NewInt(b.Share.Capacity - b.Leased - at.Tokens)
	v.Mul(v, big.NewInt(b.Share.Period))
	v.Sub(v, big.NewInt(at.Remainder))
	v.Mul(v, big.NewInt(Parts))
	return v.Add(v, b.Refilled(WholeLine(), at.Refilled))
}
