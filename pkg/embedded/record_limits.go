package embedded

import (
	"encoding/binary"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// unlimited stands in place of the capacity of an unlimited limit.
const unlimited = -1

// maxAnchor is the greatest anchor of a calendar.
const maxAnchor = 31

// appendLimit appends a limit.
func appendLimit(buf []byte, l limiter.Limit) []byte {
	buf = appendText(buf, l.Name)
	if l.Unlimited {
		return binary.AppendVarint(buf, unlimited)
	}
	buf = binary.AppendVarint(buf, l.Capacity)
	buf = binary.AppendVarint(buf, l.RefillAmount)
	buf = binary.AppendVarint(buf, l.RefillPeriod.Milliseconds())
	buf = binary.AppendVarint(buf, l.MaxDebt)
	if !l.Windowed() {
		return buf
	}
	buf = append(buf, byte(l.Calendar.Unit), byte(l.Calendar.Anchor)) // #nosec G115 -- at most 31
	if l.IsInFlight() {
		return binary.AppendVarint(buf, int64(l.Calendar.MaxTime/time.Second))
	}
	return appendText(buf, l.Calendar.Zone)
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
	l := limiter.Limit{Name: r.Text(), Capacity: r.Int(unlimited, limiter.MaxTokens)}
	if l.Capacity == unlimited {
		l.Capacity, l.Unlimited = 0, true
		return l
	}
	l.RefillAmount = r.Int(0, limiter.MaxTokens)
	l.RefillPeriod = time.Duration(r.Int(0, tokenbucket.MaxPeriod)) * time.Millisecond
	l.MaxDebt = r.Int(limiter.NoDebt, limiter.MaxTokens)
	if l.RefillPeriod == 0 { // one with windows
		l.Calendar.Unit = limiter.CalendarUnit(r.Byte(byte(limiter.InFlight)))
		l.Calendar.Anchor = int(r.Byte(maxAnchor))
		if l.IsInFlight() {
			l.Calendar.MaxTime = time.Duration(r.Int(0, int64(limiter.MaxInFlight/time.Second))) * time.Second
		} else {
			l.Calendar.Zone = r.Text()
		}
	}
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
