package lane

import (
	"sync"
	"time"
)

// silence is for how long no message may have a reply until DynamoDB counts as down.
const silence = time.Second

// health knows since when DynamoDB has not answered. It is safe for concurrent use.
type health struct {
	mu      sync.Mutex
	waiting int       // messages under way
	since   time.Time // of the oldest of them since the last reply; zero = none
	last    time.Time // when a message ended
	told    bool      // of the silence since then
}

// silenceGap is how long there may be no message under way within a silence. It is longer
// than a message waits to be sent again. After it the next message begins another one.
const silenceGap = silence / 2

// sent notes that a message leaves now.
func (h *health) sent(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.since.IsZero() || h.waiting == 0 && now.Sub(h.last) > silenceGap {
		h.since, h.told = now, false
	}
	h.waiting++
}

// ended notes that a message ended, with an answer of DynamoDB or without one.
func (h *health) ended(now time.Time, answered bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
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
	return h.lasts(now)
}

// lasts is silent with the lock held. Long after the last message it says nothing.
func (h *health) lasts(now time.Time) bool {
	if h.waiting == 0 && now.Sub(h.last) > silenceGap {
		return false
	}
	return !h.since.IsZero() && now.Sub(h.since) >= silence
}

// begins returns since when DynamoDB has been silent, once for each silence.
func (h *health) begins(now time.Time) (since time.Time, begins bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	begins = !h.told && h.lasts(now)
	h.told = h.told || begins
	return h.since, begins
}
