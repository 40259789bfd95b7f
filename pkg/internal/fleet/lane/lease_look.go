package lane

import "time"

// The state of the item is read again while a lease is served, or the outcome of its return is not known:
// others ask for the lease in the item, and wait for its return.
const (
	lookRequests = 12                     // a lease serves about as many between two reads
	lookLeast    = 60 * time.Millisecond  // the least time between them; two round trips where that is more
	lookMost     = 500 * time.Millisecond // the longest, where few requests come
)

// lookEvery returns how old the state of the item may be at a time, for a round trip. A busy lease sees soon
// that another replica asks for it, and its reads stay few for each decision.
func (h *held) lookEvery(at int64, doubtful bool, trip time.Duration) time.Duration {
	if doubtful { // the time of the demand stands still
		return lookMost
	}
	every := lookRequests / max(h.holder.Lately(at), 1e-3) // ms // rule: a busy lease is looked at often
	return min(max(time.Duration(every*float64(time.Millisecond)), lookLeast, 2*trip), lookMost)
}

// awaited reports whether the return of the lease is waited for: by another replica, for a change of the
// limits, or for newer ones of this replica.
func (h *held) awaited(at int64, now time.Time, newer bool) bool {
	return h.holder != nil && h.holder.Returns() && (newer || h.holder.Asked(at) || h.change.waits(now))
}

// together reports whether another replica asks for all leases at a time, and each holder sees that before those
// that have returned theirs write again. trip is a round trip.
func (h *held) together(at int64, trip time.Duration) bool {
	return h.holder != nil && h.holder.Asked(at) && mostYield*trip >= lookLeast
}

// settle notes whether the outcome of the last return is open. Other writes may show it: a turn comes after a
// while alone, and at the end at once.
func (h *held) settle(open, closing bool, now time.Time) {
	switch {
	case !open:
		h.settles = time.Time{}
	case h.settles.IsZero():
		h.settles = now
		if !closing {
			h.settles = now.Add(lookMost)
		}
	case closing && h.settles.Sub(now) > leaseRetry:
		h.settles = now
	}
}
