package dynamo

import (
	"math"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

const (
	// ttlMargin is how long a bucket is kept after it must be full again. It is more
	// than clocks may differ and longer than any write can be under way, so that no
	// write meets an item whose ttl, as it was planned, is already over.
	ttlMargin = int64(time.Hour / time.Millisecond)
	// ttlSlack is how much further a ttl is set than it has to be, so that it is not
	// set with every write. In seconds.
	ttlSlack = int64(time.Hour / time.Second)
)

// writeID says whose write it is: the slot of its replica, and an id that no other
// write has.
type writeID struct {
	slot int
	id   string
}

// write is one conditional write: a PutItem for a bucket that has no item, else an
// UpdateItem.
type write struct {
	writeID
	put    *dynamodb.PutItemInput
	update *dynamodb.UpdateItemInput
	made   *view // the item that put makes

	base     *view // the item that it was planned for; nil for put
	refilled *view // the item whose last refill it rests on; nil = it goes by none
	books    bool  // it gives or charges tokens, and rests on the last such write of its slot
	doubted  bool  // nobody knows what became of an attempt
}

// newWrite returns the write that carries out a plan.
func newWrite(table string, k schema.Key, id writeID, p *plan) *write {
	w := &write{writeID: id, books: p.books()}
	switch s := p.stage; {
	case s.create:
		w.putItem(table, k, p)
	case s.swap != nil:
		w.update, w.base, w.refilled = swapInput(table, k, id, p), s.swap, s.swap
	case s.plain():
		w.update, w.base = plainInput(table, k, id, p), s.base
	default:
		w.update, w.base, w.refilled = refillInput(table, k, id, p), s.base, s.base
	}
	return w
}

// plainInput is a write that leaves rf alone, so that others may write meanwhile.
// That is sound as long as no limit is full that it takes from: the overflow of a
// full limit is lost, but an rf that has not moved would claim it once more.
func plainInput(table string, k schema.Key, id writeID, p *plan) *dynamodb.UpdateItemInput {
	s := p.stage
	e := begin(id, p)
	e.Require(schema.AttrRefilled, ">=", schema.NumberAttribute(s.base.refilled))
	for i := range s.balances {
		b := &s.balances[i]
		tokens := schema.LimitAttr(b.limit.Name, schema.LimitTokens)
		if b.atLeast != noLowerBound {
			e.Require(tokens, ">=", schema.NumberAttribute(b.atLeast))
		}
		if b.lowered || b.checked {
			e.Require(tokens, "<", schema.NumberAttribute(b.below-b.due))
			e.requireLease(b.balance, "<=", b.leased)
		}
		e.Add(tokens, b.delta)
		e.Add(schema.LimitAttr(b.limit.Name, schema.LimitConsumed), b.usage)
	}
	return e.Input(table, k)
}

// refillInput is a write that also moves rf to now. It brings every limit of the
// item up to date, since they share it.
func refillInput(table string, k schema.Key, id writeID, p *plan) *dynamodb.UpdateItemInput {
	s := p.stage
	e := begin(id, p)
	e.Require(schema.AttrRefilled, "=", schema.NumberAttribute(s.base.refilled))
	moved := s.now > s.base.refilled
	if moved {
		e.Set(schema.AttrRefilled, schema.NumberAttribute(s.now))
	}
	for i := range s.balances {
		b := &s.balances[i]
		e.stageRefill(b, moved)
		e.Add(schema.LimitAttr(b.limit.Name, schema.LimitConsumed), b.usage)
	}
	e.forget(s)
	if s.step != nil {
		e.changeLeases(s)
	}
	if turn := s.base.turn; turn != "" && replicaOf(turn) == replicaOf(id.id) {
		e.Remove(schema.AttrTurn) // this is it
	}
	return e.Input(table, k)
}

// stageRefill brings a limit up to date. moved says that the write moves rf.
func (e *expression) stageRefill(b *staged, moved bool) {
	e.requireStaged(b, moved)
	tokens := schema.LimitAttr(b.limit.Name, schema.LimitTokens)
	switch {
	case b.basis == relative:
		e.Add(tokens, b.due+b.delta)
	case b.basis == exact:
		e.Set(tokens, schema.NumberAttribute(b.tokens))
	case b.lease:
		e.SetDifference(tokens, b.params.Capacity+b.delta, schema.LimitAttr(b.limit.Name, schema.LimitLeased))
	default:
		e.Set(tokens, schema.NumberAttribute(b.params.Capacity+b.delta))
	}
	if b.remainder != b.state.Remainder {
		e.Set(schema.LimitAttr(b.limit.Name, schema.LimitRemainder), schema.NumberAttribute(b.remainder))
	}
	e.setCarried(b.limit.Name, b.state.Carried, b.carried)
}

// setCarried writes the use that a limit carries.
func (e *expression) setCarried(limit string, was, is int64) {
	switch attr := schema.LimitAttr(limit, schema.LimitCarried); is {
	case was:
	case 0:
		e.Remove(attr)
	default:
		e.Set(attr, schema.NumberAttribute(is))
	}
}

// requireStaged adds what the plan for a limit rests on, rf being as it was seen.
func (e *expression) requireStaged(b *staged, moved bool) {
	tokens := schema.LimitAttr(b.limit.Name, schema.LimitTokens)
	// The remainder may go to 0 under the same rf, when a limit is found full by a
	// clock that is not past rf; a refill that counted on it would be too much.
	if b.state.Remainder > 0 && (moved && b.basis == relative || b.basis == exact) {
		e.Require(schema.LimitAttr(b.limit.Name, schema.LimitRemainder), "=", schema.NumberAttribute(b.state.Remainder))
	}
	if b.basis == exact {
		e.Require(tokens, "=", schema.NumberAttribute(b.state.Tokens))
		if b.state.Carried > 0 {
			e.Require(schema.LimitAttr(b.limit.Name, schema.LimitCarried), "=", schema.NumberAttribute(b.state.Carried))
		}
		e.requireLease(b.balance, "=", b.leased)
		return
	}
	if least := max(b.atLeast, b.full); least != noLowerBound {
		e.Require(tokens, ">=", schema.NumberAttribute(least-b.due))
	}
	if b.below != noUpperBound {
		e.Require(tokens, "<", schema.NumberAttribute(b.below-b.due))
	}
	switch {
	case b.pinned:
		e.requireLease(b.balance, "=", b.leased)
		return
	case b.basis == relative:
		e.requireLease(b.balance, "<=", b.leased)
	case b.below != noUpperBound:
		e.requireLease(b.balance, "=", b.leased)
	default:
		e.requireLease(b.balance, ">=", b.leased)
	}
	if b.lease && b.mostHeld != noUpperBound {
		e.Require(schema.LimitAttr(b.limit.Name, schema.LimitLeased), "<=", schema.NumberAttribute(b.mostHeld))
	}
}

// requireLease compares the tokens out on lease. Without the attribute there are
// none, and there must still be none: a write that does not name it sets a balance
// that has no place for them.
func (e *expression) requireLease(b *balance, operator string, n int64) {
	if attr := schema.LimitAttr(b.limit.Name, schema.LimitLeased); b.lease {
		e.Require(attr, operator, schema.NumberAttribute(n))
	} else {
		e.RequireAbsent(attr)
	}
}

// limitNumber is an attribute of a limit and its value.
type limitNumber struct {
	attr  string
	value int64
}

// balanceNumbers returns the attributes of a limit, without what is counted and leased.
// moving says that the other half of a split is not made.
func balanceNumbers(b *balance, moving bool) []limitNumber {
	numbers := []limitNumber{
		{schema.LimitTokens, b.state.Tokens},
		{schema.LimitRemainder, b.state.Remainder},
		{schema.LimitCapacity, b.whole.Capacity},
		{schema.LimitAmount, b.whole.Amount},
		{schema.LimitPeriod, b.whole.Period},
	}
	if floor := b.limit.DebtFloor(); floor != defaultFloor(b.whole) {
		numbers = append(numbers, limitNumber{schema.LimitFloor, floor})
	}
	if b.dormant {
		numbers = append(numbers, limitNumber{schema.LimitDormant, 1}, limitNumber{schema.LimitRefilled, b.state.Refilled})
	}
	if b.state.Carried > 0 {
		numbers = append(numbers, limitNumber{schema.LimitCarried, b.state.Carried})
	}
	if moving {
		numbers = append(numbers, limitNumber{schema.LimitMoving, b.moving})
		if b.aside > 0 {
			numbers = append(numbers, limitNumber{schema.LimitAside, b.aside})
		}
	}
	return numbers
}

// any returns the balance of a limit, dormant or not, or nil.
func (v *view) any(limit string) *balance {
	for i := range v.balances {
		if v.balances[i].limit.Name == limit {
			return &v.balances[i]
		}
	}
	return nil
}

// putItem makes the item of a bucket that has none.
func (w *write) putItem(table string, k schema.Key, p *plan) {
	s := p.stage
	made := *s.base
	item := newItem(k, p.actors[0].site)
	item[schema.AttrRefilled] = schema.NumberAttribute(s.now)
	item[schema.AttrVersion] = schema.NumberAttribute(s.base.version.Hash)
	item[schema.AttrGeneration] = schema.NumberAttribute(s.base.version.Generation)
	item[schema.SlotAttr(w.slot)] = &types.AttributeValueMemberS{Value: w.id}
	if p.admitsAny() {
		made.taken = s.now
		item[schema.AttrLastTake] = schema.NumberAttribute(s.now)
	}
	item[schema.AttrLevel], item[schema.AttrEpoch] = schema.NumberAttribute(1), schema.NumberAttribute(s.base.shard.Epoch)
	made.refilled = s.now
	made.slots[w.slot] = w.id
	made.balances = make([]balance, len(s.balances))
	for i := range s.balances {
		b := &s.balances[i]
		made.balances[i] = *b.balance
		made.balances[i].state = tokenbucket.Bucket{Tokens: b.tokens, Remainder: b.remainder, Refilled: s.now, Carried: b.carried}
		for _, n := range balanceNumbers(&made.balances[i], false) {
			item[schema.LimitAttr(b.limit.Name, n.attr)] = schema.NumberAttribute(n.value)
		}
		item[schema.LimitAttr(b.limit.Name, schema.LimitConsumed)] = schema.NumberAttribute(b.usage)
	}
	for _, name := range s.base.free {
		item[schema.LimitAttr(name, schema.LimitUnlimited)] = schema.NumberAttribute(1)
	}
	if ttl := s.ttlNeeded(left); ttl > 0 {
		made.ttl = ttl + ttlSlack
		item[schema.AttrTTL] = schema.NumberAttribute(made.ttl)
	}
	made.size = schema.ItemSize(item)
	w.made = &made
	w.put = &dynamodb.PutItemInput{
		TableName:                           aws.String(table),
		Item:                                item,
		ConditionExpression:                 aws.String("attribute_not_exists(#0)"),
		ExpressionAttributeNames:            map[string]string{"#0": schema.AttrPK},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
}

// newItem returns the key of a new item, the keys of the indexes, and the names that
// the key does not hold in full.
func newItem(k schema.Key, of site) map[string]types.AttributeValue {
	item := k.Attributes()
	for attr, v := range schema.BucketIndexes(of.ns, of.bucket.Entity, of.bucket.Resource, of.bucket.Variant, schema.ShardIndex(k)) {
		item[attr] = &types.AttributeValueMemberS{Value: v}
	}
	for attr, name := range map[string]string{schema.AttrEntity: of.bucket.Entity, schema.AttrResource: of.bucket.Resource} {
		if len(name) <= maxBucketName && schema.IsHashed(name) {
			item[attr] = schema.NameAttribute(name)
		}
	}
	return item
}

// maxBucketName is the longest name that a bucket's item has in full. Every
// decision pays for each kilobyte of its item, and whoever is limited chooses names.
const maxBucketName = 256

// expression builds the condition and the update of a write of a bucket.
type expression struct{ *schema.Expression }

// begin starts a write of a plan under the limits that the item is under.
func begin(id writeID, p *plan) *expression {
	e := &expression{schema.NewExpression()}
	e.own(id)
	if p.books() { // sent again, it is applied once at most
		e.bookOnce(id, p.stage.base.booked[id.slot])
	}
	e.Require(schema.AttrVersion, "=", schema.NumberAttribute(p.stage.base.version.Hash))
	e.Require(schema.AttrEpoch, "=", schema.NumberAttribute(p.stage.base.shard.Epoch))
	e.Add(schema.AttrUnits, p.units)
	e.setLastTake(p)
	if p.raise > 0 {
		e.Require(schema.AttrGeneration, "<=", schema.NumberAttribute(p.raise))
		e.Set(schema.AttrGeneration, schema.NumberAttribute(p.raise))
	}
	e.keepTTL(p.stage)
	return e
}

// books reports whether the plan gives or charges tokens.
func (p *plan) books() bool { return slices.ContainsFunc(p.actors, (*request).books) }

// own makes the write one that is applied once: sent again, it finds its own id.
func (e *expression) own(id writeID) {
	attr := schema.SlotAttr(id.slot)
	e.Require(attr, "<>", &types.AttributeValueMemberS{Value: id.id})
	e.Set(attr, &types.AttributeValueMemberS{Value: id.id})
}

// bookOnce makes a write that gives or charges tokens rest on the last such write of its
// slot being the one that was seen, and leaves its own id there. Each write that changes
// the attribute rests on it, so that no value ever comes back: a copy that arrives late is
// refused. The id in the slot itself can come back, by a late copy of a take.
func (e *expression) bookOnce(id writeID, seen string) {
	attr := schema.BookedAttr(id.slot)
	if seen == "" {
		e.RequireAbsent(attr)
	} else {
		e.Require(attr, "=", &types.AttributeValueMemberS{Value: seen})
	}
	e.Set(attr, &types.AttributeValueMemberS{Value: id.id})
}

func (e *expression) setLastTake(p *plan) {
	if p.admitsAny() || p.step != nil && p.step.spent {
		e.Set(schema.AttrLastTake, schema.NumberAttribute(max(p.stage.now, p.stage.base.taken)))
	}
}

// admitsAny reports whether the plan admits a request.
func (p *plan) admitsAny() bool {
	return slices.ContainsFunc(p.actors, func(r *request) bool { return r.admitted })
}

// keepTTL makes sure that an item whose balance goes down is kept until it must be
// full again. That is reckoned from the lowest balance that this write can leave,
// whatever others do at the same time: 0 for a take, which rests on what it takes
// being there, and the floor for a charge. A limit that is in debt from before is
// kept by the ttl of the charge that led there: no write lowers a ttl. An item that
// has none may be in any debt.
func (e *expression) keepTTL(s *stage) {
	if !s.lowers() || s.base.shard.Sharded() {
		return
	}
	seen := s.base.ttl
	needed := s.ttlNeeded(func(b *staged) int64 {
		if b.charged || seen == 0 {
			return min(b.floor, b.state.Tokens, b.tokens)
		}
		return 0
	})
	switch {
	case needed == 0 && seen > 0:
		e.Remove(schema.AttrTTL)
	case needed == 0:
		e.RequireAbsent(schema.AttrTTL)
	case seen >= needed:
		e.Require(schema.AttrTTL, ">=", schema.NumberAttribute(needed))
	case seen > 0:
		e.RaiseTo(schema.AttrTTL, needed+ttlSlack)
	default:
		e.RequireAbsent(schema.AttrTTL)
		e.Set(schema.AttrTTL, schema.NumberAttribute(needed+ttlSlack))
	}
}

// left is the balance that a plan leaves, if nobody else writes.
func left(b *staged) int64 { return b.tokens }

// ttlNeeded returns the earliest ttl at which the bucket must be full again, in Unix
// seconds, when each limit has the balance now that from says, at most 0;
// 0 = it can have none.
func (s *stage) ttlNeeded(from func(*staged) int64) int64 {
	if s.base.shard.Sharded() {
		return 0 // a shard that expires would take its tokens with it
	}
	var wait int64
	for i := range s.balances {
		b := tokenbucket.Bucket{Refilled: s.now, Tokens: min(0, from(&s.balances[i])), Carried: s.balances[i].carried}
		wait = max(wait, b.TimeToUnused(s.balances[i].params, s.now))
	}
	for i := range s.base.balances {
		if b := &s.base.balances[i]; b.dormant {
			wait = max(wait, b.state.TimeToUnused(b.params, s.now))
		}
	}
	if s.base.lasts(s.now) {
		wait = max(wait, s.base.until-max(s.now, s.base.until-tokenbucket.Forever))
	}
	if wait >= tokenbucket.Forever || s.now > math.MaxInt64-tokenbucket.Forever-ttlMargin {
		return 0
	}
	ttl := (s.now + wait + ttlMargin + limiter.Milli - 1) / limiter.Milli
	if ttl <= 0 || ttl > schema.MaxTTL-ttlSlack {
		return 0
	}
	return ttl
}
