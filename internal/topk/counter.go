package topk

import (
	"cmp"
	"hash/maphash"
	"slices"
	"time"
)

// Window is the time that numbers are about.
const Window = time.Minute

const (
	shards    = 8   // a power of two
	shardKeys = 128 // of a shard in a step
)

// Key names a limit of a bucket. Its strings may be any bytes of any length.
type Key struct {
	Namespace, Entity, Resource, Limit string
}

// Row is a key with its counts in the last [Window].
type Row struct {
	Key

	Events int64 // at least that many
	Amount int64 // sum of the amounts of those events
}

// Counter counts events by key. It is safe for concurrent use. Create it with [New].
type Counter struct {
	seed   maphash.Seed
	shards [shards]shard
}

// New returns a counter of no events.
func New() *Counter { return &Counter{seed: maphash.MakeSeed()} }

// Add counts an event of a key at a time, with an amount. The strings of the key are not kept.
func (c *Counter) Add(now time.Time, k Key, amount int64) {
	hash := maphash.Comparable(c.seed, k)
	at, _ := stepOf(now)
	c.shards[hash%shards].add(at, hash, k, amount)
}

// Filter picks keys: of a namespace, a resource and a limit, where they are not "".
type Filter struct {
	Namespace, Resource, Limit string
}

// Top returns the rows of the picked keys with the most events, at most n, in order.
//
// The last half minute is exact. Events of the half minute before count in part: in the
// proportion in which the last minute overlaps the half minute, by the clock, of their
// count.
func (c *Counter) Top(now time.Time, n int, f Filter) []Row {
	at, rest := stepOf(now)
	rows := make([]Row, 0, shards*min(n, shardKeys))
	for i := range c.shards {
		rows = append(rows, c.shards[i].read(at, rest, n, &f)...)
	}
	slices.SortFunc(rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(b.Events, a.Events), cmp.Compare(b.Amount, a.Amount), a.compare(&b.Key))
	})
	return rows[:min(n, len(rows))]
}

// compare orders keys by their names.
func (k *Key) compare(other *Key) int {
	return cmp.Or(
		cmp.Compare(k.Namespace, other.Namespace), cmp.Compare(k.Entity, other.Entity),
		cmp.Compare(k.Resource, other.Resource), cmp.Compare(k.Limit, other.Limit),
	)
}
