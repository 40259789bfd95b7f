package plan

import (
	"slices"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/schema"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// Absorb returns the write that merges into a shard the part that was split off last, with
// its tokens. found is the retired shard of that part; nil = its item is gone, and its tokens
// are lost. Its limits must not be newer than those of b.
//
// Both are reckoned as of one time, which is not before the retirement: until then the
// retired shard refilled its part by itself, and from then on this one does.
func Absorb(b, found *schema.Bucket, now int64, units int64) (*Write, error) {
	if !settled(b) || !b.Shard.Sharded() || b.Shard.Index >= b.Shard.Level/2 || b.Shard.Epoch >= schema.MaxEpoch { // rule: only shards that are settled are merged
		return nil, ErrShard
	}
	other := b.Shard.Other()
	now = max(now, b.Time())
	epoch := other.Epoch
	if found != nil {
		if !found.Shard.Retired || found.Shard.Birth != other.Birth || found.Shard.Index != other.Index || found.Version.Newer(b.Version) { // rule: only the retired shard that was seen is merged
			return nil, ErrShard
		}
		now, epoch = max(now, found.Time()), found.Shard.Epoch // rule: a merge is not before the retirement
		if found.Version.Hash != b.Version.Hash {
			found = under(found, b.Limits, b.Version.Generation, now)
		}
	}
	after := *b
	after.Shard = b.Shard.Absorb(epoch)
	after.Balances = slices.Clone(b.Balances)
	for i := range after.Balances {
		absorb(&after.Balances[i], found, &after.Shard, now)
	}
	if found != nil {
		after.Balances = append(after.Balances, remember(b, found, &after.Shard, now)...)
		schema.SortBalances(after.Balances)
		if found.Use > 0 {
			after.Forgotten = after.With(schema.Forgotten{Until: found.Until, Use: min(found.Use, tokenbucket.MaxAmount) + min(b.Use, tokenbucket.MaxAmount)})
		}
	}
	forget(&after, now)
	s := Stage{base: b, now: now, exact: true}
	after.TTL = s.ttl(&after)
	return replacement(b, &after, now, units), nil
}

// absorb gives a balance the whole share, with the tokens of a retired shard.
func absorb(of *schema.Balance, found *schema.Bucket, whole *schema.Shard, now int64) {
	own, other := withoutCarry(bucketAt(of, now), of), tokenbucket.Bucket{}
	if found != nil {
		other = keeps(found, of, now) // rule: debt of a shard that is absorbed stays
	}
	setShare(of, whole)
	setBucket(of, sum(own, other, of, now))
}

func setShare(of *schema.Balance, s *schema.Shard) {
	of.Share, of.Floor = s.Share(of.Whole), s.Floor(of.Limit.DebtFloor())
}

// sum returns the balance of two halves of a limit together. Their remainders are in units
// of a half of the rate.
func sum(x, y tokenbucket.Bucket, of *schema.Balance, now int64) tokenbucket.Bucket {
	p := Params(of, schema.WholeLine())
	both := tokenbucket.Bucket{
		Tokens: x.Tokens + y.Tokens, Refilled: now,
		Carried: min(max(x.Carried, 0)+max(y.Carried, 0), tokenbucket.MaxCapacity), // rule: carried use of both halves is carried
	}
	if both.Remainder = (x.Remainder + y.Remainder) / 2; both.Remainder >= p.Period {
		both.Tokens, both.Remainder = both.Tokens+1, both.Remainder-p.Period
	}
	over := both.Tokens - p.Capacity
	if over >= 0 {
		both.Tokens, both.Remainder = p.Capacity, 0
	}
	if over > 0 && (x.Carried < 0 || y.Carried < 0) { // rule: a merge keeps an extra
		both.Carried -= over // carried use of the other half comes first
		both.Tokens += max(-both.Carried, 0)
	}
	return both
}

// keeps returns the balance that a retired shard has of a limit at now. A limit that it does
// not hold had no use and is full, unless it may be one that was forgotten.
func keeps(found *schema.Bucket, of *schema.Balance, now int64) tokenbucket.Bucket {
	held := found.Any(of.Limit.Name)
	share := found.Shard.Share(of.Whole)
	if held == nil {
		return unheld(found, share, now)
	}
	kept := withoutCarry(bucketAt(held, now), held)
	if held.Whole != of.Whole { // a dormant limit: one of the two was not asked under the last numbers
		target := *of
		target.Share = share
		kept = kept.Reparameterize(Params(held, schema.WholeLine()), Params(&target, schema.WholeLine()), now)
	}
	return kept
}

// unheld returns the balance of a limit that is not held: full, unless it may be one
// that was forgotten.
func unheld(b *schema.Bucket, p tokenbucket.Params, now int64) tokenbucket.Bucket {
	if b.Lasts(now) {
		return tokenbucket.Empty(p, b.Use, now)
	}
	return tokenbucket.Full(p, now)
}

// remember returns the limits that the bucket is not under now, and that the retired shard
// still has. b had all of them and has forgotten them.
func remember(b, found *schema.Bucket, whole *schema.Shard, now int64) []schema.Balance {
	var dormant []schema.Balance
	for i := range found.Balances {
		of := found.Balances[i]
		if !of.Dormant || b.Any(of.Limit.Name) != nil {
			continue
		}
		kept, own := withoutCarry(bucketAt(&of, now), &of), unheld(b, b.Shard.Share(of.Whole), now)
		setShare(&of, whole)
		setBucket(&of, sum(kept, own, &of, now))
		of.Moving, of.Aside = 0, 0
		dormant = append(dormant, of)
	}
	return dormant
}
