package embedded

import (
	"encoding/binary"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

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

func appendLimits(buf []byte, s *limiter.Limits) []byte {
	buf = binary.AppendUvarint(buf, uint64(s.Len())) // #nosec G115 -- a length
	for i := range s.Len() {
		buf = appendLimit(buf, s.At(i))
	}
	return buf
}

func (r *reader) limit() limiter.Limit {
	l := limiter.Limit{Name: r.text(), Capacity: r.int(0, limiter.MaxTokens)}
	if l.Capacity == 0 {
		l.Unlimited = true
		return l
	}
	l.RefillAmount = r.int(1, limiter.MaxTokens)
	l.RefillPeriod = time.Duration(r.int(tokenbucket.MinPeriod, tokenbucket.MaxPeriod)) * time.Millisecond
	l.MaxDebt = r.int(limiter.NoDebt, limiter.MaxTokens)
	return l
}

// limits reads limits. Those that were read before are shared: most buckets have the same.
func (r *reader) limits(shared map[string]*limiter.Limits) *limiter.Limits {
	begin := r.buf
	all := make([]limiter.Limit, r.count())
	for i := range all {
		all[i] = r.limit()
	}
	if r.fault {
		return nil
	}
	text := begin[:len(begin)-len(r.buf)]
	if found, ok := shared[string(text)]; ok {
		return found
	}
	set, err := limiter.NewLimits(all...)
	if err != nil || set.Len() == 0 {
		r.fault = true
		return nil
	}
	shared[string(text)] = set
	return set
}

// someLimits reads limits, nil for none.
func (r *reader) someLimits() *limiter.Limits {
	if len(r.buf) > 0 && r.buf[0] == 0 {
		r.buf = r.buf[1:]
		return nil
	}
	return r.limits(make(map[string]*limiter.Limits))
}
