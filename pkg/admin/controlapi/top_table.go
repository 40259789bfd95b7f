package controlapi

import (
	"bytes"
	"cmp"
	"math"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// chains is how many chains of counts a table has, a power of two.
const chains = 2 * shardKeys

// table counts the events of one step. The zero value has none. The counts that an event changes lie
// close together, as most of them are not in the processor's cache.
type table struct {
	first  [chains]uint8 // the first count of a chain
	counts []count       // chained by hash
	names  []names       // of the counts

	least int64 // no counts have fewer events
	hand  int   // no counts before it have so few
}

// count has the counts of a key.
type count struct {
	hash   uint64
	events int64 // at most that many
	before int64 // of them are those of the keys whose place it took
	amount int64
	next   uint8 // in its chain: 1 + an index, 0 for none
}

// names are those of a key. Their memory is used again.
type names struct{ namespace, entity, resource, limit []byte }

func (t *table) add(hash uint64, k TopKey, amount int64) {
	c := t.count(hash)
	if c == nil {
		c = t.begin(hash, k)
	}
	c.events++
	c.amount = plus(c.amount, max(amount, 0))
}

// count returns the counts of a key, nil without any.
func (t *table) count(hash uint64) *count {
	for i := t.first[chainOf(hash)]; i != 0; {
		c := &t.counts[i-1]
		if c.hash == hash {
			return c
		}
		i = c.next
	}
	return nil
}

func chainOf(hash uint64) uint64 { return hash / shards % chains }

// begin returns counts for another key. When there is no room they are those of the key with the fewest events.
func (t *table) begin(hash uint64, k TopKey) *count {
	i, before := len(t.counts), int64(0)
	if i < shardKeys {
		t.counts, t.names = append(t.counts, count{}), grown(t.names)
	} else {
		i = t.fewest()
		before = t.counts[i].events
		*t.link(i) = t.counts[i].next
	}
	first := &t.first[chainOf(hash)]
	t.counts[i] = count{hash: hash, events: before, before: before, next: *first}
	*first = uint8(i + 1) // #nosec G115 -- at most shardKeys
	t.names[i].become(k)
	return &t.counts[i]
}

// grown appends names, with the memory of earlier ones.
func grown(all []names) []names {
	if len(all) < cap(all) {
		return all[:len(all)+1]
	}
	return append(all, names{})
}

// fewest returns the index of counts that have the fewest events. No counts have fewer than t.least. The search goes
// on where the last one ended, as events only rise.
func (t *table) fewest() int {
	for ; t.hand < len(t.counts); t.hand++ {
		if t.counts[t.hand].events == t.least {
			return t.hand
		}
	}
	t.hand = 0
	for i := range t.counts {
		if t.counts[i].events < t.counts[t.hand].events {
			t.hand = i
		}
	}
	t.least = t.counts[t.hand].events
	return t.hand
}

// link returns the place that has the number of a count in its chain.
func (t *table) link(i int) *uint8 {
	at := &t.first[chainOf(t.counts[i].hash)]
	for int(*at) != i+1 {
		at = &t.counts[*at-1].next
	}
	return at
}

// become copies the names of a key.
func (n *names) become(k TopKey) {
	n.namespace = append(n.namespace[:0], limiter.ShortName(k.Namespace)...)
	n.entity = append(n.entity[:0], limiter.ShortName(k.Entity)...)
	n.resource = append(n.resource[:0], limiter.ShortName(k.Resource)...)
	n.limit = append(n.limit[:0], limiter.ShortName(k.Limit)...)
}

// clear forgets every key, and keeps their memory.
func (t *table) clear() {
	clear(t.first[:])
	t.counts, t.names = t.counts[:0], t.names[:0]
	t.least, t.hand = 0, 0
}

// sum is the sum of a key's counts over several steps.
type sum struct {
	of             *names
	events, amount int64
}

// read adds the counts of picked keys, as scaled, to sums by hash.
func (t *table) read(sums map[uint64]sum, f *TopFilter, scaled func(int64) int64) {
	for i, c := range t.counts {
		n := &t.names[i]
		events := scaled(c.events - c.before)
		if events == 0 || !picks(f, n.namespace, n.entity, n.resource, n.limit) {
			continue
		}
		s := sums[c.hash]
		sums[c.hash] = sum{n, s.events + events, plus(s.amount, scaled(c.amount))}
	}
}

// key returns the names, which are not used again.
func (n *names) key() TopKey {
	return TopKey{string(n.namespace), string(n.entity), string(n.resource), string(n.limit)}
}

// compareSums orders the most events first, and equal ones by their names.
func compareSums(a, b sum) int {
	return cmp.Or(
		cmp.Compare(b.events, a.events), cmp.Compare(b.amount, a.amount),
		bytes.Compare(a.of.namespace, b.of.namespace), bytes.Compare(a.of.entity, b.of.entity),
		bytes.Compare(a.of.resource, b.of.resource), bytes.Compare(a.of.limit, b.of.limit),
	)
}

// plus returns the sum of two numbers of 0 or above, or the greatest number where it does not fit.
func plus(a, b int64) int64 { return min(a, math.MaxInt64-b) + b }
