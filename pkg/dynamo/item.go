package dynamo

import (
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// Attributes of a bucket's item.
const (
	attrEntity     = "entity_id"
	attrResource   = "resource"
	attrRefilled   = "rf"
	attrVersion    = "cv"
	attrGeneration = "cg"
	attrSlot       = "lw" // and a digit
	attrBooked     = "lc" // and a digit
	attrLastTake   = "lt"
	attrTTL        = "ttl"
	attrShardCount = "shard_count" // a hint, of sharded buckets
	attrLevel      = "lvl"
	attrEpoch      = "ep"
	attrBirth      = "be" // of a shard that another one was split into: its epoch when it was made
	attrMoving     = "mv" // present while the other half of a split is not made yet
	attrRetired    = "rt" // present on a shard that is one no more
	attrChild      = "pe" // and a number: the birth of that shard, on the one it was split from
	attrUnits      = "wcu"
	attrTurn       = "wt" // id of the last that asked for a turn
	attrForgotten  = "fz" // until when limits that the item does not hold start empty
	attrUseBefore  = "fu" // greatest use of the limits that were forgotten
)

// Attributes of one limit of a bucket's item: b_{limit}_{one of these}.
const (
	limitPrefix = "b_"

	limitTokens    = "tk"
	limitRemainder = "rm"
	limitCapacity  = "cp"
	limitAmount    = "ra"
	limitPeriod    = "rp"
	limitFloor     = "fl"
	limitConsumed  = "tc"
	limitLeased    = "h"
	limitDormant   = "dz"
	limitRefilled  = "rf" // of a dormant limit
	limitUnlimited = "un" // the limits that the bucket is under have this one as unlimited
	limitMoving    = "mv" // tokens on the way to the other half of a split
	limitCarried   = "cu" // use that the balance carries, from a greater capacity
	limitAside     = "mc" // the same of the other half of a split
)

// slotCount is how many replicas can have their last write on an item at once.
const slotCount = 8

// limitAttr returns the name of an attribute of a limit.
func limitAttr(limit, attr string) string { return limitPrefix + limit + "_" + attr }

// slotAttr returns the name of a slot's attribute.
func slotAttr(slot int) string { return attrSlot + strconv.Itoa(slot) }

// bookedAttr returns the name of the attribute with the last charge or refund of a slot.
func bookedAttr(slot int) string { return attrBooked + strconv.Itoa(slot) }

// version says how new the limits are that a bucket is under.
type version struct {
	generation uint64
	hash       uint64
}

// newer reports whether limits of version v replace those of version w.
func (v version) newer(w version) bool {
	if v.hash == w.hash {
		return false
	}
	return v.generation > w.generation || v.generation == w.generation && v.hash > w.hash
}

// view is a bucket's item as one reply showed it. It is never changed.
type view struct {
	version  version
	shard    shard
	refilled int64 // Unix ms, of every limit that is not dormant
	taken    int64 // Unix ms, the last take that the item tells of; minTime = none
	slots    [slotCount]string
	booked   [slotCount]string // ids of the last charges and refunds
	turn     string            // id of the last that asked for a turn
	forgotten
	leases   []holding // in order of the replicas' names
	ttl      int64     // Unix s; 0 = none
	balances []balance
	free     []string // names of the unlimited limits
	limits   *limiter.Limits
	size     int // bytes of the item, about
}

// balance is what the item has for one limit.
type balance struct {
	limit   limiter.Limit
	params  tokenbucket.Params // of this shard's share
	whole   tokenbucket.Params // of the limit, as the item has them
	floor   int64              // lowest balance that charges lead to, 0 or below; of this shard's share
	state   tokenbucket.Bucket // Tokens may be above the capacity, after a refund
	leased  int64              // tokens out on lease
	lease   bool               // the item has the attribute
	dormant bool               // not among the limits that the bucket is under
	moving  int64              // tokens on the way to the other half of a split
	aside   int64              // use that the other half carries
}

// room returns the most that the balance may hold.
func (b *balance) room() int64 { return b.params.Capacity - b.leased }

// find returns the balance of a limit that is not dormant, or nil.
func (v *view) find(limit string) *balance {
	for i := range v.balances {
		if b := &v.balances[i]; b.limit.Name == limit && !b.dormant {
			return b
		}
	}
	return nil
}

// at returns the time that a decision at now is made at: a bucket that was
// refilled to later decides at that time.
func (v *view) at(now int64) int64 { return max(now, v.refilled) }

// bucketReader reads one bucket's item.
type bucketReader struct{ *recordReader }

// optional is int for an attribute that may be absent.
func (r bucketReader) optional(attr string, least, most int64) (n int64, ok bool) {
	if _, ok := r.item[attr]; !ok {
		return 0, false
	}
	return r.int(attr, least, most), true
}

// mark reads the id of a write; "" = there is none.
func (r bucketReader) mark(attr string) string {
	switch s := r.item[attr].(type) {
	case nil:
	case *types.AttributeValueMemberS:
		return s.Value
	default:
		r.fail(attr, "is %s; it must be a string", typeName(s))
	}
	return ""
}

// parseItem reads a bucket's item. It takes nothing for granted: what is missing,
// of another type or out of range is an error that names the item and the
// attribute, so that no write is ever planned from it. known are limits that the
// item may be under, nil if there are none; they are compared with the item.
func parseItem(table string, k key, item map[string]types.AttributeValue, known *limiter.Limits) (*view, error) {
	r := bucketReader{newRecordReader(table, k, item)}
	v := &view{
		version:  version{generation: r.uint(attrGeneration, 0), hash: r.uint(attrVersion, 0)},
		refilled: r.int(attrRefilled, minTime, maxTime),
	}
	v.ttl, _ = r.optional(attrTTL, 0, maxTime)
	if taken, ok := r.optional(attrLastTake, minTime, maxTime); ok {
		v.taken = taken
	} else {
		v.taken = minTime
	}
	v.shard = r.shard(k)
	for i := range v.slots {
		v.slots[i], v.booked[i] = r.mark(slotAttr(i)), r.mark(bookedAttr(i))
	}
	v.turn = r.mark(attrTurn)
	v.until, _ = r.optional(attrForgotten, minTime, maxTime)
	v.use, _ = r.optional(attrUseBefore, 0, maxTime)
	v.size = itemSize(item)
	r.balances(v)
	if r.fault == nil {
		r.bind(v, known)
	}
	if r.fault != nil {
		return nil, r.fault
	}
	return v, nil
}

// Times that an item may hold: any int64, so that no caller's clock can make an
// item that the next one refuses.
const (
	minTime = -1 << 63
	maxTime = 1<<63 - 1
)

// balances finds the limits of the item, and the leases, by their attributes.
func (r bucketReader) balances(v *view) {
	for name := range r.item {
		if strings.HasPrefix(name, attrHolding) {
			r.holding(name, v)
			continue
		}
		rest, ok := strings.CutPrefix(name, limitPrefix)
		if !ok {
			continue
		}
		end := strings.LastIndexByte(rest, '_')
		if end < 0 {
			r.fail(name, "is of no limit; it must be b_{limit}_{attribute}")
			continue
		}
		switch limit := rest[:end]; rest[end+1:] {
		case limitTokens:
			v.balances = append(v.balances, r.balance(limit, v))
		case limitUnlimited:
			v.free = append(v.free, limit)
		case limitCapacity, limitRemainder, limitAmount, limitPeriod, limitFloor, limitConsumed, limitLeased, limitDormant, limitRefilled, limitMoving, limitCarried, limitAside:
			r.owned(name, limit)
		default:
			r.fail(name, "is none of a limit's")
		}
	}
	sortBalances(v.balances)
	if len(v.leases) > 0 {
		r.leased(v)
	}
}

// owned refuses an attribute of a limit that has no balance.
func (r bucketReader) owned(name, limit string) {
	if _, ok := r.item[limitAttr(limit, limitTokens)]; !ok {
		r.fail(limitAttr(limit, limitTokens), "is missing, although there is %s", name)
	}
}

func sortBalances(balances []balance) {
	for i := 1; i < len(balances); i++ { // few, and mostly in order
		for j := i; j > 0 && balances[j].limit.Name < balances[j-1].limit.Name; j-- {
			balances[j], balances[j-1] = balances[j-1], balances[j]
		}
	}
}

// balance reads one limit.
func (r bucketReader) balance(limit string, v *view) balance {
	attr := func(suffix string) string { return limitAttr(limit, suffix) }
	b := balance{
		whole: tokenbucket.Params{
			Capacity: r.int(attr(limitCapacity), 1, tokenbucket.MaxCapacity),
			Amount:   r.int(attr(limitAmount), 1, tokenbucket.MaxCapacity),
			Period:   r.int(attr(limitPeriod), tokenbucket.MinPeriod, tokenbucket.MaxPeriod),
		},
	}
	floor, ok := r.optional(attr(limitFloor), -tokenbucket.MaxAmount, 0)
	if !ok {
		floor = defaultFloor(b.whole)
	}
	b.params, b.floor = v.shard.share(b.whole), v.shard.floor(floor)
	b.state.Refilled = v.refilled
	// Refunds that met lie above the capacity until the next take.
	b.state.Tokens = r.int(attr(limitTokens), -4*tokenbucket.MaxAmount, 4*tokenbucket.MaxAmount)
	b.state.Remainder = r.int(attr(limitRemainder), 0, max(b.params.Period, 1)-1)
	r.number(attr(limitConsumed)) // of any size: nothing is decided by it
	b.leased, b.lease = r.optional(attr(limitLeased), 0, tokenbucket.MaxCapacity)
	b.moving, _ = r.optional(attr(limitMoving), 0, tokenbucket.MaxCapacity)
	b.state.Carried, _ = r.optional(attr(limitCarried), 0, tokenbucket.MaxCapacity)
	b.aside, _ = r.optional(attr(limitAside), 0, tokenbucket.MaxCapacity)
	if _, b.dormant = r.optional(attr(limitDormant), 1, 1); b.dormant {
		b.state.Refilled = r.int(attr(limitRefilled), minTime, maxTime)
	}
	if r.fault == nil {
		b.limit = limitOf(limit, b.whole, floor)
	}
	return b
}

// defaultFloor is the debt floor of a limit that does not say: items leave it out.
func defaultFloor(p tokenbucket.Params) int64 {
	return limiter.Limit{Capacity: p.Capacity / limiter.Milli}.DebtFloor()
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
func (r bucketReader) bind(v *view, known *limiter.Limits) {
	limits := known
	if limits.Hash() != v.version.hash || limits.Len() == 0 {
		all := make([]limiter.Limit, 0, len(v.balances)+len(v.free))
		for i := range v.balances {
			if !v.balances[i].dormant {
				all = append(all, v.balances[i].limit)
			}
		}
		for _, name := range v.free {
			all = append(all, limiter.Unlimited(name))
		}
		var err error
		if limits, err = limiter.NewLimits(all...); err != nil {
			r.fail(attrVersion, "is of limits that make no sense: %v", err)
			return
		}
	}
	if limits.Hash() != v.version.hash {
		r.fail(attrVersion, "is %d; it must be the hash of the item's limits, %d", v.version.hash, limits.Hash())
		return
	}
	v.limits = limits
	for i := range limits.Len() {
		l := limits.At(i)
		if l.Unlimited {
			continue
		}
		if b := v.find(l.Name); b == nil || b.whole != limits.Params(i) || b.floor != v.shard.floor(l.DebtFloor()) {
			r.fail(limitAttr(l.Name, limitCapacity), "or another of the limit is not that of %s = %d, %s", attrVersion, v.version.hash, l)
		}
	}
}

// itemSize returns how many bytes DynamoDB counts for an item, about: a byte for each
// two significant digits of a number and one more, and one for a sign.
func itemSize(item map[string]types.AttributeValue) int {
	n := 0
	for name, value := range item {
		n += len(name)
		switch v := value.(type) {
		case *types.AttributeValueMemberS:
			n += len(v.Value)
		case *types.AttributeValueMemberB:
			n += len(v.Value)
		case *types.AttributeValueMemberN:
			n += (len(strings.Trim(v.Value, "-0"))+1)/2 + 1
			if strings.HasPrefix(v.Value, "-") {
				n++
			}
		}
	}
	return n
}
