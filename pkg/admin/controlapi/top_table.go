package controlapi

import (
	"bytes"
	"cmp"
	"math"

	"github.com/ratelimit/ratelimit/pkg/limiter"
)

// table counts the events of one step. The zero value has none.
type table struct {
	byHash map[uint64]*counted
	heap   []*counted // those in use, the one with the fewest events first
	spare  []*counted // those of earlier steps, whose memory is used again
}

// counted is a key and its counts.
type counted struct {
	hash   uint64
	at     int   // in the heap
	events int64 // at most that many
	before int64 // of them are those of the keys whose place it took
	amount int64

	namespace, entity, resource, limit []byte // their memory is used again
}

func (t *table) add(hash uint64, k TopKey, amount int64) {
	e := t.byHash[hash]
	switch {
	case e != nil:
	case len(t.heap) < shardKeys:
		e = t.grow()
		e.become(hash, k)
		t.byHash[hash] = e
	default:
		e = t.heap[0]
		delete(t.byHash, e.hash)
		e.before, e.amount = e.events, 0
		e.become(hash, k)
		t.byHash[hash] = e
	}
	e.events++
	e.amount = plus(e.amount, max(amount, 0))
	t.down(e)
}

// grow returns an entry without events, which is in the heap.
func (t *table) grow() *counted {
	if t.byHash == nil {
		t.byHash = make(map[uint64]*counted, shardKeys)
	}
	var e *counted
	if n := len(t.spare); n > 0 {
		e, t.spare = t.spare[n-1], t.spare[:n-1]
	} else {
		e = new(counted)
	}
	e.events, e.before, e.amount, e.at = 0, 0, 0, len(t.heap)
	t.heap = append(t.heap, e)
	t.up(e)
	return e
}

// become copies the names of a key.
func (e *counted) become(hash uint64, k TopKey) {
	e.hash = hash
	e.namespace = append(e.namespace[:0], limiter.ShortName(k.Namespace)...)
	e.entity = append(e.entity[:0], limiter.ShortName(k.Entity)...)
	e.resource = append(e.resource[:0], limiter.ShortName(k.Resource)...)
	e.limit = append(e.limit[:0], limiter.ShortName(k.Limit)...)
}

// up moves an entry towards the first while it has fewer events than those before it.
func (t *table) up(e *counted) {
	for e.at > 0 {
		parent := t.heap[(e.at-1)/2]
		if parent.events <= e.events {
			return
		}
		t.swap(e, parent)
	}
}

// down moves an entry away from the first while it has more events than those behind it.
func (t *table) down(e *counted) {
	for {
		least := e
		for child := 2*e.at + 1; child <= 2*e.at+2 && child < len(t.heap); child++ {
			if t.heap[child].events < least.events {
				least = t.heap[child]
			}
		}
		if least == e {
			return
		}
		t.swap(e, least)
	}
}

func (t *table) swap(a, b *counted) {
	a.at, b.at = b.at, a.at
	t.heap[a.at], t.heap[b.at] = a, b
}

// clear forgets every key, and keeps their memory.
func (t *table) clear() {
	clear(t.byHash)
	t.spare = append(t.spare, t.heap...)
	t.heap = t.heap[:0]
}

// sum is the sum of a key's counts over several steps.
type sum struct {
	of             *counted
	events, amount int64
}

// read adds the counts of picked keys, as scaled, to sums by hash.
func (t *table) read(sums map[uint64]sum, f *TopFilter, scaled func(int64) int64) {
	for _, e := range t.heap {
		events := scaled(e.events - e.before)
		if events == 0 || !picks(f, e.namespace, e.entity, e.resource, e.limit) {
			continue
		}
		s := sums[e.hash]
		sums[e.hash] = sum{e, s.events + events, plus(s.amount, scaled(e.amount))}
	}
}

// key returns the names, which are not used again.
func (e *counted) key() TopKey {
	return TopKey{string(e.namespace), string(e.entity), string(e.resource), string(e.limit)}
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
