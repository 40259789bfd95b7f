package dynamo

import (
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// view is a bucket's item as one reply showed it. It is never changed.
type view struct {
	version  schema.Version
	shard    schema.Shard
	refilled int64 // Unix ms, of every limit that is not dormant
	taken    int64 // Unix ms, the last take that the item tells of; minTime = none
	slots    [schema.SlotCount]string
	booked   [schema.SlotCount]string // ids of the last charges and refunds
	turn     string                   // id of the last that asked for a turn
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
type bucketReader struct{ *schema.Reader }

// mark reads the id of a write; "" = there is none.
func (r bucketReader) mark(attr string) string {
	switch s := r.Item[attr].(type) {
	case nil:
	case *types.AttributeValueMemberS:
		return s.Value
	default:
		r.Fail(attr, "is %s; it must be a string", schema.TypeName(s))
	}
	return ""
}

// parseItem reads a bucket's item. It takes nothing for granted: what is missing,
// of another type or out of range is an error that names the item and the
// attribute, so that no write is ever planned from it. known are limits that the
// item may be under, nil if there are none; they are compared with the item.
func parseItem(table string, k schema.Key, item map[string]types.AttributeValue, known *limiter.Limits) (*view, error) {
	r := bucketReader{schema.NewReader(table, k, item)}
	v := &view{
		version:  schema.Version{Generation: r.Uint(schema.AttrGeneration, 0), Hash: r.Uint(schema.AttrVersion, 0)},
		refilled: r.Int(schema.AttrRefilled, schema.MinTime, schema.MaxTime),
	}
	v.ttl, _ = r.Optional(schema.AttrTTL, 0, schema.MaxTime)
	if taken, ok := r.Optional(schema.AttrLastTake, schema.MinTime, schema.MaxTime); ok {
		v.taken = taken
	} else {
		v.taken = schema.MinTime
	}
	v.shard = r.Shard(k)
	for i := range v.slots {
		v.slots[i], v.booked[i] = r.mark(schema.SlotAttr(i)), r.mark(schema.BookedAttr(i))
	}
	v.turn = r.mark(schema.AttrTurn)
	v.until, _ = r.Optional(schema.AttrForgotten, schema.MinTime, schema.MaxTime)
	v.use, _ = r.Optional(schema.AttrUseBefore, 0, schema.MaxTime)
	v.size = schema.ItemSize(item)
	r.balances(v)
	if r.Fault == nil {
		r.bind(v, known)
	}
	if r.Fault != nil {
		return nil, r.Fault
	}
	return v, nil
}

// balances finds the limits of the item, and the leases, by their attributes.
func (r bucketReader) balances(v *view) {
	for name := range r.Item {
		if strings.HasPrefix(name, attrHolding) {
			r.holding(name, v)
			continue
		}
		rest, ok := strings.CutPrefix(name, schema.LimitPrefix)
		if !ok {
			continue
		}
		end := strings.LastIndexByte(rest, '_')
		if end < 0 {
			r.Fail(name, "is of no limit; it must be b_{limit}_{attribute}")
			continue
		}
		switch limit := rest[:end]; rest[end+1:] {
		case schema.LimitTokens:
			v.balances = append(v.balances, r.balance(limit, v))
		case schema.LimitUnlimited:
			v.free = append(v.free, limit)
		case schema.LimitCapacity, schema.LimitRemainder, schema.LimitAmount, schema.LimitPeriod, schema.LimitFloor, schema.LimitConsumed, schema.LimitLeased, schema.LimitDormant, schema.LimitRefilled, schema.LimitMoving, schema.LimitCarried, schema.LimitAside:
			r.owned(name, limit)
		default:
			r.Fail(name, "is none of a limit's")
		}
	}
	sortBalances(v.balances)
	if len(v.leases) > 0 {
		r.leased(v)
	}
}

// owned refuses an attribute of a limit that has no balance.
func (r bucketReader) owned(name, limit string) {
	if _, ok := r.Item[schema.LimitAttr(limit, schema.LimitTokens)]; !ok {
		r.Fail(schema.LimitAttr(limit, schema.LimitTokens), "is missing, although there is %s", name)
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
	attr := func(suffix string) string { return schema.LimitAttr(limit, suffix) }
	b := balance{
		whole: tokenbucket.Params{
			Capacity: r.Int(attr(schema.LimitCapacity), 1, tokenbucket.MaxCapacity),
			Amount:   r.Int(attr(schema.LimitAmount), 1, tokenbucket.MaxCapacity),
			Period:   r.Int(attr(schema.LimitPeriod), tokenbucket.MinPeriod, tokenbucket.MaxPeriod),
		},
	}
	floor, ok := r.Optional(attr(schema.LimitFloor), -tokenbucket.MaxAmount, 0)
	if !ok {
		floor = defaultFloor(b.whole)
	}
	b.params, b.floor = v.shard.Share(b.whole), v.shard.Floor(floor)
	b.state.Refilled = v.refilled
	// Refunds that met lie above the capacity until the next take.
	b.state.Tokens = r.Int(attr(schema.LimitTokens), -4*tokenbucket.MaxAmount, 4*tokenbucket.MaxAmount)
	b.state.Remainder = r.Int(attr(schema.LimitRemainder), 0, max(b.params.Period, 1)-1)
	r.Number(attr(schema.LimitConsumed)) // of any size: nothing is decided by it
	b.leased, b.lease = r.Optional(attr(schema.LimitLeased), 0, tokenbucket.MaxCapacity)
	b.moving, _ = r.Optional(attr(schema.LimitMoving), 0, tokenbucket.MaxCapacity)
	b.state.Carried, _ = r.Optional(attr(schema.LimitCarried), 0, tokenbucket.MaxCapacity)
	b.aside, _ = r.Optional(attr(schema.LimitAside), 0, tokenbucket.MaxCapacity)
	if _, b.dormant = r.Optional(attr(schema.LimitDormant), 1, 1); b.dormant {
		b.state.Refilled = r.Int(attr(schema.LimitRefilled), schema.MinTime, schema.MaxTime)
	}
	if r.Fault == nil {
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
	if limits.Hash() != v.version.Hash || limits.Len() == 0 {
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
			r.Fail(schema.AttrVersion, "is of limits that make no sense: %v", err)
			return
		}
	}
	if limits.Hash() != v.version.Hash {
		r.Fail(schema.AttrVersion, "is %d; it must be the hash of the item's limits, %d", v.version.Hash, limits.Hash())
		return
	}
	v.limits = limits
	for i := range limits.Len() {
		l := limits.At(i)
		if l.Unlimited {
			continue
		}
		if b := v.find(l.Name); b == nil || b.whole != limits.Params(i) || b.floor != v.shard.Floor(l.DebtFloor()) {
			r.Fail(schema.LimitAttr(l.Name, schema.LimitCapacity), "or another of the limit is not that of %s = %d, %s", schema.AttrVersion, v.version.Hash, l)
		}
	}
}
