package rls

import (
	"math"
	"sync/atomic"
	"time"
)

// peakWindow is half of the time for which a peak is remembered at most.
const peakWindow = 30 * time.Second

// peak is the greatest of the numbers of the last 30 to 60 seconds. In one word it has the
// number of a window, and the greatest of it and of the window before, in thousandths. The
// zero value has seen none. It is safe for concurrent use.
type peak struct{ word atomic.Uint64 }

// see notes a number in thousandths. It costs a look at one word unless it is the greatest.
func (p *peak) see(now time.Time, thousandths int64) {
	n := uint64(min(max(thousandths, 0), math.MaxUint16)) // #nosec G115 -- it is in the range
	for {
		old := p.word.Load()
		next := turned(old, peakWindowOf(now))
		if n > next>>16&math.MaxUint16 {
			next = next&^(math.MaxUint16<<16) | n<<16
		}
		if next == old || p.word.CompareAndSwap(old, next) {
			return
		}
	}
}

// at returns the greatest number in thousandths, 0 when none was seen for a minute.
func (p *peak) at(now time.Time) int64 {
	word := turned(p.word.Load(), peakWindowOf(now))
	return int64(max(word>>16&math.MaxUint16, word&math.MaxUint16)) // #nosec G115 -- 16 bits
}

// turned is the word in a window: the window before gives it its number once. A clock that
// went back stays in the later window.
func turned(word, window uint64) uint64 {
	switch at := word >> 32; {
	case window <= at:
		return word
	case window == at+1:
		return window<<32 | word>>16&math.MaxUint16
	default:
		return window << 32
	}
}

func peakWindowOf(now time.Time) uint64 {
	return uint64(max(now.UnixNano(), 0)/int64(peakWindow)) & math.MaxUint32 // #nosec G115 -- 0 or above
}
