// Package lease is the part of a bucket that a replica decides in memory: a share of its
// rate and of its room, with tokens of its own. It is pure. It has no clock, lock, store
// or goroutine: times and random draws are arguments, and the caller's lock guards a
// [Holder].
//
// # Leases
//
// The rate and the room (the capacity) of each limit are cut into [Parts]. The bucket in
// the store is the centre: it has the parts that no holder has. A holder with k parts of
// the rate and b parts of the room is a token bucket of its own. Its parameters are those
// of the limit, scaled by [Scale]. It admits and denies in memory until the lease is
// renewed, returned, or over. It is over a [Term] after the time before the send of its
// last write, by the monotonic clock or by the wall clock. It is also over when the era of
// the clock changes.
//
// # Lease writes
//
// Each change of a lease is one write. It is planned on one serial number of the item,
// and is applied only if the item is still at that number. So the write is as if it was
// done at its plan. It is never sent twice. Until its outcome is known it makes a second
// candidate: a request is served only if every candidate covers it, and every candidate
// pays. New rate and new room count from the reply; given ones are gone from the plan.
// An image of the item with a greater serial number shows the outcome, by the sequence
// number of the slot.
//
// # States
//
//	state      served  write in flight  left by
//	None       no      no               grant sent → Granting; late grant seen → Held
//	Granting   no      first grant      applied → Held; refused or unanswered → None
//	Held       yes     no               renewal sent → Renewing; return sent → Returning
//	Renewing   yes     renewal          applied, refused or unanswered → Held
//	Returning  no      return           applied → None; refused → Held; unanswered → Unsettled
//	Unsettled  no      no               slot seen → Held; slot gone → None
//	Ended      no      no               grant sent → Granting; removal sent → Clearing; slot gone → None
//	Clearing   no      removal          applied → None; refused or unanswered → Ended
//
// A return without a reply is settled by the next image of the item: either it was applied, or
// the lease goes on with all its tokens. The end of the term leads from each state but None to Ended, and a slot that another
// replica removed to None. In Ended the slot may still be in the item, and so it may in
// None. The next lease write of the replica takes it over, or removes it, and counts its
// tokens as spent.
//
// # Shares
//
// Slots carry hints: the demand of their holder and the tokens that it has. From these
// each replica reckons its own max-min fair share. Hints and shares use floating point:
// they choose how much is asked for. Amounts are integers, and bounded by the tokens of the
// centre. So a wrong hint costs fairness and never a token.
package lease
