package zaelimiter

import (
	"maps"
	"slices"

	"github.com/ratelimit/ratelimit/internal/migration"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// maxShards is the greatest number of shards of a bucket that counts; the package has made
// more by mistake.
const maxShards = 1 << 16

// state is a bucket that was read so far, in one or more shards.
type state struct {
	shards int // as the items say
	limits map[string]*share
}

// share is a limit of a bucket, and the tokens that its shards have.
type share struct {
	params tokenbucket.Params // of the whole bucket
	tokens []tokenbucket.Bucket
}

// add adds the item of a shard. A limit that no bucket can have, such as a quota, is left out.
func (s *state) add(i item) {
	count, ok := i.number("shard_count")
	if !ok || count < 1 || count > maxShards {
		count = 1
	}
	s.shards = max(s.shards, int(count))
	refilled, ok := i.number("rf")
	if !ok {
		return
	}
	for _, name := range names(i, "b_", "_tk") {
		attr := func(field string) string { return "b_" + name + "_" + field }
		tokens, _ := i.number(attr("tk"))
		var params tokenbucket.Params
		params.Capacity, params.Amount, params.Period, _ = rateOf(i, attr)
		if name == "wcu" || params.Validate() != nil || tokens < -tokenbucket.MaxAmount || tokens > tokenbucket.MaxAmount {
			continue
		}
		if s.limits == nil {
			s.limits = make(map[string]*share)
		}
		if s.limits[name] == nil {
			s.limits[name] = &share{params: params}
		}
		l := s.limits[name]
		l.tokens = append(l.tokens, tokenbucket.Bucket{Tokens: tokens, Refilled: refilled})
	}
}

// balance returns the bucket at now; ok is false for one that is full.
func (s *state) balance(entity, resource string, now int64) (b migration.Balance, ok bool) {
	b = migration.Balance{Entity: entity, Resource: resource}
	for _, name := range slices.Sorted(maps.Keys(s.limits)) {
		l := s.limits[name]
		whole := l.whole(s.shards)
		if !whole.Unused(l.params, now) {
			b.Limits = append(b.Limits, migration.LimitBalance{Name: name, Params: l.params, Bucket: whole})
		}
	}
	return b, len(b.Limits) > 0
}

// whole returns the limit as one bucket, as it stands at the latest refill of a shard. Each
// of n shards has an equal share; one that does not exist yet has all of it.
func (l *share) whole(n int) tokenbucket.Bucket {
	if n == 1 && len(l.tokens) == 1 {
		return l.tokens[0]
	}
	each := l.params
	each.Capacity, each.Amount = max(1, each.Capacity/int64(n)), max(1, each.Amount/int64(n))
	latest := l.tokens[0].Refilled
	for _, b := range l.tokens {
		latest = max(latest, b.Refilled)
	}
	tokens := int64(max(0, n-len(l.tokens))) * each.Capacity
	for _, b := range l.tokens {
		tokens = max(tokens+b.Refill(each, latest).Tokens, -tokenbucket.MaxAmount)
	}
	return tokenbucket.Bucket{Tokens: min(tokens, l.params.Capacity), Refilled: latest}
}
