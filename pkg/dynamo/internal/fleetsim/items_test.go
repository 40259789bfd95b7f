package fleetsim_test

import (
	"context"
	"math/big"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/awsdb"
	"github.com/ratelimit/ratelimit/pkg/dynamo/internal/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// arrived takes down that DynamoDB did what a message asks for.
func (f *fleet) arrived(pk, op string, err error) {
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
	before := b.items[shard]
	if b.items[shard] = nil; out.Item == nil {
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

// expired takes down that DynamoDB deleted items.
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
	b.underLimits(after)
	if before == nil {
		f.seen["created"]++
		return
	}
	if after.Shard.Epoch < before.Shard.Epoch || after.Shard.Epoch == before.Shard.Epoch && after.Serial != before.Serial+1 {
		f.failf("bucket %d, shard %d: epoch and serial number go from %d and %d to %d and %d", b.index, shard, before.Shard.Epoch, before.Serial, after.Shard.Epoch, after.Serial)
	}
	if after.Shard.Epoch == before.Shard.Epoch && (after.Line.Rate != before.Line.Rate || after.Line.Offset != before.Line.Offset || after.Line.Room < before.Line.Room || after.Version.Hash != before.Version.Hash) {
		f.failf("bucket %d, shard %d: what commuting writes rest on changes within epoch %d", b.index, shard, after.Shard.Epoch)
	}
	f.compareLeases(b, before, after)
	if f.again == "" || op != "UpdateItem" {
		return
	}
	f.seen["landed twice"]++
	if strings.HasPrefix(f.again, schema.AttrBooked) {
		f.failf("bucket %d, shard %d: a charge or a refund lands twice", b.index, shard)
	}
	for i := range after.Balances {
		x := &after.Balances[i]
		if j := before.Find(x.Limit.Name); j >= 0 {
			lost := max(tokensAt(before, &before.Balances[j], f.lateTime())-tokensAt(after, x, f.lateTime()), 0)
			b.limit(x.Limit.Name).lacks.most += lost * tallyScale
		}
	}
}

// compareLeases counts what a write did to leases, shards and limits.
func (f *fleet) compareLeases(b *bucket, before, after *schema.Bucket) {
	for i := range after.Leases {
		l := &after.Leases[i]
		switch was := before.Lease(l.Replica); {
		case was == nil:
			f.seen["lease granted"]++
		case was.Sequence == l.Sequence:
			continue
		case f.writer.lapsed[b]: // it takes the place of one that ended, with its stock
			f.seen["lease replaced"]++
			b.losesRoom(after, was)
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
		if f.dies() {
			b.losesRoom(after, l)
		}
	}
	switch {
	case after.Shard.Level > before.Shard.Level:
		f.seen["split"]++
	case after.Shard.Level < before.Shard.Level:
		f.seen["merge"]++
	case before.Version.Hash != after.Version.Hash:
		f.seen["limits changed"]++
	}
}

// losesRoom takes down that what a lease held is lost: its room at most.
func (b *bucket) losesRoom(it *schema.Bucket, l *schema.Lease) {
	for i := range it.Balances {
		x := &it.Balances[i]
		b.limit(x.Limit.Name).lacks.most += x.Share.Capacity * int64(l.Room) / schema.Parts * tallyScale
	}
}

// dies reports whether leases may end otherwise than in order.
func (f *fleet) dies() bool {
	return f.on.crash || f.on.copies || f.on.cut || f.on.outage || f.on.lost || f.on.tails || f.standsStill()
}

// underLimits tells the shortfalls which limits the bucket is under.
func (b *bucket) underLimits(it *schema.Bucket) {
	for _, l := range b.limits {
		i := it.Find(l.name)
		if i < 0 || it.Shard.Sharded() {
			l.lacks.unknown = true
			continue
		}
		l.lacks.under(it.Balances[i].Whole)
	}
}

// tokensAt returns what the centre has of a limit at a time, in millitokens, rounded down;
// below zero in debt.
func tokensAt(it *schema.Bucket, x *schema.Balance, now int64) int64 {
	unit := big.NewInt(x.Share.Period * schema.Parts)
	room := new(big.Int).Mul(big.NewInt(x.Share.Capacity), big.NewInt(x.Share.Period*int64(it.Line.Room)))
	if lacks := new(big.Int).Sub(x.FullAt, x.Refilled(it.Line, now)); lacks.Sign() > 0 {
		room.Sub(room, lacks)
	}
	return room.Div(room, unit).Int64() // rounds down
}

// there returns what the items of a bucket have of a limit, and whether it is known.
func (b *bucket) there(f *fleet, limit string) (n int64, ok bool) {
	for _, it := range b.items {
		if it == nil || it.Shard.Retired {
			continue
		}
		i := it.Find(limit)
		if i < 0 {
			return 0, false
		}
		n += tokensAt(it, &it.Balances[i], f.lateTime())
		ok = true
	}
	return n, ok
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
