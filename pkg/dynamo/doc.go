// Package dynamo is the store for a fleet: buckets, entities, limits and the marks
// of settlements in one DynamoDB table, shared by every replica.
//
// # Exact and cheap
//
// Every change of a bucket is one conditional UpdateItem, planned from the state
// that this process saw last and applied only if DynamoDB finds that the plan
// still holds. So a steady decision costs one write and no read, and what others
// did meanwhile can only make a write fail, never admit too much. All requests
// for one bucket in a process go through its lane: at most one write is in
// flight there, and what arrives meanwhile is joined into the next (group commit),
// so that a hot bucket costs one write a round trip however many ask.
//
//	Take ──► lane of each bucket ──► plan ──► UpdateItem, condition: the plan holds
//	          queue, last state      │           ├─ applied: ALL_NEW is the next state
//	                                 │           └─ failed: ALL_OLD is the truth; plan again
//	                                 └─ nothing fits the truth: denied, no write
//
// # Shards
//
// One item takes about a thousand writes a second, whatever the table. A bucket that
// comes near that is split into shards, up to 32, each with its exact part of every
// limit, and made one again after a quiet time (internal/schema/shard.go). A process asks one shard
// first; when that has too little it takes a part from each that has some, so that no
// request is too large for a shard. Requests that meet there may each hold what the
// other needs: both can be denied then, where one bucket would have admitted one.
//
// # Settlements
//
// A reservation is settled once because its mark is put on the condition that there
// is none, by one PutItem of one write unit:
//
//	{ns}/SETTLED#{id}   #MARK    owner: of the settlement that won
//	                             ttl: its expiry and 3 hours, see markMargin
//	_/SECRET#{name}     #SECRET  secret, binary; created_at
//
// Marks are in no index, not even that of the namespace: an index would double their
// price, and they expire by themselves. So a purge leaves them, and lets nothing be
// settled again.
//
// # Leases
//
// A process takes tokens of an item in advance, as many as it will soon need, and
// serves requests from them in memory. They keep their place in the capacity until it
// reports them as spent: an item holds them in h, and refills up to what is left of
// the capacity. Each holder has a slot on the item. A write that changes leases rests
// on their slots' texts, and on rf and h as they were seen, so that it is done once;
// see leasestep.go for what it does in which order, and why.
//
// A lane holds the leases of its item (holder.go). A call whose ops are all covered is
// decided under the lanes' locks before anything else is done (leaseserve.go): child and
// parent together, and all children share their parent's lease. What is not covered is
// decided by the lanes, and what a large request lacks the write takes back for it. A
// lease is for the demand of half a second, or of up to a second on a bucket that is
// less asked for (demand.go), and at most a half of a fair share of what there is; there
// is none where less than two requests come in that time, where that share is worth
// fewer than four mean requests, or where a limit is in debt. It is renewed before it runs dry,
// beside those who are served.
//
// It is served for 5 s after the sending of the write that granted or renewed it, also
// when DynamoDB does not answer or the clock is not trusted any more; then by nobody.
// Who sees a slot unchanged for an eighth more, by its own clock, frees it with its next
// write. It is given back when it was not used for half of the time that it is for, when
// limits are newer, when its shard is to be split or merged, when an op's policy forbids
// leases, and at Close. A process whose limits change without its requests knowing
// finds out when it renews, half-way through the term, so within 5 s.
//
// What this costs: while tokens are out others can be denied what is not used of them,
// and what is spent of a lease is refilled only once it is reported, where the bucket is
// nearly full. A process that dies loses what it held until it is refilled. Where a bucket
// is empty a lane that has just denied asks for nothing for 50 ms, and may deny tokens that
// are refilled in that time (probe.go). The rest that an admitted
// call is told includes tokens that others took since the item was seen. A write in doubt
// that returned tokens stops the lease until the item shows the outcome.
//
// # Files
//
//	internal/schema                 keys of every record, one-to-one; records as items; expressions; the tree of shards
//	internal/awsdb                  clients that never retry, errors, the clock, the circuit breaker, goroutines and timers
//	internal/catalog                namespaces, entities, limits, audit events, settlements; the table created and checked
//	facade.go                       the names of those packages that users of this one need
//	item.go, write.go, swap.go      a bucket as an item; the conditional writes; those of other limits
//	request.go, plan.go, stage.go, adopt.go   what is asked of a bucket, and which write that makes of its last state
//	leaseslot.go, leasestep.go      leases on the item; what the write of a plan does to them
//	holder.go, demand.go            what a lane holds of its item; how much is worth holding
//	lease.go, leases.go             what lanes ask for, and learn of leases; when they give them back
//	leaseserve.go, probe.go         decisions from memory; denials without asking
//	lane.go, lanes.go               group commit of one bucket; the lanes of all
//	turn.go                         turns of replicas that refill the same bucket
//	store.go                        Take over several lanes, with give-back
//	settle.go                       settlements and secrets within the life of a store
//	shape.go                        the writes that change the tree of a bucket's shards
//	load.go, chore.go               when to split and to merge; what lanes do for their items
//	tree.go, spread.go              what this process knows of the trees; one op over several shards
//	giveback.go                     give-backs that wait for the end of an outage
//
// # Bucket items
//
// Attributes of a bucket item; names of limits stand in attribute names, which
// always go through placeholders:
//
//	PK                  {ns}/BUCKET#{entity}#{resource}#{shard}, and #{variant} behind the resource when it is not 0
//	SK                  #STATE
//	entity_id, resource the full names that the key has a hash of, up to 256 bytes; binary where they are not UTF-8
//	rf                  last refill of every limit, Unix ms, never moves back
//	cv, cg              hash and generation of the limits that the item is under
//	lw0 .. lw7          id of the last write of the replicas of that slot
//	lc0 .. lc7          id of the last charge or refund of the replicas of that slot
//	ls_{replica}        the lease of a process: "{id} {limit}={q} ...", q in millitokens to the base of 36
//	lt                  time of the last take, Unix ms
//	lvl, ep             level of the shard: the item has one part in lvl; its epoch, which every change of the tree raises
//	shard_count         the level, as a hint for other programs; only where it was split
//	be, pe{shard}       epochs at which the item was made, and the shards that were split from it
//	mv, rt              present while the other half of a split is not made; on a shard that is one no more
//	wcu                 write units used, by which shards are split and merged
//	wt                  id of the last that asked for a turn
//	fz, fu              until when limits that the item does not hold start empty, and their use then
//	ttl                 Unix s; not before every limit must be without use; none = after the year 9999, or one of several shards
//	b_{limit}_tk        balance in millitokens
//	b_{limit}_rm        remainder of the refill, 0 to rp-1
//	b_{limit}_cp, _ra, _rp, _fl   capacity, refill, period, debt floor of the whole bucket; no _fl = 10 capacities
//	b_{limit}_mv, _mc   tokens on the way to the other half of a split, and the use that it carries
//	b_{limit}_cu        use from a greater capacity that the balance carries; absent = none
//	b_{limit}_tc        net tokens consumed, for usage
//	b_{limit}_h         tokens out on lease, the sum of all slots; absent = 0
//	b_{limit}_un        1: the limit is unlimited, and has no balance
//	b_{limit}_dz        1: the limit is dormant, its last refill is in b_{limit}_rf
//	GSI2PK, GSI2SK, GSI3PK, GSI3SK, GSI4PK, GSI4SK   keys of indexes; no decision writes them
package dynamo
