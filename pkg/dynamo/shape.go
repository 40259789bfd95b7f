package dynamo

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// tombstoneLife is how long a retired shard stays as an item: longer than any write
// can be under way, and than a replica may be away between retire and absorb.
const tombstoneLife = int64(24 * time.Hour / time.Second)

// splitInput sets aside what a new shard begins with, about a half of each balance,
// and halves the share of this one. It is a refill that takes those tokens: others
// may have written since the view.
func splitInput(table string, k key, id writeID, v *view, now, units int64) *dynamodb.UpdateItemInput {
	s := newStage(v, now)
	stays, leaves := v.shard.split()
	e := newExpression()
	e.own(id)
	e.require(attrVersion, "=", numberAttribute(v.version.hash))
	e.require(attrEpoch, "=", numberAttribute(v.shard.epoch))
	e.require(attrRefilled, "=", numberAttribute(v.refilled))
	e.setTo(attrRefilled, numberAttribute(s.now))
	e.addTo(attrUnits, units)
	e.setShard(stays)
	e.setTo(attrMoving, numberAttribute(1))
	e.setTo(childAttr(leaves.index), numberAttribute(leaves.birth))
	e.removeAttr(attrTTL)
	for i := range s.balances {
		b := &s.balances[i]
		x := moving(b.tokens, stays.share(b.whole).Capacity, leaves.share(b.whole).Capacity)
		b.need(x)
		b.take(x)
		b.remainder = 0
		e.setTo(limitAttr(b.limit.Name, limitMoving), numberAttribute(x))
		if b.carried > 0 && b.basis != exact { // no condition has it yet
			e.require(limitAttr(b.limit.Name, limitCarried), "=", numberAttribute(b.state.Carried))
		}
		b.carried = e.splitCarried(b.limit.Name, b.carried)
		e.stageRefill(b, true)
	}
	for i := range v.balances {
		if b := &v.balances[i]; b.dormant {
			e.splitDormant(v, b, s.now, stays, leaves)
		}
	}
	return e.input(table, k)
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
		e.setTo(limitAttr(limit, limitAside), numberAttribute(n))
	}
	return n
}

// splitDormant divides a limit that the bucket is not under now.
func (e *expression) splitDormant(v *view, b *balance, now int64, stays, leaves shard) {
	at := refilled(b, max(now, b.state.Refilled))
	x := moving(at.tokens, stays.share(b.whole).Capacity, leaves.share(b.whole).Capacity)
	e.requireDormant(v, b)
	e.requireLease(b, "=", 0)
	half := e.splitCarried(b.limit.Name, at.carried)
	e.setBalance(b, tokenbucket.Bucket{Tokens: at.tokens - x, Refilled: max(now, b.state.Refilled), Carried: half})
	e.setTo(limitAttr(b.limit.Name, limitMoving), numberAttribute(x))
}

// setShard writes which part of the bucket the item is.
func (e *expression) setShard(s shard) {
	e.setTo(attrLevel, numberAttribute(s.level))
	e.setTo(attrShardCount, numberAttribute(s.level))
	e.setTo(attrEpoch, numberAttribute(s.epoch))
}

// setBalance writes a limit with another balance.
func (e *expression) setBalance(b *balance, state tokenbucket.Bucket) {
	next := *b
	if next.state = state; state.Carried == 0 && b.state.Carried > 0 {
		e.removeAttr(limitAttr(b.limit.Name, limitCarried))
	}
	for _, n := range balanceNumbers(&next, false) {
		e.setTo(limitAttr(b.limit.Name, n.attr), numberAttribute(n.value))
	}
}

// makeInput makes the other half of a split, from the item that was split. A
// retired shard of an earlier split may lie in its place, never a later one.
func makeInput(table string, of site, v *view, now int64) *dynamodb.PutItemInput {
	other := v.shard.other()
	now = v.at(now)
	k := of.shard(other.index)
	item := k.newItem(of)
	item[attrRefilled] = numberAttribute(now)
	item[attrVersion], item[attrGeneration] = numberAttribute(v.version.hash), numberAttribute(v.version.generation)
	item[attrLevel], item[attrShardCount] = numberAttribute(other.level), numberAttribute(other.level)
	item[attrEpoch], item[attrBirth] = numberAttribute(other.epoch), numberAttribute(other.birth)
	for i := range v.balances {
		b := v.balances[i]
		b.state = tokenbucket.Bucket{Tokens: b.moving, Refilled: max(now, b.state.Refilled), Carried: b.aside}
		for _, n := range balanceNumbers(&b, false) {
			item[limitAttr(b.limit.Name, n.attr)] = numberAttribute(n.value)
		}
		item[limitAttr(b.limit.Name, limitConsumed)] = numberAttribute(0)
	}
	for _, name := range v.free {
		item[limitAttr(name, limitUnlimited)] = numberAttribute(1)
	}
	if v.use > 0 {
		item[attrForgotten], item[attrUseBefore] = numberAttribute(v.until), numberAttribute(v.use)
	}
	return &dynamodb.PutItemInput{
		TableName:                           aws.String(table),
		Item:                                item,
		ConditionExpression:                 aws.String("attribute_not_exists(#pk) OR attribute_exists(#rt) AND #ep < :ep"),
		ExpressionAttributeNames:            map[string]string{"#pk": attrPK, "#rt": attrRetired, "#ep": attrEpoch},
		ExpressionAttributeValues:           map[string]types.AttributeValue{":ep": numberAttribute(other.epoch)},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
}

// clearInput notes that the other half of a split is made.
func clearInput(table string, k key, v *view) *dynamodb.UpdateItemInput {
	e := newExpression()
	e.require(attrVersion, "=", numberAttribute(v.version.hash)) // else other limits may have something set aside
	e.require(attrGeneration, "=", numberAttribute(v.version.generation))
	e.require(attrEpoch, "=", numberAttribute(v.shard.epoch))
	e.require(attrMoving, "=", numberAttribute(1))
	e.removeAttr(attrMoving)
	e.addTo(attrUnits, 1)
	for i := range v.balances {
		e.removeAttr(limitAttr(v.balances[i].limit.Name, limitMoving))
		e.removeAttr(limitAttr(v.balances[i].limit.Name, limitAside))
	}
	return e.input(table, k)
}

// retireInput has a shard give no more tokens: what it has waits for its heir.
func retireInput(table string, k key, v *view, now int64) *dynamodb.UpdateItemInput {
	s := newStage(v, now)
	next := v.shard.retired()
	e := newExpression()
	e.pin(v)
	e.setTo(attrEpoch, numberAttribute(next.epoch))
	e.setTo(attrRetired, numberAttribute(1))
	e.setTo(attrRefilled, numberAttribute(s.now))
	e.setTo(attrTTL, numberAttribute(max(s.now, 0)/limiter.Milli+tombstoneLife))
	for i := range s.balances {
		b := &s.balances[i]
		e.setTo(limitAttr(b.limit.Name, limitTokens), numberAttribute(b.tokens))
		e.setTo(limitAttr(b.limit.Name, limitRemainder), numberAttribute(0))
		e.setCarried(b.limit.Name, b.state.Carried, b.carried)
	}
	return e.input(table, k)
}

// absorbInput gives a shard back the part that was split off last, and what a
// retired shard had of it; found is that one under the same limits, nil when it is
// gone, with all that it had.
func absorbInput(table string, k key, id writeID, v, found *view, now int64) *dynamodb.UpdateItemInput {
	other := v.shard.other()
	epoch := other.epoch
	if found != nil {
		epoch = found.shard.epoch
	}
	next := *v
	next.shard = v.shard.absorbed(epoch)
	if next.refilled = v.at(now); found != nil { // from then on this one refills for both
		next.refilled = max(next.refilled, found.refilled)
	}
	next.balances = make([]balance, len(v.balances))
	e := newExpression()
	e.own(id)
	e.pin(v)
	e.setShard(next.shard)
	e.setTo(attrRefilled, numberAttribute(next.refilled))
	e.removeAttr(childAttr(other.index))
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
			e.setTo(limitAttr(b.limit.Name, limitConsumed), numberAttribute(0))
		}
	}
	for i := range v.balances {
		if old := &v.balances[i]; next.any(old.limit.Name) == nil {
			e.removeBalance(old, false)
		}
	}
	if ttl := newStage(&next, next.refilled).ttlNeeded(left); ttl > 0 {
		e.setTo(attrTTL, numberAttribute(ttl+ttlSlack))
	}
	return e.input(table, k)
}

// absorb returns a balance with what a retired shard had of the same limit.
func absorb(b *balance, found *view, s *shard, now int64) balance {
	at := refilled(b, max(now, b.state.Refilled))
	next := *b
	next.params = s.share(b.whole)
	next.floor = s.floor(b.limit.DebtFloor())
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
		return v.unheld(v.shard.share(of.whole), v.refilled)
	}
	at := refilled(b, max(v.refilled, b.state.Refilled))
	kept := tokenbucket.Bucket{Tokens: at.tokens, Carried: at.carried}
	if b.whole != of.whole { // a dormant limit: one of the two was not asked under the last numbers
		kept = kept.Reparameterize(b.params, v.shard.share(of.whole), kept.Refilled)
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
	whole := v.shard.absorbed(0)
	var dormant []balance
	for i := range found.balances {
		b := found.balances[i]
		if !b.dormant || v.any(b.limit.Name) != nil {
			continue
		}
		kept, share := found.keeps(&b), v.shard.share(b.whole)
		own := v.unheld(share, now)
		b.params, b.floor = whole.share(b.whole), whole.floor(b.limit.DebtFloor())
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
	if v.shard.moving || v.shard.gone || len(v.leases) > 0 { // these may be of a limit that was forgotten
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
	if !v.settled() || v.shard.level >= maxShards {
		return false
	}
	_, leaves := v.shard.split()
	for i := range v.balances {
		if leaves.share(v.balances[i].whole).Capacity < limiter.Milli {
			return false
		}
	}
	return true
}
