package migration

import (
	"fmt"
	"maps"
	"slices"

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

// add adds the item of a shard, and returns the problems of limits that count as full, each with
// its limit. A quota, which no bucket can have, is left out.
func (s *state) add(i item) (problems []problem) {
	count, ok := i.number("shard_count")
	if !ok || count < 1 || count > maxShards {
		if i.has("shard_count") {
			problems = append(problems, problem{"", fmt.Sprintf("is read as one of 1 shard: shard_count must be a whole number from 1 to %d", maxShards)})
		}
		count = 1
	}
	s.shards = max(s.shards, int(count))
	refilled, ok := i.number("rf")
	if !ok {
		return append(problems, problem{"", "is taken for full: rf must be a whole number of milliseconds"})
	}
	for _, name := range names(i, "b_", "_tk", "_cp") {
		if name == "wcu" { // of the package itself
			continue
		}
		params, tokens, what := shareOf(i, "b_"+name+"_")
		switch {
		case what != "":
			problems = append(problems, problem{name, "is taken for full: " + what})
		case params.Amount > 0:
			l := s.limit(name, params)
			l.tokens = append(l.tokens, tokenbucket.Bucket{Tokens: tokens, Refilled: refilled})
		}
	}
	return problems
}

// limit returns a limit of the bucket, which an item brings with params.
func (s *state) limit(name string, params tokenbucket.Params) *share {
	if s.limits == nil {
		s.limits = make(map[string]*share)
	}
	if s.limits[name] == nil {
		s.limits[name] = &share{params: params}
	}
	return s.limits[name]
}

// shareOf returns a limit of a shard and its tokens, or the problem with them. A quota has no
// refill.
func shareOf(i item, prefix string) (params tokenbucket.Params, tokens int64, what string) {
	attr := func(field string) string { return prefix + field }
	tokens, hasTokens := i.number(attr("tk"))
	var hasRate bool
	params.Capacity, params.Amount, params.Period, hasRate = rateOf(i, attr)
	switch {
	case !hasTokens || !hasRate:
		return params, 0, fmt.Sprintf("%s, %s, %s and %s must be whole numbers", attr("tk"), attr("cp"), attr("ra"), attr("rp"))
	case params.Amount == 0:
		return params, 0, ""
	case tokens < -tokenbucket.MaxAmount || tokens > tokenbucket.MaxAmount:
		return params, 0, fmt.Sprintf("%s is %d; it must be %d to %d", attr("tk"), tokens, -tokenbucket.MaxAmount, int64(tokenbucket.MaxAmount))
	}
	if err := params.Validate(); err != nil {
		return params, 0, err.Error()
	}
	return params, tokens, ""
}

// balance returns the bucket at now; ok is false for one that is full.
func (s *state) balance(entity, resource string, now int64) (b Balance, ok bool) {
	b = Balance{Entity: entity, Resource: resource}
	for _, name := range slices.Sorted(maps.Keys(s.limits)) {
		l := s.limits[name]
		whole := l.whole(s.shards)
		if !whole.Unused(l.params, now) {
			b.Limits = append(b.Limits, LimitBalance{Name: name, Params: l.params, Bucket: whole})
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
