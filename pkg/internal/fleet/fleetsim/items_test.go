package fleetsim_test

import (
	"context"
	"math/big"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// arrived records that DynamoDB executed a message.
func (f *fleet) arrived(pk, op string, err error) {
	if op == "TransactWriteItems" {
		f.note(op)
		return
	}
	of, ok := f.byKey[pk]
	_, refused := awsdb.ConditionItem(err)
	if err != nil && !refused {
		f.failf("DynamoDB refuses a message: %w", err)
	}
	f.note(op, int64(of.shard))
	switch {
	case !ok || op == "GetItem":
		return
	case refused:
		f.seen["write refused"]++
		return
	}
	f.writes++
	b := of.bucket
	before := b.items[of.shard]
	f.look(b, of.shard)
	f.compare(b, of.shard, op, before, b.items[of.shard])
	f.release()
}

// look reads the item of a shard.
func (f *fleet) look(b *bucket, shard int) {
	k := b.keys[shard]
	out, err := f.db.GetItem(context.Background(), &dynamodb.GetItemInput{TableName: aws.String(simTable), Key: k.Attributes()})
	if err != nil {
		f.t.Fatal(err)
	}
	f.counts(b, shard, out.Item)
	before := b.items[shard]
	b.items[shard] = nil
	if out.Item == nil {
		return
	}
	var known *limiter.Limits
	if before != nil {
		known = before.Limits
	}
	item, err := schema.ParseBucket(simTable, k, out.Item, known)
	if err != nil {
		f.failf("%w", err)
		return
	}
	b.items[shard] = item
}

// expired records that DynamoDB deleted items.
func (f *fleet) expired() {
	f.seen["expired"]++
	for _, b := range f.buckets {
		for i, it := range b.items {
			if it != nil {
				f.look(b, i)
			}
		}
	}
}

// compare requires that a write changed an item as writes do.
func (f *fleet) compare(b *bucket, shard int, op string, before, after *schema.Bucket) {
	if after == nil || f.fault != nil {
		return
	}
	rate, room := after.Line.Rate, after.Line.Room
	for i := range after.Leases {
		rate, room = rate+after.Leases[i].Rate, room+after.Leases[i].Room
	}
	if rate != schema.Parts || room != schema.Parts || after.Line.Rate < 0 || after.Line.Room < 0 {
		f.failf("bucket %d, shard %d: %d parts of the rate and %d of the room: %+v %+v", b.index, shard, rate, room, after.Line, after.Leases)
	}
	f.underLimits(b, before, after)
	f.writer.pays(b, f.written)
	if before == nil {
		for i := range after.Leases {
			f.holders[after.Leases[i].Replica] = f.writer
		}
		f.seen["created"]++
		return
	}
	if after.Shard.Epoch < before.Shard.Epoch || after.Shard.Epoch == before.Shard.Epoch && after.Serial != before.Serial+1 {
		f.failf("bucket %d, shard %d: epoch and serial number go from %d and %d to %d and %d", b.index, shard, before.Shard.Epoch, before.Serial, after.Shard.Epoch, after.Serial)
	}
	if after.Shard.Epoch == before.Shard.Epoch && (after.Line.Rate != before.Line.Rate || after.Line.Offset != before.Line.Offset || after.Line.Room < before.Line.Room || after.Version.Hash != before.Version.Hash) {
		f.failf("bucket %d, shard %d: state that commuting writes depend on changes within epoch %d", b.index, shard, after.Shard.Epoch)
	}
	if after.Shard.Epoch == before.Shard.Epoch && (op == "TransactWriteItems" || !slices.Equal(before.Leases, after.Leases)) && givesBack(before, after) {
		f.failf("bucket %d, shard %d: tokens come back within epoch %d", b.index, shard, after.Shard.Epoch)
	}
	f.compareLeases(b, before, after)
	f.overfilled(b, before, after)
	if before.Version.Hash != after.Version.Hash {
		b.changed = f.now
	}
	if f.again == "" || op != "UpdateItem" && op != "PutItem" {
		return
	}
	f.seen["landed twice"]++
	for i := range after.Balances {
		x := &after.Balances[i]
		if j := before.Find(x.Limit.Name); j >= 0 {
			lost := max(tokensAt(before, &before.Balances[j], f.lateTime())-tokensAt(after, x, f.lateTime()), 0)
			b.limit(x.Limit.Name).lacks.add(lost)
			b.limit(x.Limit.Name).usage.perhaps(b.limit(x.Limit.Name).usage.last)
		}
	}
}

// overfilled records the tokens that a full shard was given. It was split since the take, so that it has
// half of its room then. Or leases have that room.
func (f *fleet) overfilled(b *bucket, before, after *schema.Bucket) {
	switch {
	case !after.Shard.Sharded() && !after.Leased():
		return
	case f.exact != nil:
		f.overfilledExactly(b, before, after)
		return
	case after.Shard.Epoch != before.Shard.Epoch:
		return
	}
	for i := range after.Balances {
		x := &after.Balances[i]
		j := before.Find(x.Limit.Name)
		if j < 0 {
			continue
		}
		if n := above(after, x, f.lateTime()) - above(before, &before.Balances[j], f.lateTime()); n > 0 {
			f.seen["given to a full shard"]++
			b.limit(x.Limit.Name).lacks.add(n)
		}
	}
}

// overfill is the millitokens of a limit that an exact write gave a full shard.
type overfill struct {
	limit *shortfall
	n     int64
}

// overfillRounded is by how many millitokens an overfill may be too large: both balances are rounded down.
const overfillRounded = 2

// overfilledExactly is overfilled for an exact write of requests. Such a write leaves nothing above the room.
// It was applied to the state before, and what it counts as refunded is what it gave at most. A process that
// gets the reply counts what had no room.
func (f *fleet) overfilledExactly(b *bucket, before, after *schema.Bucket) {
	if before.Shard.Level != after.Shard.Level || before.Version.Hash != after.Version.Hash || !slices.Equal(before.Leases, after.Leases) {
		return
	}
	for i := range after.Balances {
		x := &after.Balances[i]
		j := before.Find(x.Limit.Name)
		if j < 0 || before.Balances[j].Carried > 0 || x.Carried > 0 {
			continue
		}
		gave := -addedBy(f.exact, schema.LimitAttr(x.Limit.Name, schema.LimitConsumed))
		if n := tokensAt(before, &before.Balances[j], after.At) + gave - tokensAt(after, x, after.At); gave > 0 && n > overfillRounded {
			f.seen["given to a full shard"]++
			y := b.limit(x.Limit.Name).lacks
			y.add(n)
			_, id := idOf(f.exact)
			f.overfills[id] = append(f.overfills[id], overfill{y, n})
		}
	}
}

// countsRoom takes the part of overfills back that a process does not count as lost for want of room, as it takes in
// the reply that came to its write just now. Such a loss has no cause.
func (p *process) countsRoom(overfills []overfill) {
	before := p.engine.Stats().LostRoom
	p.fleet.after(0, func() {
		counted := p.engine.Stats().LostRoom - before
		for _, g := range overfills {
			if n := counted + overfillRounded - g.n; n < 0 && !p.ended {
				g.limit.add(n)
			}
		}
	})
}

// above returns how many millitokens more than its room an item was given.
func above(it *schema.Bucket, x *schema.Balance, now int64) int64 {
	more := lackOf(it, x, now)
	more.Neg(more)
	if more.Sign() <= 0 {
		return 0
	}
	return more.Div(more, big.NewInt(x.Share.Period*schema.Parts)).Int64()
}

// lackOf returns Amount·K(t) less than the point at which a limit is full, in units; below 0 it is full since.
func lackOf(it *schema.Bucket, x *schema.Balance, t int64) *big.Int {
	lack, _ := new(big.Int).SetString(x.FullAt.String(), 10)
	k := new(big.Int).Mul(big.NewInt(int64(it.Line.Rate)), big.NewInt(t))
	k.Add(k, big.NewInt(it.Line.Offset))
	return lack.Sub(lack, k.Mul(k, big.NewInt(x.Share.Amount)))
}

// givesBack reports whether a write lowered a deficit.
func givesBack(before, after *schema.Bucket) bool {
	for i := range after.Balances {
		if j := before.Find(after.Balances[i].Limit.Name); j >= 0 && after.Balances[i].FullAt.Cmp(before.Balances[j].FullAt) < 0 {
			return true
		}
	}
	return false
}

// compareLeases counts the changes of a write to leases, shards and limits.
func (f *fleet) compareLeases(b *bucket, before, after *schema.Bucket) {
	for i := range after.Leases {
		l := &after.Leases[i]
		if was := before.Lease(l.Replica); was == nil || was.Sequence != l.Sequence {
			f.holders[l.Replica] = f.writer
			b.leased[l.Replica] = f.now
		}
		switch was := before.Lease(l.Replica); {
		case was == nil:
			f.seen["lease granted"]++
		case was.Sequence == l.Sequence:
			continue
		case f.writer.lapsed[b]: // it takes the place of one that ended, with its stock
			f.seen["lease replaced"]++
			b.losesRoom(before, was)
			f.writer.losesReport(b)
		default:
			f.seen["lease renewed"]++
		}
		delete(f.writer.lapsed, b)
	}
	for i := range before.Leases {
		l := &before.Leases[i]
		if after.Lease(l.Replica) != nil {
			continue
		}
		f.seen["lease closed"]++
		f.reaped(b, before, l)
	}
	switch {
	case after.Shard.Level > before.Shard.Level:
		f.seen["split"]++
	case after.Shard.Level < before.Shard.Level:
		f.seen["merge"]++
		f.merged(b, before, after)
	case before.Version.Hash != after.Version.Hash:
		f.seen["limits changed"]++
	}
}

// losesRoom records that the tokens of a lease of an item are lost: its room at most, by the limits that it was of.
func (b *bucket) losesRoom(it *schema.Bucket, l *schema.Lease) {
	for i := range it.Balances {
		x := &it.Balances[i]
		b.limit(x.Limit.Name).lacks.add(x.Share.Capacity * int64(l.Room) / schema.Parts)
	}
}

// reaped records that a lease has left the item: its holder returned it, or another replica
// has freed it. Then the holder must have crashed, or have had trouble for its term.
func (f *fleet) reaped(b *bucket, before *schema.Bucket, l *schema.Lease) {
	holder := f.holders[l.Replica]
	if holder == f.writer && !holder.lapsed[b] || !l.Holds() {
		return
	}
	b.losesRoom(before, l)
	holder.losesReport(b)
	if holder == f.writer {
		return
	}
	f.seen["lease freed by another replica"]++
	if holder == nil || holder.ended || holder.leaves || holder.twin || holder.lapsed[b] || f.standsStill() {
		return
	}
	since := min(b.leased[l.Replica], f.now-reapTime) - second/2 // its last write
	if had := holder.suffered(since, f.now); had < leaseTrouble {
		f.failf("bucket %d: a lease of replica %d is freed by replica %d, though its holder is well: it had trouble for %v of the last %v", b.index, holder.index, f.writer.index, time.Duration(had), time.Duration(f.now-since))
	}
}

const (
	// longestLift is five round trips, of 200 ms at most.
	longestLift = second
	// liftPart bounds a lift: it costs at most one part in that many of the capacity.
	liftPart = 20
)

// lifted passes the lifts of an update that was applied just now to the shortfalls. The items are as before. A lift leads
// from any number up to its bound, so it costs the refill from the time of the fastest clock to that at most.
func (f *fleet) lifted(in *dynamodb.UpdateItemInput) {
	of := f.byKey[show(in.Key[schema.AttrPK])]
	it := of.bucket.items[of.shard]
	if it == nil {
		return
	}
	for i := range it.Balances {
		x := &it.Balances[i]
		bound, ok := boundOf(in, schema.LimitAttr(x.Limit.Name, schema.LimitFullAt))
		if !ok {
			continue
		}
		to := *x
		to.FullAt, _ = schema.ParseUnits(show(bound))
		over := lackOf(it, &to, f.lateTime())
		over.Mul(over, big.NewInt(tallyScale))
		over.Div(over, big.NewInt(x.Share.Period*schema.Parts)) // rounds down
		most := min(longestLift/tallyTick*inTick(x.Share), x.Share.Capacity*tallyScale/liftPart)
		of.bucket.limit(x.Limit.Name).lacks.lift(of.shard, min(over.Int64()+1, most))
	}
}

// underLimits passes the limits that an item is under to the shortfalls, after a write. A change of limits is as of the
// time that it was planned at, by its sender's clock.
func (f *fleet) underLimits(b *bucket, before, after *schema.Bucket) {
	latest := f.now + f.ahead
	for _, l := range b.limits {
		y := l.lacks
		y.advance(f.now) // by the rate so far
		i := after.Find(l.name)
		if i < 0 { // it starts with the use of limits that were forgotten
			y.unknown = true
			continue
		}
		if after.Shard.Sharded() {
			y.leased = true // a full shard loses refill
			y.moves = true
		}
		x := &after.Balances[i]
		y.under(x.Whole)
		if before != nil && before.Version.Hash != after.Version.Hash {
			if j := before.Find(l.name); j >= 0 {
				y.changed(before.Balances[j].Share, x.Share, latest-(after.At-simStart)*int64(time.Millisecond))
			}
		}
	}
}

// merged requires that a shard has the tokens of both halves after a merge, and their debt.
func (f *fleet) merged(b *bucket, before, after *schema.Bucket) {
	const rounded = 3
	other := before.Shard.Other()
	half := b.items[other.Index]
	if half != nil && half.Version.Hash != before.Version.Hash {
		b.changed = f.now
	}
	if half == nil || !half.Shard.Retired || half.Version.Hash != before.Version.Hash {
		return
	}
	for i := range after.Balances {
		x := &after.Balances[i]
		j, k := before.Find(x.Limit.Name), half.Find(x.Limit.Name)
		if j < 0 || k < 0 || x.Carried > 0 || half.Balances[k].Carried > 0 {
			continue
		}
		had := tokensAt(before, &before.Balances[j], after.At) + tokensAt(half, &half.Balances[k], after.At)
		if before.Balances[j].Extra() == 0 && half.Balances[k].Extra() == 0 {
			had = min(had, x.Share.Capacity)
		}
		if has := tokensAt(after, x, after.At); has > had+rounded || has < had-rounded {
			f.failf("bucket %d, limit %s: shards %d and %d have %d millitokens, and %d when they are one", b.index, x.Limit.Name, before.Shard.Index, other.Index, had, has)
		}
	}
}

// tokensAt returns the balance of a limit in the centre at a time, in millitokens, rounded
// down; below zero in debt. An extra is a part of it.
func tokensAt(it *schema.Bucket, x *schema.Balance, now int64) int64 {
	n, extra := balanceAt(it, x, now)
	return n + extra
}

// balanceAt returns the tokens of a limit in the centre up to its capacity, and those above it.
func balanceAt(it *schema.Bucket, x *schema.Balance, now int64) (n, extra int64) {
	unit := big.NewInt(x.Share.Period * schema.Parts)
	room := new(big.Int).Mul(big.NewInt(x.Share.Capacity), big.NewInt(x.Share.Period*int64(it.Line.Room)))
	extra = x.Extra()
	if lacks := lackOf(it, x, now); lacks.Sign() > 0 {
		room.Sub(room, lacks)
		extra = 0 // a balance below its capacity has none
	}
	return room.Div(room, unit).Int64(), extra // rounds down
}

// extra returns the millitokens of a limit above its capacity, in the items of a bucket. A shard that is merged
// brings its own.
func (b *bucket) extra(limit string) (sum int64) {
	for _, it := range b.items {
		if it == nil {
			continue
		}
		if of := it.Any(limit); of != nil {
			sum += of.Extra()
		}
	}
	return sum
}

// there returns the balance of a limit in the items of a bucket and its extra, and whether they are
// known.
func (b *bucket) there(f *fleet, limit string) (n, extra int64, ok bool) {
	for _, it := range b.items {
		if it == nil || it.Shard.Retired {
			continue
		}
		i := it.Find(limit)
		if i < 0 {
			return 0, 0, false
		}
		m, more := balanceAt(it, &it.Balances[i], f.lateTime())
		n, extra, ok = n+m, extra+more, true
	}
	return n, extra, ok
}

// lateTime is the time on the fastest clock, in Unix ms.
func (f *fleet) lateTime() int64 { return simStart + (f.now+f.ahead)/1e6 }

// limitedBy reports whether all shards have a limit. One that is under newer limits without
// it takes nothing of it, and counts as a part of a call all the same.
func (b *bucket) limitedBy(limit string) bool {
	for _, it := range b.items {
		if it != nil && !it.Shard.Retired && it.Find(limit) < 0 {
			return false
		}
	}
	return true
}

// booksAll reports whether a charge is booked in full for certain: no shard is near
// the floor, where it would be cut.
func (b *bucket) booksAll(limit string) bool {
	for _, it := range b.items {
		if it == nil || it.Shard.Retired {
			continue
		}
		if i := it.Find(limit); i >= 0 && tokensAt(it, &it.Balances[i], it.Time()) < it.Balances[i].Floor/2 {
			return false
		}
	}
	return true
}
