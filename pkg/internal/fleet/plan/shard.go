package plan

import (
	"errors"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// tombstoneLife is how long a retired shard stays as an item, in seconds. It is longer
// than any write can be under way, and than a replica may be away between retire and
// absorb.
const tombstoneLife = int64(24 * time.Hour / time.Second)

// ErrShard says that a shard is not in a state to be split, cleared, retired or to absorb
// another one.
var ErrShard = errors.New("the shard is not in a state for this change")

// settled reports whether all of a shard is in its item: no lease is out, and the other
// half of its last split is made.
func settled(b *schema.Bucket) bool {
	return b.Exists() && !b.Shard.Moving && !b.Shard.Retired && !b.Leased() // rule: a shard with leases is neither split nor merged
}

// Splits reports whether a shard can be split, and both halves would hold a whole token
// of every limit: with less, every request would need several shards. An extra stays in one piece.
func Splits(b *schema.Bucket) bool {
	if !settled(b) || b.Shard.Level >= schema.MaxShards || b.Shard.Epoch >= schema.MaxEpoch || raised(b) { // rule: a shard with an extra is not split
		return false
	}
	_, leaves := b.Shard.Split()
	return !slices.ContainsFunc(b.Balances, func(of schema.Balance) bool { return leaves.Share(of.Whole).Capacity < limiter.Milli })
}

// Split returns the write that halves a shard as of now. The tokens of the other half wait on
// the item until that is made: about a half, and a half of the use that is carried.
func Split(b *schema.Bucket, now int64, units int64) (*Write, error) {
	if !Splits(b) {
		return nil, ErrShard
	}
	now = max(now, b.Time()) // rule: no split is before the state
	after := *b
	stays, leaves := b.Shard.Split()
	after.Shard, after.MovedAt, after.TTL = stays, now, b.WindowTTL()
	after.Balances = slices.Clone(b.Balances)
	for i := range after.Balances {
		split(&after.Balances[i], &stays, &leaves, now)
	}
	return replacement(b, &after, now, units), nil
}

// split leaves a limit of a shard with its half, and sets aside that of the other one: about
// a half of the tokens, more where this one would keep more than its share, no more than the
// other may hold. Debt stays, and so does a part of a millitoken. Each has a half of the use
// that is carried, rounded up: so a capacity that is raised later adds no more than to the
// whole.
func split(of *schema.Balance, stays, leaves *schema.Shard, now int64) {
	at := withoutCarry(bucketAt(of, now), of)
	setShare(of, stays)
	keeps, part := of.Share.Capacity, int64(0)
	if at.Remainder > 0 {
		part = 1
	}
	of.Moving = 0
	if at.Tokens > 0 {
		of.Moving = min(max(at.Tokens+part-keeps, at.Tokens/2), leaves.Share(of.Whole).Capacity)
	}
	at.Tokens -= of.Moving
	at.Remainder *= 2 // a unit is half as much as before
	if at.Tokens >= keeps {
		at.Remainder = 0
	}
	at.Carried = (at.Carried + 1) / 2
	of.Aside = at.Carried
	setBucket(of, at)
}

// withoutCarry returns a balance without the remainder that belongs to the use that a full
// limit carries.
func withoutCarry(at tokenbucket.Bucket, of *schema.Balance) tokenbucket.Bucket {
	if at.Tokens >= of.Share.Capacity {
		at.Remainder = 0
	}
	return at
}

// replacement returns the exact write that leaves a state.
func replacement(base, after *schema.Bucket, now, units int64) *Write {
	after.Serial++
	after.Turn = schema.Turn{}
	after.At = max(after.At, now)
	after.Shard.Units += units
	return &Write{base: base, after: after, exact: true, units: units}
}

// Make returns the state of the other half of a shard's last split, as it was at the
// split: the same for every replica.
func Make(b *schema.Bucket) (*schema.Bucket, error) {
	if !b.Shard.Moving {
		return nil, ErrShard
	}
	made := &schema.Bucket{
		Serial: 1, Shard: b.Shard.Other(), Version: b.Version, Limits: b.Limits, At: b.MovedAt, Taken: schema.MinTime, Window: b.Window, TTL: b.WindowTTL(),
		Line: schema.WholeLine(), Forgotten: b.Forgotten, Free: b.Free, Balances: slices.Clone(b.Balances),
	}
	for i := range made.Balances {
		of := &made.Balances[i]
		half := tokenbucket.Bucket{Tokens: of.Moving, Carried: of.Aside, Refilled: b.MovedAt} // rule: the other half of a split has the tokens of its split
		of.Share, of.Floor = made.Shard.Share(of.Whole), made.Shard.Floor(of.Limit.DebtFloor())
		setBucket(of, half)
		of.Moving, of.Aside = 0, 0
	}
	return made, nil
}

// PutMade returns the write that makes the other half of a split. A retired shard of an
// earlier split may lie in its place, never a later one. item has the keys and names of
// the item, and is filled in.
func PutMade(made *schema.Bucket, item map[string]types.AttributeValue) *schema.ItemWrite {
	(&Write{after: made}).fill(item)
	to := schema.PutOrReplace(item)
	to.RequirePresent(schema.AttrRetired) // rule: a living shard is not replaced
	to.Require(schema.AttrEpoch, "<", schema.NumberAttribute(made.Shard.Epoch))
	to.Shows = true
	return to
}

// Clear returns the write that notes that the other half of a shard's split is made. It
// must have been seen, or its PutMade applied, after this state was read.
func Clear(b *schema.Bucket, units int64) (*Write, error) {
	if !b.Shard.Moving {
		return nil, ErrShard
	}
	after := *b
	after.Shard.Moving, after.MovedAt = false, 0
	after.Balances = slices.Clone(b.Balances)
	for i := range after.Balances {
		after.Balances[i].Moving, after.Balances[i].Aside = 0, 0
	}
	return replacement(b, &after, b.At, units), nil
}

// Retire returns the write by which a shard that is not the first gives no more tokens, as
// of now. Its tokens wait for its heir.
func Retire(b *schema.Bucket, now int64, units int64) (*Write, error) {
	if !settled(b) || b.Shard.Index == 0 || b.Shard.Epoch >= schema.MaxEpoch || schema.BornAt(b.Shard.Index) != b.Shard.Level {
		return nil, ErrShard
	}
	now = max(now, b.Time())
	after := *b
	after.Shard = b.Shard.Retire()
	after.TTL = max(now, 0)/limiter.Milli + tombstoneLife
	return replacement(b, &after, now, units), nil
}
