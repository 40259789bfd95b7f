// Package dynamo is the store for a fleet: buckets, entities, limits and the marks
// of settlements in one DynamoDB table, shared by every replica.
//
// # Exact and cheap
//
// Every change of a bucket is one conditional UpdateItem, planned from the state that
// this process saw last. A steady decision costs one write and no read. The balance of a
// limit is one number that requests add to, so that writes of several processes commute:
// the condition holds while the tokens are there. All other changes rest on the item's
// serial number, and are planned anew when another write came between. All requests of a
// process for one item go through its lane, and those that wait are joined into one write
// (group commit).
//
//	Take ──► lane of each shard ──► plan ──► UpdateItem, condition: the plan holds
//	          queue, last state      │           ├─ applied: ALL_NEW is the next state
//	             │                   │           └─ refused: ALL_OLD is the state; plan again
//	             │                   └─ the state lacks the tokens: denied, no write
//	             └─ the lease has them, or lacks them: decided in memory
//
// # Late decisions
//
// The caller's deadline ends its wait, and not the write. The call is then decided by an
// estimate of this process, marked in Op.Late, and its take is written later, in full.
// ErrUnavailable is for outages: the circuit breaker is open, or no message was answered
// for a second.
//
// # Shards
//
// One item takes about a thousand writes a second, in any table. A bucket that comes near that is
// split into shards, up to 32, each with its exact part of every limit. After a quiet time they are
// merged (steps: shard.go of package schema; when: tend.go of package engine). A process asks one shard first. When that has too little it
// takes a part from each that has some, so that no request is too large for a shard. Requests that
// meet there may each hold tokens that the other needs. Both can be denied then, where one bucket
// would have admitted one.
//
// # Settlements
//
// A reservation is settled once because its mark is put on the condition that there
// is none, by one PutItem of one write unit:
//
//	{ns}/SETTLED#{id}   #MARK    owner: of the settlement that won
//	                             ttl: its expiry and 3 hours, see markMargin of package schema
//	_/SECRET#{name}     #SECRET  secret, binary; created_at
//
// Marks are in no index, not even that of the namespace: an index would double their
// price, and they expire by themselves. So a purge leaves them, and lets nothing be
// settled again.
//
// # Leases
//
// A process leases a share of an item: a part of its rate and a part of its room, with tokens
// in it. A lease is a token bucket of its own, and decides in memory. Shares follow the
// demand, max-min fair. A lease ends 5 s after its last write was sent, by the wall clock or
// by the monotonic one. Other processes free a lease that stayed unchanged for an eighth
// more, and count it as spent. A lease is returned when it is idle, when limits change, and
// when its shard is split or merged. It is also returned at Close, and when an op's policy
// forbids leases.
//
// # Packages
//
// The packages of pkg/internal/fleet need no more of DynamoDB than its calls on items:
//
//	awsdb    clients that never retry, errors, the clock, the circuit breaker, goroutines and timers
//	schema   keys and attributes of every record; records as items; the tree of shards
//	catalog  namespaces, entities, limits, audit events, budgets, settlements; the table created and checked
//	plan     pure: a state of an item and requests make a write; the meaning of a reply
//	lease    pure: the life of a lease, the demand, the shares
//	lane     the requests of one process for one item; when a shard is split
//	engine   calls over several buckets, and over the shards of one: Take; balances of operators; the store
//
// Package engine puts the [Store] together of them.
//
// # Change stream
//
// [Stream] is the stream of the table as package aggregator reads it. Records of other items than
// buckets are passed on without their content. So the secrets of reservations and the entities of a
// table get into no log of an aggregator.
//
// # Bucket items
//
// Attributes of a bucket item; names of limits stand in attribute names, which
// always go through placeholders:
//
//	PK                  {ns}/BUCKET#{entity}#{resource}#{shard}, and #{variant} behind the resource when it is not 0
//	SK                  #STATE
//	entity_id, resource the full names that the key has a hash of, up to 256 bytes; binary where they are not UTF-8
//	n                   serial number: every write adds 1
//	ep                  epoch: raised by each write that changes anything but the balances
//	at                  plan time of the last write that rests on n, Unix ms, never moves back
//	cv, cg              hash and generation of the limits that the item is under
//	lw0 .. lw7          id of the last take of the replicas of that slot; lw0a .. lw7c of those that were under way beside it
//	lc0 .. lc7          id of the last charge or refund of the replicas of that slot
//	ls                  leases, packed: replica, sequence, rate, room, and hints of demand and stock
//	kt, kc, bc          the part of rate and room that is not leased, and since when; absent = nothing is leased
//	lt                  time of the last take, Unix ms
//	lvl                 level of the shard: the item has one part in lvl
//	be, pe{shard}       epochs at which the item was made, and the shards that were split from it
//	mv, rt              present while the other half of a split is not made; on a retired shard
//	shard_count         on the first shard: a hint how many there are
//	wt                  the turn that a replica asked for, before an exact write
//	fz, fu              limits that the item does not hold start empty until fz; the greatest use of those forgotten
//	wcu                 write units used, by which shards are split and merged
//	ttl                 Unix s; not before every limit must be without use; none = after the year 9999, or one of several shards
//	b_{limit}_v         use in virtual time: 1/(1000 rp) millitokens; the balance is the lead of the refill over it
//	b_{limit}_cp, _ra, _rp, _fl   capacity, refill, period, debt floor of the whole bucket; no _fl = 10 capacities
//	b_{limit}_cu        use from a greater capacity that the balance carries; absent = none
//	b_{limit}_mv, _mc   tokens and carried use on the way to the other half of a split
//	b_{limit}_tc        net tokens consumed, for usage
//	b_{limit}_un        1: the limit is unlimited, and has no balance
//	b_{limit}_dz        1: the limit is dormant
//	GSI2PK, GSI2SK, GSI3PK, GSI3SK, GSI4PK, GSI4SK   keys of indexes; no decision writes them
package dynamo
