package descriptor

import (
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// maxOverrides is the most sets of limits from descriptors that are cached. The least recently used
// ones are made again when needed.
const maxOverrides = 4096

// overrideKey identifies a set of limits in which one is replaced.
type overrideKey struct {
	base   *limiter.Limits // nil = the set has only the new limit
	limit  string
	tokens int64
	period time.Duration
}

// replace returns base with the named limit replaced by the one of a descriptor, whose Requests is
// above 0. It cuts a number of tokens to limiter.MaxTokens, and a period to 1 second to 366 days.
// It returns nil when the limit would be one more than a bucket can have.
func (r *Rules) replace(base *limiter.Limits, name string, l *Limit) *limiter.Limits {
	const longest = tokenbucket.MaxPeriod * time.Millisecond
	period := min(max(l.Period, time.Second), longest)
	if rest := period % time.Millisecond; rest > 0 {
		period += time.Millisecond - rest
	}
	key := overrideKey{base: base, limit: name, tokens: limiter.MaxTokens, period: period}
	if l.Requests < limiter.MaxTokens {
		key.tokens = int64(l.Requests)
	}
	if set, ok := r.overrides.Get(key); ok {
		return set
	}
	set := makeOverride(key)
	r.overrides.Add(key, set)
	return set
}

// makeOverride makes the set of a key. The replaced limit's bound of debt stays.
func makeOverride(key overrideKey) *limiter.Limits {
	replaced := limiter.Custom(key.limit, key.tokens, key.tokens, key.period)
	limits := make([]limiter.Limit, 0, limiter.MaxLimits)
	for i := range key.base.Len() {
		if l := key.base.At(i); l.Name != key.limit {
			limits = append(limits, l)
		} else {
			replaced.MaxDebt = l.MaxDebt
		}
	}
	set, err := limiter.NewLimits(append(limits, replaced)...)
	if err != nil {
		return nil
	}
	return set
}
