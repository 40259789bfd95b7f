package descriptor

import (
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
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
	ofFile bool // of an envoyproxy/ratelimit file: its debt is at most the limit, as of other limits of such files
}

// makeOverride makes the set of a key. The replaced limit's bound of debt stays.
func makeOverride(key overrideKey) *limiter.Limits {
	replaced := limiter.Custom(key.limit, key.tokens, key.tokens, key.period)
	if key.ofFile {
		replaced.MaxDebt = key.tokens
	}
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
