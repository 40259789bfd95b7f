package lane

import "time"

// leasing is the lease of a lane as the rest of the lane sees it: group commit needs no more of it, and
// works without any. All calls are under the lane's lock.
type leasing interface {
	// serve decides a request, if the lease can. due says that a write of the lease is due.
	serve(r *Request, now time.Time) (s served, due bool)
	// answer adds the tokens of the lease to a decision of the item, those kept for the request included.
	answer(r *Request)
	// release ends the part that the lease keeps for a request: spent, or free again.
	release(r *Request, spent bool)
	// seen takes in the last state of the item.
	seen(now time.Time)
	// due does the work that is due. It returns the message to send, nil for none, and whether nothing
	// else may be sent before.
	due(now time.Time) (m message, waits bool)
	// missed takes in that a message brought no image.
	missed(m miss, now time.Time)
	// cede has the lease returned for a change of the limits.
	cede()
	// leave forgets the lease: the shard is gone.
	leave()
}

// served is how far a lease serves a request.
type served uint8

const (
	byItem   served = iota // the item decides it
	byLease                // it has an end
	byUpdate               // it waits for a write of the lease, which goes on serving
	byGrant                // it waits for a lease
)

// miss is a message that brought no image.
type miss uint8

const (
	missedRead    miss = iota
	notApplied         // a write of a lease or a shard, or it was not sent in an outage
	perhapsMissed      // the same, and it may have been applied: the item is read
)

// missOf returns the miss of a write.
func missOf(perhaps bool) miss {
	if perhaps {
		return perhapsMissed
	}
	return notApplied
}
