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
// # Words
//
// These are all that a reader has to know of the package. Each is a type, or a state of a request:
//
//	item        one shard of a bucket in the table
//	Lane        the way of all requests of this process for one item
//	Request     one op's part of a call on one item
//	message     a read or a write under way
//	batch       the requests of one write
//	channel     the place in the item where a take leaves the id of its write
//	view        the item as the newest reply showed it
//	estimator   the tokens that this process may count on, of a view and what is under way
//	Pace        when the next write may leave
//	Peers       the other replicas of an item
//	Share       this replica's part of the tokens, where they are short
//	owed        an admitted or charged request that no write has booked yet
//	stray       a write of which a copy was refused, while another one may be applied
//	turns       for a round trip the others hold their plain writes, so that an exact one is applied
//	task        maintenance of the item: a split, a merge
//	leasing     the lease of a lane, as group commit sees it
//	held        the lease itself, of package lease
//	part        the tokens that a lease keeps for a large request
//	Ledger      consumption from a lease that the item does not count yet
//	Counters    the work and the losses of all lanes, for metrics
//
// # Group commit
//
// A lane without a write under way sends at once, and requests that arrive meanwhile are
// joined into the next write. While a write is under way another one leaves each pace: 4
// ms, half a round trip, or 1.06 ms for each replica of the item, the longest of them. Writes of takes,
// charges and refunds commute, so that none waits for another. A write that was refused
// brings the state that refused it, and its requests are planned anew at once. When tokens
// are short a lane puts no more than its own part of them into one write.
//
// # Denials
//
// A request is denied at once when the last state, refilled to now, does not have its
// tokens. Such a state is at most [Freshness] old. Tokens that other replicas gave back can
// be missed for that long. Where tokens are short, a request is denied by its lane's part of
// them if no later write can answer it before its deadline. A peek is answered by a state
// that was asked for after the peek arrived.
//
// # Requests
//
//	state       is          left by
//	created     in no lane  entered → waiting, ended → over
//	promised    in no lane  entered → owed
//	waiting     queued      entered → waiting, written → sent, ended → over
//	sent        in a write  refused → waiting, abandoned → sentLeft, admittedLate → sentOwed, deniedLate → sentDenied, ended → over
//	sentLeft    in a write  abandoned → sentLeft, ended → over
//	sentDenied  in a write  refused → owed, ended → over
//	sentOwed    in a write  refused → owed, ended → over
//	owed        queued      entered → owed, written → sentOwed, ended → over
//	over        its caller  ended → over
//
// A caller makes a request. The lane makes those for tokens that it owes. A request is entered again in
// the lane of another shard. A caller that leaves without a decision abandons its request. A caller whose
// deadline has passed is admitted late, or denied late. A write may take tokens for a request that was
// denied late. They are given back. The same goes for an abandoned request, unless its caller is admitted
// all the same. An event that cannot happen ends the request with an unknown outcome, and is logged.
//
// # Messages
//
// Each kind of message is a type, which sends and concludes itself:
//
//	read        the item; sent again for as long as its plan lasts
//	write       of requests, commuting or exact; sent until its outcome is known, then the item is read for it
//	leaseWrite  the lease of the lane, or the end of one of another replica; sent once
//	shardWrite  a split, a merge, limits of another shard; sent once
//	turnWrite   asks other replicas for a turn; sent once
//	making      makes the item of another shard; sent once
//	peeking     reads the item of another shard; sent once
//
// # Late decisions
//
// A caller's deadline ends its wait, and not the work. The lane then decides by its own
// estimate, see late.go. Requests admitted this way are booked later, in full. Those that come
// within 100 ms are one request: a step goes through the queue, and takes no longer the more it owes.
//
// # Overload
//
// A server with one thread has a bound of messages under way, for all lanes, which follows its round trips.
// A lane above it waits for its turn, and plans its message only then. Its callers are decided late meanwhile.
// Many buckets with few requests each need that: the pace of a lane bounds its own messages alone.
//
// # Files
//
// A file uses only files of the lines above it, and of its own line:
//
//	pacing_load, pacing_pace, pacing_peers, shortage, usage_ledger   arithmetic, which needs no lane
//	site, set, tally, request_state, request                         requests
//	predecessors, config, identity, errors, health, crowding, host   the process, and turns to send
//	message, batch, channel, view, tasks                             messages under way, the last state
//	leasing, lease_state, lane_parts                                 the lease, as others see it; the state of a lane
//	estimate, late                                                   estimates
//	usage, ends, strays                                              the end of a request, and of its usage
//	launch, exchange, read, write, turn, maintain                    messages; splits and merges
//	lease_keep, lease_listing, lease_look, lease_write, lease_serve  the lease
//	planner, lane, arrival, group, image, depart, step               a lane
//	table, lanes, runner, locks                                      all lanes, their goroutines and timers
//	lease_calls, deadline, leave, outdate, handover, close           calls
//
// # Pacing
//
// The pacing files decide how fast a lane may go: when its next write may leave, how many other
// replicas use its item, and how busy the item is.
//
// All of it is arithmetic on replies and times that are given. It has no clock and no lock.
//
// # Usage
//
// A [Ledger] keeps the consumption that a lease serves in memory until a write counts it in the item. Each
// lease write reports the consumption since the last report that was applied. The rest of a lease that is
// over goes into a request of its own, which any write of the item can carry out.
//
// A report counts once. Where a lease write has no reply, an image of the item shows its outcome. Until
// then its report is neither dropped nor made again.
//
// # Share
//
// A [Share] gives a replica its part of the tokens of an item where they are short. Replicas that
// each take all tokens that they see would refuse each other's writes.
//
// All of it is arithmetic on a state that is given. It has no clock and no lock.
package lane
