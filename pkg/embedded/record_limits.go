package embedded

import (
	"encoding/binary"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// appendLimit appends a limit.
func appendLimit(buf []byte, l limiter.Limit) []byte {
	buf = appendText(buf, l.Name)
	if l.Unlimited {
		return binary.AppendVarint(buf, 0)
	}
	buf = binary.AppendVarint(buf, l.Capacity)
	buf = binary.AppendVarint(buf, l.RefillAmount)
	buf = binary.AppendVarint(buf, l.RefillPeriod.Milliseconds())
	return binary.AppendVarint(buf, l.MaxDebt)
}

// appendLimits appends the number of limits, and each.
func appendLimits(buf []byte, s *limiter.Limits) []byte {
	buf = binary.AppendUvarint(buf, uint64(s.Len())) // #nosec G115 -- a length
	for i := range s.Len() {
		buf = appendLimit(buf, s.At(i))
	}
	return buf
}

// Limit reads a limit.
func (r *recordReader) Limit() limiter.Limit {
	l := limiter.Limit{Name: r.Text(), Capacity: r.Int(0, limiter.MaxTokens)}
	if l.Capacity == 0 {
		l.Unlimited = true
		return l
	}
	l.RefillAmount = r.Int(1, limiter.MaxTokens)
	l.RefillPeriod = time.Duration(r.Int(tokenbucket.MinPeriod, tokenbucket.MaxPeriod)) * time.Millisecond
	l.MaxDebt = r.Int(limiter.NoDebt, limiter.MaxTokens)
	return l
}

// Limits reads a number of limits, 1 or above, and each. Limits that were read before are shared,
// since most buckets have the same ones.
func (r *recordReader) Limits(shared map[string]*limiter.Limits) *limiter.Limits {
	begin := r.Rest
	all := make([]limiter.Limit, r.Count())
	for i := range all {
		all[i] = r.Limit()
	}
	if r.Failed {
		return nil
	}
	text := begin[:len(begin)-len(r.Rest)]
	if found, ok := shared[string(text)]; ok {
		return found
	}
	set, err := limiter.NewLimits(all...)
	if err != nil || set.Len() == 0 {
		r.Failed = true
		return nil
	}
	shared[string(text)] = set
	return set
}

// someLimits reads limits, nil for none.
func (r *recordReader) someLimits() *limiter.Limits {
	if len(r.Rest) > 0 && r.Rest[0] == 0 {
		r.Rest = r.Rest[1:]
		return nil
	}
	return r.Limits(make(map[string]*limiter.Limits))
}
