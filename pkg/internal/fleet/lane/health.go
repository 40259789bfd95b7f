package lane

import (
	"sync"
	"time"

	"github.com/ratelimit/ratelimit/pkg/internal/fleet/awsdb"
)

// silence is for how long no message may have a reply until DynamoDB counts as down.
const silence = awsdb.Silence

// health has the time since which DynamoDB has not answered. It is safe for
// concurrent use.
type health struct {
	mu      sync.Mutex
	waiting int           // messages under way
	longest time.Duration // that one of them may take
	since   time.Time     // of the oldest of them since the last reply; zero = none
	last    time.Time     // when a message ended
	looked  time.Time     // when a method was called last
	told    bool          // of the silence since then
}

// standstill is how late a message may be that has to end, on a busy machine. When all are later
// the machine or the process stood still: replies may wait to be read.
const standstill = silence / 4

// silenceGap is how long there may be no message under way within a silence. It is longer
// than a message waits to be sent again. After it the next message begins another one.
const silenceGap = silence / 2

// look notes that time has passed. A silence does not count the time for which the machine stood
// still: while messages are under way, one ends in the time that they may take.
func (h *health) look(now time.Time) {
	if passed := now.Sub(h.looked); h.waiting > 0 && passed > h.longest+standstill {
		h.since = h.since.Add(passed) // rule: a silence does not count a standstill
	}
	h.looked = now
}

// sent notes that a message leaves now, which may take so long.
func (h *health) sent(now time.Time, within time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.look(now)
	if h.waiting == 0 {
		h.longest = 0
	}
	h.longest = max(h.longest, within)
	if h.since.IsZero() || h.waiting == 0 && now.Sub(h.last) > silenceGap {
		h.since, h.told = now, false
	}
	h.waiting++
}

// ended notes that a message ended, with an answer of DynamoDB or without one.
func (h *health) ended(now time.Time, answered bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.look(now)
	h.waiting--
	h.last = now
	switch {
	case answered && h.waiting > 0:
		h.since, h.told = now, false
	case answered:
		h.since, h.told = time.Time{}, false
	}
}

// silent reports whether no message had an answer for so long that DynamoDB counts as down.
func (h *health) silent(now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.look(now)
	return h.lasts(now)
}

// lasts is silent with the lock held. Long after the last message it says nothing.
func (h *health) lasts(now time.Time) bool {
	if h.waiting == 0 && now.Sub(h.last) > silenceGap {
		return false
	}
	return !h.since.IsZero() && now.Sub(h.since) >= silence // rule: an outage is a second without a reply
}

// begins returns since when DynamoDB has been silent, once for each silence.
func (h *health) begins(now time.Time) (since time.Time, begins bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.look(now)
	begins = !h.told && h.lasts(now)
	h.told = h.told || begins
	return h.since, begins
}
