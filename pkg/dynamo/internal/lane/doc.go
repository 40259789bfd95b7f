// Package lane decides the requests of one process for one bucket item.
//
// All requests of a process for an item go through its lane. A lane is a state machine under
// a lock: a request arrives, a message ends, or a time comes. The lane then decides the
// requests that it can, and returns the messages to send. A decision changes the lane alone.
// The [Lanes] that own it carry out the rest: they start its goroutines and timers, and send
// its messages. No lock is held while a message is under way.
//
//	Arrive ──► queue ──► step ──► decided: from the lease, or denied by the last state
//	                      │
//	                      ├──► commuting write: one each pace, whatever is still out
//	                      ├──► exact write: alone, once nothing else is out
//	                      └──► read: when an answer needs a state that is newer than its request
//
// # Group commit
//
// A lane without a write under way sends at once, and requests that arrive meanwhile are
// joined into the next write. While a write is under way another one leaves each pace: 4
// ms, or 1.06 ms for each replica of the item where that is longer. Writes of takes,
// charges and refunds commute, so that none waits for another. A write that was refused
// brings the state that refused it, and its requests are planned anew at once. When tokens
// are short a lane puts no more than its own part of them into one write.
//
// # Denials
//
// A request is denied at once when the last state, refilled to now, does not have its
// tokens. Such a state is at most [Freshness] old. Tokens that other replicas gave back can
// be missed for that long. A peek is answered by a state that was asked for after the peek
// arrived.
//
// # Late decisions
//
// A caller's deadline ends its wait, and not the work. The lane then decides by its own
// estimate, see late.go. Requests admitted this way are booked later, in full.
//
// # Files
//
// A file uses those above it in this list.
//
//	state         lane.go, request.go, flight.go (a message under way), view.go (the last state), lease_state.go,
//	              tasks.go
//	process       config.go, host.go (shared by all lanes), identity.go, health.go
//	estimates     estimate.go, late.go
//	a request     lease_keep.go (a part of it from the lease), ends.go, lease_serve.go, arrival.go
//	messages      launch.go, exchange.go
//	due work      lease_write.go, maintain.go (splits and merges), lift.go, group.go, step.go
//	replies       saw.go (an image of the item), conclude.go
//	all lanes     table.go, lanes.go, runner.go (goroutines and timers), locks.go
//	calls         lease_calls.go (at once, from leases), deadline.go, leave.go, close.go
//
// The packages below need no lane: internal/pacing decides when a write may leave. internal/share
// computes the lane's part of scarce tokens. internal/usage has the consumption from leases until the
// item counts it.
package lane
