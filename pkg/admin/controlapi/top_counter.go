package controlapi

import (
	"cmp"
	"hash/maphash"
	"maps"
	"slices"
	"time"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// TopWindow is the time that numbers are about.
const TopWindow = time.Minute

const (
	shards    = 8   // a power of two
	shardKeys = 128 // of a shard in a step
)

// TopKey names a limit of a bucket. Its strings may be any bytes of any length.
type TopKey struct {
	Namespace, Entity, Resource, Limit string
}

// TopRow is a key with its counts in the last [TopWindow].
type TopRow struct {
	TopKey

	Events int64 // at least that many
	Amount int64 // sum of the amounts of those events
}

// TopCounter counts events by key. It is safe for concurrent use. Create it with [NewTopCounter].
type TopCounter struct {
	seed   maphash.Seed
	shards [shards]shard
}

// NewTopCounter returns a counter of no events.
func NewTopCounter() *TopCounter { return &TopCounter{seed: maphash.MakeSeed()} }

// Add counts an event of a key at a time, with an amount. The strings of the key are not kept.
func (c *TopCounter) Add(now time.Time, k TopKey, amount int64) {
	hash := maphash.Comparable(c.seed, k)
	at, _ := stepOf(now)
	c.shards[hash%shards].add(at, hash, k, amount)
}

// TopFilter picks keys: of a namespace, an entity, a resource and a limit, where they are not "". A long name may be
// given in full, or as rows have it.
type TopFilter struct {
	Namespace, Entity, Resource, Limit string
}

// Picks reports whether the filter picks a key.
func (f *TopFilter) Picks(k *TopKey) bool {
	return picks(f, k.Namespace, k.Entity, k.Resource, k.Limit)
}

func picks[T ~string | ~[]byte](f *TopFilter, namespace, entity, resource, limit T) bool {
	return isAsked(f.Namespace, namespace) && isAsked(f.Entity, entity) && isAsked(f.Resource, resource) && isAsked(f.Limit, limit)
}

// isAsked reports whether a name of a filter is that of a row, which has its short form; "" is any.
func isAsked[T ~string | ~[]byte](name string, row T) bool {
	return name == "" || string(row) == name || len(name) > limiter.MaxShownName && string(row) == limiter.ShortName(name)
}

// Top returns the rows of the picked keys with the most events, at most n, in order.
//
// The last half minute is exact. Events of the half minute before count in part: in the
// proportion in which the last minute overlaps the half minute, by the clock, of their
// count.
func (c *TopCounter) Top(now time.Time, n int, f TopFilter) []TopRow {
	at, rest := stepOf(now)
	rows := make([]TopRow, 0, shards*min(n, shardKeys))
	for i := range c.shards {
		rows = append(rows, c.shards[i].read(at, rest, n, &f)...)
	}
	return first(rows, n)
}

// AddUp returns the rows of several counters with the most events, at most n, in order. Rows of a key are one.
func AddUp(all []TopRow, n int) []TopRow {
	sums := make(map[TopKey]TopRow, len(all))
	for _, row := range all {
		sum := sums[row.TopKey]
		sums[row.TopKey] = TopRow{TopKey: row.TopKey, Events: plus(sum.Events, row.Events), Amount: plus(sum.Amount, row.Amount)}
	}
	return first(slices.Collect(maps.Values(sums)), n)
}

// first orders rows, the most events first, and returns at most n.
func first(rows []TopRow, n int) []TopRow {
	slices.SortFunc(rows, func(a, b TopRow) int {
		return cmp.Or(cmp.Compare(b.Events, a.Events), cmp.Compare(b.Amount, a.Amount), a.compare(&b.TopKey))
	})
	return rows[:min(n, len(rows))]
}

// compare orders keys by their names.
func (k *TopKey) compare(other *TopKey) int {
	return cmp.Or(
		cmp.Compare(k.Namespace, other.Namespace), cmp.Compare(k.Entity, other.Entity),
		cmp.Compare(k.Resource, other.Resource), cmp.Compare(k.Limit, other.Limit),
	)
}
