// Package lane decides the requests of one process for one bucket item.
//
// All requests of a process for an item go through its lane. A lane is a state machine
// under a lock: a request arrives, a message ends, or a time comes, and the lane decides
// what it can, and says which messages to send. No lock is held while a message is under
// way, and messages run in goroutines of the [Lanes] that own the lane.
//
//	Arrive ──► queue ──► step ──► decided: from the lease, or denied by the last state
//	                      │
//	                      ├──► commuting write: one each pace, whatever is still out
//	                      ├──► exact write: alone, once nothing else is out
//	                      └──► read: when an answer needs a state that is newer than its request
//
// # Group commit
//
// A lane without a write under way sends at once, and what arrives meanwhile is joined into
// the next write. While a write is under way another one leaves each pace: 4 ms, or 1.06 ms
// for each replica of the item where that is longer. Writes of takes, charges and refunds
// commute, so that none waits for another. A write that was refused brings the state that
// refused it, and its requests are planned anew at once. When tokens are short a lane puts
// no more than its own part of them into one write.
//
// # Denials
//
// A request is denied at once when the last state, refilled to now, does not have its
// tokens. Such a state is at most [Freshness] old. What other replicas gave back since then
// can be missed for that long. A peek is answered by a state that was asked for after the
// peek arrived.
//
// # Late decisions
//
// A caller's deadline ends its wait, and not the work. The lane then decides by its own
// estimate, see [Lane] in late.go. What is admitted so is booked later, in full.
package lane
