package schema

import (
	"github.com/ratelimit/ratelimit/pkg/limiter"
	"github.com/ratelimit/ratelimit/pkg/tokenbucket"
)

// Parts is the number of parts that the rate and the room of a bucket are cut into.
const Parts = 1000

// Bucket is the state of a bucket's item, as one reply showed it or as a write leaves
// it. It is never changed: a write of a plan makes another one.
//
// The item is the centre of the bucket. It has the parts of the rate and of the room
// that no lease has. A limit has a refill of Amount millitokens in Period ms: Amount
// units in each ms for each part of the rate. A unit is 1/(Period·Parts) millitoken. The
// clock of the centre is K(t) = Rate·t + Offset. A limit is full when Amount·K(t)
// reaches its FullAt, and lacks the difference before.
type Bucket struct {
	// Serial rises by one with each write; 0 = there is no item.
	Serial int64
	// Shard is the item's place in the tree of shards. Its epoch rises with each write that
	// changes anything but balances, ids of writes, times, and slots of leases: all that a
	// commuting write rests on.
	Shard   Shard
	MovedAt int64 // when the split was planned whose other half is not made yet, Unix ms

	Window  limiter.Window // of the bucket
	Version Version
	Limits  *limiter.Limits // that the bucket is under
	At      int64           // latest plan of an exact write, Unix ms
	Taken   int64           // latest plan of a take or charge, Unix ms; MinTime = none
	Line    Line
	Leases  []Lease // in order of the replicas
	Pending uint64  // generation of limits that wait for the leases to end; 0 = none
	Slots   [SlotCount]Takes
	Booked  [SlotCount]WriteID // ids of the last charges and refunds
	Turn    Turn               // the last that a replica asked for, since the last exact write
	Forgotten
	TTL      int64     // Unix s; 0 = none
	Balances []Balance // of the limits that are not unlimited, and the dormant ones; by name
	Free     []string  // names of the unlimited limits, by name
	Size     int       // bytes of the item as DynamoDB counts them
}

// Balance is the state of one limit.
type Balance struct {
	Limit   limiter.Limit
	Whole   tokenbucket.Params // of the limit
	Share   tokenbucket.Params // of this shard
	Floor   int64              // lowest balance that charges lead to, 0 or below; of this shard
	FullAt  Units              // point of Amount·K at which the limit is full
	Carried int64              // use from a greater capacity, at FullAt; below 0 tokens above the capacity, see Extra; millitokens
	Dormant bool               // not among the limits that the bucket is under; its clock is that of an item without leases
	Moving  int64              // millitokens on the way to the other half of a split; below 0 as a lowered quota counts its use
	Aside   int64              // use that the other half carries
}

// Extra returns the millitokens above the capacity, 0 or more. While there are any, the limit is full.
func (b *Balance) Extra() int64 { return max(-b.Carried, 0) }

// Line is the part of the rate and of the room that the centre has, and its clock.
type Line struct {
	Rate   int   // parts of the rate, 0 to Parts
	Room   int   // parts of the room, 0 to Parts
	Offset int64 // of the clock: K(t) = Rate·t + Offset
}

// WholeLine is the line of an item without leases.
func WholeLine() Line { return Line{Rate: Parts, Room: Parts} }

// Forgotten stands for dormant limits that were too many, see limiter.Op. Its amounts
// are those of the shard's share.
type Forgotten struct {
	Until int64 // when the last of them would be without use, Unix ms
	Use   int64 // the greatest when they were forgotten, in millitokens; 0 = there is none
}

// Lasts reports whether a limit of which nothing is known may have use at now.
func (f Forgotten) Lasts(now int64) bool { return f.Use > 0 && f.Until > now }

// With returns the one that stands for both.
func (f Forgotten) With(g Forgotten) Forgotten {
	switch {
	case f.Use == 0:
		return g
	case g.Use == 0:
		return f
	}
	return Forgotten{Until: max(f.Until, g.Until), Use: max(f.Use, g.Use)}
}

// NewBucket returns the state of a bucket that has no item: full, under these limits.
func NewBucket(limits *limiter.Limits, generation uint64, now int64) *Bucket {
	b := &Bucket{
		Version: Version{generation, limits.Hash()}, Limits: limits, Shard: WholeBucket(now),
		At: now, Taken: MinTime, Line: WholeLine(),
	}
	for i := range limits.Len() {
		if l := limits.At(i); l.Unlimited {
			b.Free = append(b.Free, l.Name)
		} else {
			b.Balances = append(b.Balances, b.Shard.NewBalance(l, now))
		}
	}
	return b
}

// In returns the state as that of a bucket of a window.
func (b *Bucket) In(w limiter.Window) *Bucket {
	b.Window = w
	return b
}

// WindowTTL is the ttl of each item of a window's bucket; 0 = the bucket is for all time.
func (b *Bucket) WindowTTL() int64 {
	return min(b.Window.KeptUntil(), MaxTTL)
}

// NewBalance returns a full balance of the shard's share of a limit, on a whole line.
func (s *Shard) NewBalance(l limiter.Limit, now int64) Balance {
	whole := l.Params()
	b := Balance{Limit: l, Whole: whole, Share: s.Share(whole), Floor: s.Floor(l.DebtFloor())}
	b.FullAt = b.Refilled(WholeLine(), now)
	return b
}

// Refilled returns Amount·K(t).
func (b *Balance) Refilled(line Line, t int64) Units {
	return Product(b.Share.Amount*int64(line.Rate), t).Add(Product(b.Share.Amount, line.Offset))
}

// Exists reports whether there is an item.
func (b *Bucket) Exists() bool { return b.Serial > 0 }

// writeUnit is how many bytes of an item one write unit of DynamoDB pays for.
const writeUnit = 1024

// WriteUnits returns how many write units a write of the item takes.
func (b *Bucket) WriteUnits() int64 { return int64(b.Size+writeUnit-1) / writeUnit }

// Newer reports whether the state is of a later time than another one of the same item.
func (b *Bucket) Newer(than *Bucket) bool {
	if b.Shard.Epoch != than.Shard.Epoch {
		return b.Shard.Epoch > than.Shard.Epoch
	}
	return b.Serial > than.Serial
}

// Time is the latest time that a write of the item was planned at, as far as the item
// shows. No write is planned at an earlier one.
func (b *Bucket) Time() int64 { return max(b.At, b.Taken) }

// Find returns the index of a limit that is not dormant, or -1.
func (b *Bucket) Find(limit string) int {
	for i := range b.Balances {
		if b.Balances[i].Limit.Name == limit && !b.Balances[i].Dormant {
			return i
		}
	}
	return -1
}

// Any returns the balance of a limit, dormant or not, or nil.
func (b *Bucket) Any(limit string) *Balance {
	for i := range b.Balances {
		if b.Balances[i].Limit.Name == limit {
			return &b.Balances[i]
		}
	}
	return nil
}

// LineOf returns the line that a limit is refilled by.
func (b *Bucket) LineOf(limit *Balance) Line {
	if limit.Dormant {
		return WholeLine()
	}
	return b.Line
}

// Leased reports whether parts of the bucket are on lease.
func (b *Bucket) Leased() bool { return len(b.Leases) > 0 }

// Holders returns how many leases have parts.
func (b *Bucket) Holders() int {
	n := 0
	for i := range b.Leases {
		if b.Leases[i].Holds() {
			n++
		}
	}
	return n
}

// Lease returns the lease of a replica, or nil.
func (b *Bucket) Lease(replica uint32) *Lease {
	for i := range b.Leases {
		if b.Leases[i].Replica == replica {
			return &b.Leases[i]
		}
	}
	return nil
}
