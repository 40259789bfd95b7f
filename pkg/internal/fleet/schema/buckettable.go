package schema

import (
	"slices"
	"strings"

	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// Attributes of a bucket's item that attribute.go does not have.
//
//	n              number of writes of the item
//	ep             epoch: rises with each write that changes anything but balances, ids of writes, times and slots of leases
//	cv, cg         hash and generation of the limits that the item is under
//	at             latest plan of an exact write, Unix ms
//	lt             latest plan of a take or charge, Unix ms; absent = none
//	lw0 .. lw7     binary: id of the last take of the replicas of that slot; lw0a .. lw7c of others that were under way beside it
//	lc0 .. lc7     binary: id of the last charge, refund or exact write of the replicas of that slot
//	kc, bc         parts of the rate and of the room that no lease has, of 1000; absent = all
//	kt             offset of the clock K(t) = kc·t + kt; absent = 0
//	ls             binary: the leases, 12 bytes each; absent = none. kc, kt, bc and ls are there together
//	lvl            level of the shard: the item has one part in lvl
//	shard_count    the level, as a hint for other programs; only where it was split
//	be, pe{shard}  epochs at which the item was made, and the shards that were split from it
//	mv, ma         1, and the time of a split, Unix ms, while its other half is not made
//	rt             1: the shard is retired
//	wcu            write units used
//	wt             binary: the turn that a replica asked for, as two bytes of milliseconds and the id of the write; absent = none
//	nv             generation of limits that wait for the leases to end; absent = none
//	fz, fu         until when limits that the item does not hold start empty, Unix ms, and their use then
//	ttl            Unix s, when no limit has use; absent = never
//
// Of one limit, b_{limit}_ and:
//
//	v              point of a·K at which the limit is full, in units of 1/(1000·period) millitoken; a is _ra in millitokens
//	cp, ra, rp     capacity and refill in millitokens, period in ms, of the whole bucket
//	fl             debt floor in millitokens; absent = -10 capacities
//	cu             use from a greater capacity that the balance carries at v, millitokens; absent = none
//	tc             net millitokens consumed, for usage; absent = 0
//	un             1: the limit is unlimited, and has none of the others
//	dz             1: the limit is dormant; its clock is K(t) = 1000·t
//	mv, mc         millitokens on the way to the other half of a split, and the use that it carries
//
// Beside them are the keys of the table and its indexes, and entity_id and resource: the
// names that the key has a hash of, up to 256 bytes; binary where they are not UTF-8.
const (
	AttrSerial  = "n"
	AttrAt      = "at"
	AttrRate    = "kc"
	AttrOffset  = "kt"
	AttrRoom    = "bc"
	AttrLeases  = "ls"
	AttrPending = "nv"
	AttrMovedAt = "ma"

	LimitFullAt = "v" // of one limit
)

// defaultFloor is the debt floor of a limit that does not say: items leave it out.
func defaultFloor(p tokenbucket.Params) int64 {
	return limiter.Limit{Capacity: p.Capacity / limiter.Milli}.DebtFloor()
}

// SortBalances puts limits in order of their names.
func SortBalances(all []Balance) {
	slices.SortFunc(all, func(x, y Balance) int { return strings.Compare(x.Limit.Name, y.Limit.Name) })
}
