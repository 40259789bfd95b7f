package limiter

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// MaxLeaseFor is the longest time that a token lease can be sized for. It is a fraction of a
// lease's term, so that a lease that is renewed in time never expires.
const MaxLeaseFor = time.Second

// LeasePolicy says how a store whose processes share buckets may use token leases on a bucket:
// tokens that one process takes in advance and serves from memory. The zero value is "auto": the
// store sizes leases by the demand, and makes none where there is too little. A store that keeps
// buckets in its own memory ignores it.
//
// It belongs to the rule, not to the bucket. If several rules take from one bucket, the op that a
// process sent last determines the policy of that process.
type LeasePolicy struct {
	// None forbids leases: the bucket itself makes every decision, so that with one shard its
	// decisions are linearizable. Tokens on lease are returned at once.
	None bool
	// Max is the most that one process has on lease of each limit, in millitokens, 0 to
	// tokenbucket.MaxAmount; 0 = its fair share of the bucket's tokens.
	Max int64
	// For is the time whose demand a lease covers, 0 to MaxLeaseFor; 0 = the store chooses by the
	// demand.
	For time.Duration
}

// Check refuses, with ErrInvalid, values out of range.
func (p LeasePolicy) Check() error {
	if p.Max < 0 || p.Max > tokenbucket.MaxAmount {
		return fmt.Errorf("%w: a token lease of at most %d millitokens; it must be 0 to %d", ErrInvalid, p.Max, int64(tokenbucket.MaxAmount))
	}
	if p.For < 0 || p.For > MaxLeaseFor {
		return fmt.Errorf("%w: a token lease for %v; it must be 0 to %v", ErrInvalid, p.For, MaxLeaseFor)
	}
	return nil
}

// String returns the policy as a configuration file writes it: "auto", "none", or
// "{max: 5000, for: 500ms}", max in tokens.
func (p LeasePolicy) String() string {
	var bounds []string
	if p.Max > 0 {
		bounds = append(bounds, "max: "+strconv.FormatInt(p.Max/Milli, 10))
		if rest := p.Max % Milli; rest > 0 {
			bounds[0] += strings.TrimRight(fmt.Sprintf(".%03d", rest), "0")
		}
	}
	if p.For > 0 {
		bounds = append(bounds, "for: "+p.For.String())
	}
	switch {
	case p.None:
		return "none"
	case len(bounds) == 0:
		return "auto"
	default:
		return "{" + strings.Join(bounds, ", ") + "}"
	}
}

// and returns the policy of the bounds of both.
func (p LeasePolicy) and(q LeasePolicy) LeasePolicy {
	return LeasePolicy{None: p.None || q.None, Max: lesser(p.Max, q.Max), For: lesser(p.For, q.For)}
}

// lesser returns the lesser of two bounds, where 0 means no bound.
func lesser[T cmp.Ordered](a, b T) T {
	var none T
	if a == none || b == none {
		return max(a, b)
	}
	return min(a, b)
}
