// Package clocktest has machines for tests, whose wall clock and monotonic clock
// disagree: one that sleeps, is paused, or has its time set. [Pause] waits by the real clock.
package clocktest

import (
	"context"
	"time"
	"unsafe"
)

// Machine is a machine's clock. It is not safe for concurrent use.
type Machine struct {
	Wall int64 // Unix ns
	Mono int64 // ns, above 0
}

// Now returns the time that the machine shows.
func (m *Machine) Now() time.Time { return At(m.Wall, m.Mono) }

// Pass lets time go by, on both clocks.
func (m *Machine) Pass(d time.Duration) { m.Wall, m.Mono = m.Wall+int64(d), m.Mono+int64(d) }

// Set moves the wall clock alone: the machine's time is set, or it sleeps for d.
func (m *Machine) Set(d time.Duration) { m.Wall += int64(d) }

// At returns a time that shows wall, in Unix ns, and by which mono, in ns, have passed
// on the monotonic clock. The package time has no way to make one.
func At(wall, mono int64) time.Time {
	const (
		hasMonotonic = 1 << 63
		from1885     = 2_682_288_000 // seconds to 1970
		nanos        = 30            // bits
	)
	t := time.Now()
	raw := (*struct { // as package time has it
		wall uint64
		ext  int64
	})(unsafe.Pointer(&t)) // #nosec G103 -- of a variable of its own
	raw.wall = hasMonotonic | uint64(wall/1e9+from1885)<<nanos | uint64(wall%1e9) // #nosec G115 -- a time from 1970 to 2157
	raw.ext = mono
	return t
}

// Pause waits for d or until ctx ends, and reports which.
func Pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
