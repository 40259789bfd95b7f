package dynamo

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// tombstoneLife is how long a retired shard stays as an item: longer than any write
// can be under way, and than a replica may be away between retire and absorb.
const tombstoneLife = int64(24 * time.Hour / time.Second)

// splitInput sets aside what a new shard begins with, about a half of each balance,
// and halves the share of this one. It is a refill that takes those tokens: others
// may have written since the view.
func splitInput(table string, k schema.Key, id writeID, v *view, now, units int64) *dynamodb.UpdateItemInput {
	s := newStage(v, now)
	stays, leaves := v.shard.Split()
	e := &expression{schema.NewExpression()}
	e.own(id)
	e.Require(schema.AttrVersion, "=", schema.NumberAttribute(v.version.Hash))
	e.Require(schema.AttrEpoch, "=", schema.NumberAttribute(v.shard.Epoch))
	e.Require(schema.AttrRefilled, "=", schema.NumberAttribute(v.refilled))
	e.Set(schema.AttrRefilled, schema.NumberAttribute(s.now))
	e.Add(schema.AttrUnits, units)
	e.setShard(stays)
	e.Set(schema.AttrMoving, schema.NumberAttribute(1))
	e.Set(schema.ChildAttr(leaves.Index), schema.NumberAttribute(leaves.Birth))
	e.Remove(schema.AttrTTL)
	for i := range s.balances {
		b := &s.balances[i]
		x := moving(b.tokens, stays.Share(b.whole).Capacity, leaves.Share(b.whole).Capacity)
		b.need(x)
		b.take(x)
		b.remainder = 0
		e.Set(schema.LimitAttr(b.limit.Name, schema.LimitMoving), schema.NumberAttribute(x))
		if b.carried > 0 && b.basis != exact { // no condition has it yet
			e.Require(schema.LimitAttr(b.limit.Name, schema.LimitCarried), "=", schema.NumberAttribute(b.state.Carried))
		}
		b.carried = e.splitCarried(b.limit.Name, b.carried)
		e.stageRefill(b, true)
	}
	for i := range v.balances {
		if b := &v.balances[i]; b.dormant {
			e.splitDormant(v, b, s.now, stays, leaves)
		}
	}
	return e.Input(table, k)
}

// moving returns how many of a shard's tokens go to the other half of its split: a
// half, more where this one would keep more than its share, no more than the other
// may hold. Debt stays.
func moving(tokens, stays, leaves int64) int64 {
	if tokens <= 0 {
		return 0
	}
	return min(max(tokens-stays, tokens/2), leaves)
}

// splitCarried gives the other half of a split as much use to carry as it returns for
// this one: a half each, rounded up. So the shares of both capacities and these are no
// less than the shares of both together, and a raise adds no more than to the whole.
func (e *expression) splitCarried(limit string, n int64) int64 {
	if n = (n + 1) / 2; n > 0 {
		e.Set(schema.LimitAttr(limit, schema.LimitAside), schema.NumberAttribute(n))
	}
	return n
}

// splitDormant divides a limit that the bucket is not under now.
func (e *expression) splitDormant(v *view, b *balance, now int64, stays, leaves schema.Shard) {
	at := refilled(b, max(now, b.state.Refilled))
	x := moving(at.tokens, stays.Share(b.whole).Capacity, leaves.Share(b.whole).Capacity)
	e.requireDormant(v, b)
	e.requireLease(b, "=", 0)
	half := e.splitCarried(b.limit.Name, at.carried)
	e.setBalance(b, tokenbucket.Bucket{Tokens: at.tokens - x, Refilled: max(now, b.state.Refilled), Carried: half})
	e.Set(schema.LimitAttr(b.limit.Name, schema.LimitMoving), schema.NumberAttribute(x))
}

// setShard writes which part of the bucket the item is.
func (e *expression) setShard(s schema.Shard) {
	e.Set(schema.AttrLevel, schema.NumberAttribute(s.Level))
	e.Set(schema.AttrShardCount, schema.NumberAttribute(s.Level))
	e.Set(schema.AttrEpoch, schema.NumberAttribute(s.Epoch))
}

// setBalance writes a limit with another balance.
func (e *expression) setBalance(b *balance, state tokenbucket.Bucket) {
	next := *b
	if next.state = state; state.Carried == 0 && b.state.Carried > 0 {
		e.Remove(schema.LimitAttr(b.limit.Name, schema.LimitCarried))
	}
	for _, n := range balanceNumbers(&next, false) {
		e.Set(schema.LimitAttr(b.limit.Name, n.attr), schema.NumberAttribute(n.value))
	}
}

// makeInput makes the other half of a split, from the item that was split. A
// retired shard of an earlier split may lie in its place, never a later one.
func makeInput(table string, of site, v *view, now int64) *dynamodb.PutItemInput {
	other := v.shard.Other()
	now = v.at(now)
	k := of.shard(other.Index)
	item := newItem(k, of)
	item[schema.AttrRefilled] = schema.NumberAttribute(now)
	item[schema.AttrVersion], item[schema.AttrGeneration] = schema.NumberAttribute(v.version.Hash), schema.NumberAttribute(v.version.Generation)
	item[schema.AttrLevel], item[schema.AttrShardCount] = schema.NumberAttribute(other.Level), schema.NumberAttribute(other.Level)
	item[schema.AttrEpoch], item[schema.AttrBirth] = schema.NumberAttribute(other.Epoch), schema.NumberAttribute(other.Birth)
	for i := range v.balances {
		b := v.balances[i]
		b.state = tokenbucket.Bucket{Tokens: b.moving, Refilled: max(now, b.state.Refilled), Carried: b.aside}
		for _, n := range balanceNumbers(&b, false) {
			item[schema.LimitAttr(b.limit.Name, n.attr)] = schema.NumberAttribute(n.value)
		}
		item[schema.LimitAttr(b.limit.Name, schema.LimitConsumed)] = schema.NumberAttribute(0)
	}
	for _, name := range v.free {
		item[schema.LimitAttr(name, schema.LimitUnlimited)] = schema.NumberAttribute(1)
	}
	if v.use > 0 {
		item[schema.AttrForgotten], item[schema.AttrUseBefore] = schema.NumberAttribute(v.until), schema.NumberAttribute(v.use)
	}
	return &dynamodb.PutItemInput{
		TableName:                           aws.String(table),
		Item:                                item,
		ConditionExpression:                 aws.String("attribute_not_exists(#pk) OR attribute_exists(#rt) AND #ep < :ep"),
		ExpressionAttributeNames:            map[string]string{"#pk": schema.AttrPK, "#rt": schema.AttrRetired, "#ep": schema.AttrEpoch},
		ExpressionAttributeValues:           map[string]types.AttributeValue{":ep": schema.NumberAttribute(other.Epoch)},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
}

// clearInput notes that the other half of a split is made.
func clearInput(table string, k schema.Key, v *view) *dynamodb.UpdateItemInput {
	e := &expression{schema.NewExpression()}
	e.Require(schema.AttrVersion, "=", schema.NumberAttribute(v.version.Hash)) // else other limits may have something set aside
	e.Require(schema.AttrGeneration, "=", schema.NumberAttribute(v.version.Generation))
	e.Require(schema.AttrEpoch, "=", schema.NumberAttribute(v.shard.Epoch))
	e.Require(schema.AttrMoving, "=", schema.NumberAttribute(1))
	e.Remove(schema.AttrMoving)
	e.Add(schema.AttrUnits, 1)
	for i := range v.balances {
		e.Remove(schema.LimitAttr(v.balances[i].limit.Name, schema.LimitMoving))
		e.Remove(schema.LimitAttr(v.balances[i].limit.Name, schema.LimitAside))
	}
	return e.Input(table, k)
}

// retireInput has a shard give no more tokens: what it has waits for its heir.
func retireInput(table string, k schema.Key, v *view, now int64) *dynamodb.UpdateItemInput {
	s := newStage(v, now)
	next := v.shard.Retire()
	e := &expression{schema.NewExpression()}
	e.pin(v)
	e.Set(schema.AttrEpoch, schema.NumberAttribute(next.Epoch))
	e.Set(schema.AttrRetired, schema.NumberAttribute(1))
	e.Set(schema.AttrRefilled, schema.NumberAttribute(s.now))
	e.Set(schema.AttrTTL, schema.NumberAttribute(max(s.now, 0)/limiter.Milli+tombstoneLife))
	for i := range s.balances {
		b := &s.balances[i]
		e.Set(schema.LimitAttr(b.limit.Name, schema.LimitTokens), schema.NumberAttribute(b.tokens))
		e.Set(schema.LimitAttr(b.limit.Name, schema.LimitRemainder), schema.NumberAttribute(0))
		e.setCarried(b.limit.Name, b.state.Carried, b.carried)
	}
	return e.Input(table, k)
}

// absorbInput gives a shard back the part that was split off last, and what a
// retired shard had of it; found is that one under the same limits, nil when it is
// gone, with all that it had.
func absorbInput(table string, k schema.Key, id writeID, v, found *view, now int64) *dynamodb.UpdateItemInput {
	other := v.shard.Other()
	epoch := other.Epoch
	if found != nil {
		epoch = found.shard.Epoch
	}
	next := *v
	next.shard = v.shard.Absorb(epoch)
	if next.refilled = v.at(now); found != nil { // from then on this one refills for both
		next.refilled = max(next.refilled, found.refilled)
	}
	next.balances = make([]balance, len(v.balances))
	e := &expression{schema.NewExpression()}
	e.own(id)
	e.pin(v)
	e.setShard(next.shard)
	e.Set(schema.AttrRefilled, schema.NumberAttribute(next.refilled))
	e.Remove(schema.ChildAttr(other.Index))
	for i := range v.balances {
		next.balances[i] = absorb(&v.balances[i], found, &next.shard, next.refilled)
	}
	next.balances = append(next.balances, v.remember(found, next.refilled)...)
	if found != nil && found.use > 0 {
		next.forgotten = next.with(forgotten{until: found.until, use: min(found.use, tokenbucket.MaxAmount) + min(v.use, tokenbucket.MaxAmount)})
	}
	next.forget(next.refilled)
	e.setForgotten(v.forgotten, next.forgotten)
	for i := range next.balances {
		b := &next.balances[i]
		if old := v.any(b.limit.Name); old != nil {
			e.setBalance(old, b.state)
		} else {
			e.setBalance(b, b.state)
			e.Set(schema.LimitAttr(b.limit.Name, schema.LimitConsumed), schema.NumberAttribute(0))
		}
	}
	for i := range v.balances {
		if old := &v.balances[i]; next.any(old.limit.Name) == nil {
			e.removeBalance(old, false)
		}
	}
	if ttl := newStage(&next, next.refilled).ttlNeeded(left); ttl > 0 {
		e.Set(schema.AttrTTL, schema.NumberAttribute(ttl+ttlSlack))
	}
	return e.Input(table, k)
}

// absorb returns a balance with what a retired shard had of the same limit.
func absorb(b *balance, found *view, s *schema.Shard, now int64) balance {
	at := refilled(b, max(now, b.state.Refilled))
	next := *b
	next.params = s.Share(b.whole)
	next.floor = s.Floor(b.limit.DebtFloor())
	next.state = tokenbucket.Bucket{Tokens: at.tokens, Refilled: max(now, b.state.Refilled), Carried: at.carried}
	if found != nil {
		kept := found.keeps(b)
		next.state.Tokens += kept.Tokens
		next.state.Carried = min(next.state.Carried+kept.Carried, tokenbucket.MaxCapacity)
	}
	next.state.Tokens = min(next.state.Tokens, next.params.Capacity)
	return next
}

// keeps returns what a retired shard has of a limit: all of its share when it does
// not hold it, as when it had no use, unless it may be one that was forgotten.
func (v *view) keeps(of *balance) tokenbucket.Bucket {
	b := v.any(of.limit.Name)
	if b == nil {
		return v.unheld(v.shard.Share(of.whole), v.refilled)
	}
	at := refilled(b, max(v.refilled, b.state.Refilled))
	kept := tokenbucket.Bucket{Tokens: at.tokens, Carried: at.carried}
	if b.whole != of.whole { // a dormant limit: one of the two was not asked under the last numbers
		kept = kept.Reparameterize(b.params, v.shard.Share(of.whole), kept.Refilled)
	}
	return kept
}

// unheld returns the balance of a limit that is not held: full, unless it may be one
// that was forgotten.
func (f forgotten) unheld(p tokenbucket.Params, now int64) tokenbucket.Bucket {
	if f.lasts(now) {
		return tokenbucket.Empty(p, f.use, now)
	}
	return tokenbucket.Full(p, now)
}

// remember returns the limits that the bucket is not under now, of which this shard
// had all and has forgotten them, and the retired one had not.
func (v *view) remember(found *view, now int64) []balance {
	if found == nil {
		return nil
	}
	whole := v.shard.Absorb(0)
	var dormant []balance
	for i := range found.balances {
		b := found.balances[i]
		if !b.dormant || v.any(b.limit.Name) != nil {
			continue
		}
		kept, share := found.keeps(&b), v.shard.Share(b.whole)
		own := v.unheld(share, now)
		b.params, b.floor = whole.Share(b.whole), whole.Floor(b.limit.DebtFloor())
		b.state = tokenbucket.Bucket{
			Tokens: min(kept.Tokens+own.Tokens, b.params.Capacity), Refilled: max(b.state.Refilled, now),
			Carried: min(kept.Carried+own.Carried, tokenbucket.MaxCapacity),
		}
		dormant = append(dormant, b)
	}
	return dormant
}

// settled reports whether a shard can be split, retired or made whole: nothing of
// it is on the way, and no tokens of it are out on lease.
func (v *view) settled() bool {
	if v.shard.Moving || v.shard.Retired || len(v.leases) > 0 { // these may be of a limit that was forgotten
		return false
	}
	for i := range v.balances {
		if v.balances[i].leased > 0 {
			return false
		}
	}
	return true
}

// splits reports whether both halves of the shard would hold a whole token of every
// limit: with less, every request would need several shards.
func (v *view) splits() bool {
	if !v.settled() || v.shard.Level >= schema.MaxShards {
		return false
	}
	_, leaves := v.shard.Split()
	for i := range v.balances {
		if leaves.Share(v.balances[i].whole).Capacity < limiter.Milli {
			return false
		}
	}
	return true
}
