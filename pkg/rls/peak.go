package rls

import (
	"math"
	"sync/atomic"
	"time"
)

// peakWindow is half of the longest time for which a peak counts.
const peakWindow = 30 * time.Second

// peak is the largest of the numbers of the last 30 to 60 seconds. One word has the number of a
// window, its largest number and that of the window before it, in thousandths. The zero value has
// none. It is safe for concurrent use.
type peak struct{ word atomic.Uint64 }

// note adds a number in thousandths. It costs a load of one word, unless the number is the largest.
func (p *peak) note(now time.Time, thousandths int64) {
	n := uint64(min(max(thousandths, 0), math.MaxUint16)) // #nosec G115 -- it is in the range
	for {
		old := p.word.Load()
		next := inWindow(old, peakWindowOf(now))
		if n > next>>16&math.MaxUint16 {
			next = next&^(math.MaxUint16<<16) | n<<16
		}
		if next == old || p.word.CompareAndSwap(old, next) {
			return
		}
	}
}

// at returns the largest number in thousandths, 0 when there was none for a minute.
func (p *peak) at(now time.Time) int64 {
	word := inWindow(p.word.Load(), peakWindowOf(now))
	return int64(max(word>>16&math.MaxUint16, word&math.MaxUint16)) // #nosec G115 -- 16 bits
}

// inWindow returns the word for a window. It takes over the largest number of the window just
// before. When the clock went back, the later window stays.
func inWindow(word, window uint64) uint64 {
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
