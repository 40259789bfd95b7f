package aggregator

import (
	"sync"
	"time"
)

// Patience is how long calls of a poller may fail before it is not ready. Its loop may hang for as long
// before it is not alive.
const Patience = 3 * time.Minute

// health is how far the shards of a process are done, and which of its calls fail. Calls that are for no shard, or for
// one that the process does not work on, have the name "".
type health struct {
	mu      sync.Mutex
	looped  time.Time            // when the loop of the poller last went on
	listed  bool                 // the shards of the stream have been listed
	faulty  bool                 // a call of this round for no shard has failed
	reached map[string]time.Time // by shard that this process works on: records up to then are done
	failing map[string]failure   // by shard
}

// failure is a call that fails again and again.
type failure struct {
	since time.Time
	call  string
	err   error // of the latest
}

func newHealth() *health {
	return &health{looped: time.Now(), reached: make(map[string]time.Time), failing: make(map[string]failure)}
}

// begin notes that a round of the poller begins.
func (h *health) begin() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.looped, h.faulty = time.Now(), false
}

// loop notes that a round goes on.
func (h *health) loop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.looped = time.Now()
}

// end notes that a round has ended, and whether the shards were listed. Without a call that failed its failures are over.
func (h *health) end(listed bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.looped, h.listed = time.Now(), h.listed || listed
	if listed && !h.faulty {
		delete(h.failing, "")
	}
}

// reach notes that the records of a shard are done up to a time; zero = it is not known.
func (h *health) reach(shard string, at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !at.IsZero() {
		h.reached[shard] = at
	}
}

// behind notes that a record of a time is not done.
func (h *health) behind(shard string, at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !at.IsZero() && at.Before(h.reached[shard]) {
		h.reached[shard] = at
	}
}

// leave forgets a shard: the work on it has ended.
func (h *health) leave(shard string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.reached, shard)
	delete(h.failing, shard)
}

// fail notes a call that failed.
func (h *health) fail(shard, call string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f := failure{time.Now(), call, err}
	if before, ok := h.failing[shard]; ok {
		f.since = before.since
	}
	h.failing[shard] = f
	h.faulty = h.faulty || shard == ""
}

// succeed notes that the calls for a shard succeed again.
func (h *health) succeed(shard string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.failing, shard)
}

// oldest returns the time up to which all shards of the process are done; zero = it has none.
func (h *health) oldest() (oldest time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, at := range h.reached {
		if oldest.IsZero() || at.Before(oldest) {
			oldest = at
		}
	}
	return oldest
}
