package dynamo

// Leases change only by writes that also refill: rf is pinned and moved to now, h is
// pinned for every limit whose h changes, and each slot that changes is pinned by its
// text. So what such a write does to leases is done once, and a copy that arrives
// late is refused: the text has changed, and never comes back.
//
// In the write's stage the order is
//
//	refill   under the h that was seen: what leases hold keeps its place in the capacity
//	close    own lease: what was spent is reported (h falls, tokens stay), what goes
//	         back is returned (h falls, tokens rise); leases of the dead: all spent
//	requests with the room that there is now
//	grant    tokens fall, h rises by as much
//
// so that tokens and h together are never above the capacity, and what holders can
// still give never above h.

// leaseAsk is what a lane wants done to leases by its next write, set on its
// knowledge before each plan. The zero value asks for nothing, and the plan is then
// the same as if there were no leases.
//
// A step is left out of a plan, whose step is then nil: while the clock is doubtful,
// for a bucket without an item, by a write that puts the bucket under other limits
// (save that a return of all of the own lease goes before it, as a write of its own),
// and when own is not what the view has in the slot of the replica.
type leaseAsk struct {
	replica string // whose slot is the own one: the Store's, in every item
	id      string // of the lease that the write leaves; no other of the replica ever has it; without ' '
	// now is the clock at which leases are asked for, Unix ms, not corrected: the time
	// of a write that no request brings a time for. 0 = that of the requests so far.
	now int64
	// forced has a write be made for the step, also without requests, and be a refill.
	// Without, the step is done only by a write that is a refill for its requests.
	forced bool
	own    *ownLease // what the lane holds, and does with it; nil = it holds nothing
	// dead are holdings of other replicas to be freed, all of them counted as spent.
	// One whose text is not that of the view any more is left alone.
	dead []holding
	// size says how much is to be granted, given the millitokens that each limit that
	// is not dormant has after the requests of the write (below 0: it is in debt), in
	// order of the limits' names; in the same order, or nil for nothing. More than
	// there is is not granted. nil = nothing. It is not called when own is nil and the
	// view still has a slot of the replica.
	size func(left []amount) []amount
}

// ownLease is what the holder of a lease reports and returns of it. A holder that
// returns what is left serves nothing from it from before the plan is made, until
// the write is known not to have been applied and its slot has another text. One that
// only reports serves on, from what it does not return.
type ownLease struct {
	text  string   // of the slot: that of the step that granted it
	spent []amount // served from the lease and not yet reported, by limit
	back  []amount // returned, by limit; with what is spent at most what the slot has
}

// leaseStep is what a plan's write does to leases, once it is applied: then the own
// slot has the text of held. As long as it is unknown whether it was applied, the
// holder may neither count on what is granted nor on what was returned; an image
// whose own slot has held's text says that it was, see ownLease for the rest.
type leaseStep struct {
	replica string
	seen    string    // text of the own slot that the write rests on; "" = there is none
	held    holding   // the own lease after the write; without text = none
	granted []amount  // of what held has: new, by limit, each above 0
	dead    []holding // freed
}
