package schema

import (
	"encoding/binary"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// ParseBucket reads a bucket's item. It checks everything: an attribute that is
// missing, of another type or out of range is an error that names the item and the
// attribute. So no write is ever planned from a bad item. known are limits that the
// item may be under, nil if there are none; they are compared with the item.
func ParseBucket(table string, k Key, item map[string]types.AttributeValue, known *limiter.Limits) (*Bucket, error) {
	r := &bucketReader{Reader: NewReader(table, k, item)}
	b := &r.bucket
	b.Version = Version{Generation: r.Uint(AttrGeneration, 0), Hash: r.Uint(AttrVersion, 0)}
	b.Serial = r.Int(AttrSerial, 1, MaxTime)
	b.At = r.Int(AttrAt, MinTime, MaxTime)
	b.Taken = r.optional(AttrLastTake, MinTime, MaxTime, MinTime)
	b.TTL = r.optional(AttrTTL, 0, MaxTime, 0)
	b.Until, b.Use = r.optional(AttrForgotten, MinTime, MaxTime, 0), r.optional(AttrUseBefore, 0, MaxTime, 0)
	for i := range SlotCount {
		for c := range ChannelCount {
			b.Slots[i][c] = r.id(SlotAttr(i, c))
		}
		b.Booked[i] = r.id(BookedAttr(i))
	}
	b.Turn = r.turn()
	b.Shard, b.Window = r.Shard(k), windowOf(k)
	if b.Shard.Moving {
		b.MovedAt = r.Int(AttrMovedAt, MinTime, MaxTime)
	}
	r.leases()
	r.limits()
	b.Size = ItemSize(item)
	if r.Fault == nil {
		r.bind(known)
	}
	if r.Fault != nil {
		return nil, r.Fault
	}
	return b, nil
}

// bucketReader reads one bucket's item.
type bucketReader struct {
	*Reader
	bucket Bucket
}

// turn reads the turn that a replica asked for.
func (r *bucketReader) turn() Turn {
	raw := r.bytes(AttrTurn)
	if raw == nil {
		return Turn{}
	}
	if len(raw) < turnSize {
		r.Fail(AttrTurn, "has %d bytes; it must be 2 bytes of milliseconds and the id of a write", len(raw))
		return Turn{}
	}
	hold := time.Duration(binary.BigEndian.Uint16(raw)) * time.Millisecond
	return Turn{ID: r.writeID(AttrTurn, raw[turnSize:]), Hold: min(hold, MaxHold)}
}

// id reads the id of a write; "" = there is none.
func (r *bucketReader) id(attr string) WriteID {
	return r.writeID(attr, r.bytes(attr))
}

// writeID returns the id of a write that stands in an attribute.
func (r *bucketReader) writeID(attr string, raw []byte) WriteID {
	if raw != nil && (len(raw) <= 4 || len(raw) > maxWriteID || len(raw) > 5 && raw[4] == 0) {
		r.Fail(attr, "has %d bytes; it must be the 4 bytes of a replica and a number of 1 to 8 bytes without leading zeros", len(raw))
	}
	return WriteID(raw)
}

// leases reads the leases and the line that they leave.
func (r *bucketReader) leases() {
	b := &r.bucket
	if _, found := r.Item[AttrPending]; found {
		b.Pending = r.Uint(AttrPending, 1)
	}
	packed := r.bytes(AttrLeases)
	b.Line = WholeLine()
	if len(packed) == 0 {
		for _, attr := range [...]string{AttrRate, AttrRoom, AttrOffset} {
			if _, found := r.Item[attr]; found {
				r.Fail(attr, "is there, and %s is not; they must be there together", AttrLeases)
			}
		}
		return
	}
	b.Line = Line{Rate: int(r.Int(AttrRate, 0, Parts)), Room: int(r.Int(AttrRoom, 0, Parts)), Offset: r.Int(AttrOffset, MinTime, MaxTime)}
	if len(packed)%leaseSize != 0 || len(packed) > MaxLeases*leaseSize {
		r.Fail(AttrLeases, "has %d bytes; it must be %d for each lease, of which there are at most %d", len(packed), leaseSize, MaxLeases)
		return
	}
	rate, room := b.Line.Rate, b.Line.Room
	for at := 0; at < len(packed); at += leaseSize {
		l := readLease(packed[at : at+leaseSize])
		if n := len(b.Leases); n > 0 && b.Leases[n-1].Replica >= l.Replica {
			r.Fail(AttrLeases, "has replica %08x behind %08x; they must be in order", l.Replica, b.Leases[n-1].Replica)
		}
		b.Leases = append(b.Leases, l)
		rate, room = rate+l.Rate, room+l.Room
	}
	if rate != Parts || room != Parts {
		r.Fail(AttrLeases, "has with %s and %s %d parts of the rate and %d of the room; each must be %d", AttrRate, AttrRoom, rate, room, Parts)
	}
}

// limits finds the limits of the item by their attributes.
func (r *bucketReader) limits() {
	b := &r.bucket
	for name := range r.Item {
		limit, suffix, ok := r.limitAttr(name)
		if !ok {
			continue
		}
		switch suffix {
		case LimitFullAt:
			b.Balances = append(b.Balances, r.balance(limit))
		case LimitUnlimited:
			r.Int(name, 1, 1)
			b.Free = append(b.Free, limit)
		case LimitCapacity, LimitAmount, LimitPeriod, LimitFloor, LimitCarried, LimitConsumed, LimitDormant, LimitMoving, LimitAside:
			if _, ok := r.Item[LimitAttr(limit, LimitFullAt)]; !ok {
				r.Fail(LimitAttr(limit, LimitFullAt), "is missing, although there is %s", name)
			}
		default:
			r.Fail(name, "is none of a limit's")
		}
	}
	SortBalances(b.Balances)
	slices.Sort(b.Free)
}

// limitAttr splits an attribute of a limit into the limit and the suffix. It is false for other
// attributes. One with the prefix alone is a fault.
func (r *bucketReader) limitAttr(name string) (limit, suffix string, ok bool) {
	rest, ok := strings.CutPrefix(name, LimitPrefix)
	if !ok {
		return "", "", false
	}
	end := strings.LastIndexByte(rest, '_')
	if end < 0 {
		r.Fail(name, "is of no limit; it must be b_{limit}_{attribute}")
		return "", "", false
	}
	return rest[:end], rest[end+1:], true
}

// balance reads one limit.
func (r *bucketReader) balance(limit string) Balance {
	attr := func(suffix string) string { return LimitAttr(limit, suffix) }
	b := Balance{
		Whole: tokenbucket.Params{
			Capacity: r.Int(attr(LimitCapacity), 1, tokenbucket.MaxCapacity),
			Amount:   r.Int(attr(LimitAmount), 0, tokenbucket.MaxCapacity),
			Period:   r.Int(attr(LimitPeriod), tokenbucket.MinPeriod, tokenbucket.MaxPeriod),
		},
		FullAt:  r.units(attr(LimitFullAt)),
		Carried: r.optional(attr(LimitCarried), -tokenbucket.MaxAmount, tokenbucket.MaxCapacity, 0),
		Dormant: r.optional(attr(LimitDormant), 1, 1, 0) == 1,
		Moving:  r.optional(attr(LimitMoving), -tokenbucket.MaxAmount, tokenbucket.MaxCapacity, 0),
		Aside:   r.optional(attr(LimitAside), 0, tokenbucket.MaxCapacity, 0),
	}
	floor := r.optional(attr(LimitFloor), -tokenbucket.MaxAmount, 0, defaultFloor(b.Whole))
	if r.Fault == nil {
		b.Limit = limitOf(limit, b.Whole, floor)
		b.Share, b.Floor = r.bucket.Shard.Share(b.Whole), r.bucket.Shard.Floor(floor)
	}
	if consumed := attr(LimitConsumed); r.Item[consumed] != nil {
		r.Number(consumed) // of any size: nothing is decided by it
	}
	return b
}

// limitOf is the limit that the numbers of an item stand for.
func limitOf(name string, p tokenbucket.Params, floor int64) limiter.Limit {
	l := limiter.Custom(name, p.Capacity/limiter.Milli, p.Amount/limiter.Milli, time.Duration(p.Period)*time.Millisecond)
	switch {
	case floor == 0:
		l.MaxDebt = limiter.NoDebt
	case floor != l.DebtFloor():
		l.MaxDebt = -floor / limiter.Milli
	}
	return l
}

// bind finds the limits that the item is under: known where they are, else those
// that its numbers make up. Either way the numbers must be those of the hash.
func (r *bucketReader) bind(known *limiter.Limits) {
	b := &r.bucket
	limits := known
	if limits.Hash() != b.Version.Hash || limits.Len() == 0 {
		all := make([]limiter.Limit, 0, len(b.Balances)+len(b.Free))
		for i := range b.Balances {
			if !b.Balances[i].Dormant {
				all = append(all, b.Balances[i].Limit)
			}
		}
		for _, name := range b.Free {
			all = append(all, limiter.Unlimited(name))
		}
		var err error
		if limits, err = limiter.NewLimits(all...); err != nil {
			r.Fail(AttrVersion, "is of limits that make no sense: %v", err)
			return
		}
	}
	if limits.Hash() != b.Version.Hash {
		r.Fail(AttrVersion, "is %d; it must be the hash of the item's limits, %d", b.Version.Hash, limits.Hash())
		return
	}
	b.Limits = limits
	for i := range limits.Len() {
		l := limits.At(i)
		if l.Unlimited {
			continue
		}
		k := b.Find(l.Name)
		if k < 0 || b.Balances[k].Whole != limits.Params(i) || b.Balances[k].Floor != b.Shard.Floor(l.DebtFloor()) {
			r.Fail(LimitAttr(l.Name, LimitCapacity), "or another of the limit is not that of %s = %d, %s", AttrVersion, b.Version.Hash, l)
			continue
		}
		b.Balances[k].Limit = l
	}
}

// optional is Int for an attribute that may be absent.
func (r *bucketReader) optional(attr string, least, most, absent int64) int64 {
	if n, ok := r.Optional(attr, least, most); ok {
		return n
	}
	return absent
}

// units returns a whole number of any size that DynamoDB has.
func (r *bucketReader) units(attr string) Units {
	text := r.Number(attr)
	n, ok := ParseUnits(text)
	if !ok {
		r.Fail(attr, "is %.50s; it must be a whole number of at most %d digits", text, maxDigits)
	}
	return n
}

// bytes returns a binary attribute that may be absent, which is nil.
func (r *bucketReader) bytes(attr string) []byte {
	switch v := r.Item[attr].(type) {
	case nil:
		return nil
	case *types.AttributeValueMemberB:
		return v.Value
	default:
		r.Fail(attr, "is %s; it must be binary", TypeName(v))
		return nil
	}
}
